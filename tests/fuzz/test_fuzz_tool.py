# SPDX-License-Identifier: Apache-2.0
"""tools/run_fuzzers.py, as far as it needs no clang: which targets there are, and the files of the corpora."""

import json
import re
import sys

import pytest
from harness import server as servers

sys.path.append(str(servers.ROOT / "tools"))
import run_fuzzers as fuzz  # noqa: E402


def test_every_fuzzer_is_part_of_the_build():
    for name, path in fuzz.targets().items():
        lists = (path.parent / "CMakeLists.txt").read_text()
        assert re.search(rf"^nereid_fuzz\({name} ", lists, re.M), f"{path} is in no CMakeLists.txt"


def test_every_corpus_belongs_to_a_fuzzer_and_is_small():
    for path in fuzz.KEPT.iterdir() if fuzz.KEPT.exists() else ():
        assert path.name in fuzz.targets()
        assert path.stat().st_size <= fuzz.MAX_KEPT_BYTES
        assert fuzz.read_corpus(path), f"{path} is empty"


@pytest.mark.parametrize("inputs", [[], [b""], [b"a", b"", b"12\n34\n", bytes(range(256))]])
def test_a_corpus_is_read_as_it_was_written(tmp_path, inputs):
    fuzz.write_corpus(tmp_path / "corpus", inputs)
    assert fuzz.read_corpus(tmp_path / "corpus") == inputs


def test_a_report_has_the_last_row_of_each_target(tmp_path):
    report = tmp_path / "report.json"
    for row in ({"target": "value", "edges": 1}, {"target": "bytes", "edges": 2}, {"target": "value", "edges": 3}):
        fuzz.add_to_report(report, row)
    assert json.loads(report.read_text()) == [{"target": "bytes", "edges": 2}, {"target": "value", "edges": 3}]
