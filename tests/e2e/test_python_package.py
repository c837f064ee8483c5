# SPDX-License-Identifier: Apache-2.0
"""The Python package `nereid`: runs python/tests, where servers live in the process of the tests, in
processes of their own, so that what goes wrong there ends no other test."""

import subprocess
import sys

import pytest

from harness import python_package
from harness import server as servers

pytestmark = pytest.mark.skipif(servers.REFERENCE, reason="about this server's package")

FOLDER = servers.ROOT / "python" / "tests"


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("test_*.py")))
def test_of_the_package(require_server, file):
    command = [sys.executable, "-m", "pytest", FOLDER / file, "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = subprocess.run(
        command,
        env=python_package.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=servers.ROOT,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout


def test_the_example_recognises_a_digit(require_server, onnx):
    variables = {**python_package.environment(), "PYTHONPATH": str(servers.build_folder() / "python")}
    example = servers.ROOT / "examples" / "embed" / "embed.py"
    done = subprocess.run([sys.executable, example], env=variables, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("a 3, recognised as 3"), done.stdout + done.stderr
