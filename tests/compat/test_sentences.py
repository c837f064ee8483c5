# SPDX-License-Identifier: Apache-2.0
"""Every numbered sentence of docs/scheduling.md is named by a test."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_sentence_is_named_by_a_test():
    text = (ROOT / "docs" / "scheduling.md").read_text()
    sentences = re.findall(r"^- \*\*([A-Z]-\d+)\*\*", text, re.M)
    assert len(sentences) == len(set(sentences)) > 50
    tests = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("src/**/*_test.cc")]
    sources = "".join(path.read_text() for path in tests)
    # As "D-3", or in a name as test_d3_...
    named = set(re.findall(r"\b[A-Z]-\d+\b", sources))
    named |= {f"{a.upper()}-{n}" for a, n in re.findall(r"def test_([a-z])(\d+)_", sources)}
    assert set(sentences) - named == set()


def test_no_difference_is_listed_twice():
    rows = re.findall(r"^\| (.*?) \| ", (ROOT / "docs" / "differences.md").read_text(), re.M)
    assert len(rows) > 100
    assert {row for row in rows if rows.count(row) > 1} == set()
