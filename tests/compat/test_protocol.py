# SPDX-License-Identifier: Apache-2.0
"""Every case of cases/*.json, on this server or (NEREID_REFERENCE=1) on the reference: README.md."""

import pathlib

import pytest
from harness import server as servers

from compat import protocol
from compat.kinds import Pool

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
CASES = list(protocol.load())


@pytest.fixture(scope="module")
def get_server(require_server, repository_path, tmp_path_factory):
    """get_server(kind): the server of a kind, started when it is first asked for."""
    pool = Pool(lambda kind: tmp_path_factory.mktemp(kind), repository_path)
    yield pool.get
    pool.stop()


def parameters():
    for file, case in CASES:
        marks = []
        if servers.REFERENCE and "differs" in case:
            marks.append(pytest.mark.xfail(reason=case["differs"], strict=True, raises=(protocol.Mismatch, EOFError)))
        yield pytest.param(case, id=f"{file}: {case['name']}", marks=marks)


@pytest.mark.parametrize("case", parameters())
def test_case(case, get_server):
    protocol.run(case, get_server)


def test_every_difference_is_documented():
    text = DOCUMENT.read_text()
    for reason in {case["differs"] for _, case in CASES if "differs" in case}:
        assert f"| {reason} |" in text, f"docs/compatibility.md has no row for the difference {reason!r}"


def test_names_are_unique():
    names = [(file, case["name"]) for file, case in CASES]
    assert len(names) == len(set(names))


def test_there_are_enough():
    assert len(CASES) >= 400
