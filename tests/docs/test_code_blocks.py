# SPDX-License-Identifier: Apache-2.0
"""Every block of code in the documents says its language, and is what it says."""

import ast
import json
import re
import subprocess

import pytest
import yaml
from harness.documents import code_blocks, documents
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

BLOCKS = [block for path in documents() for block in code_blocks(path)]
# Whose syntax is not looked at here.
OTHERS = {"text", "c", "cpp", "dockerfile"}
# What a user puts in the place of a word.
PLACEHOLDER = re.compile(r"<[a-z-]+>")


def read_shell(text):
    done = subprocess.run(["bash", "-n"], input=PLACEHOLDER.sub("WORD", text), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def read_console(text):
    """Commands stand behind a dollar sign; what follows is what they print."""
    commands = re.findall(r"(?m)^\$ (.*(?:\\\n.*)*)", text)
    assert commands
    read_shell("\n".join(commands))


READERS = {
    "bash": read_shell,
    "console": read_console,
    "json": json.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "python": ast.parse,
    "pbtxt": lambda text: text_format.Parse(text, model_config_pb2.ModelConfig()),
}


def test_every_block_has_a_language():
    assert [str(block) for block in BLOCKS if block.language not in {*READERS, *OTHERS}] == []
    assert {block.language for block in BLOCKS} >= set(READERS)


@pytest.mark.parametrize("language", READERS)
def test_blocks_can_be_read(language):
    wrong = []
    for block in BLOCKS:
        if block.language != language:
            continue
        try:
            READERS[language](block.text)
        except Exception as error:  # whatever a reader says
            wrong.append(f"{block}: {error}")
    assert wrong == []
