# SPDX-License-Identifier: Apache-2.0
"""Models of frameworks answer as they do with Triton's own backends in the reference server, whose responses
are recorded in frameworks/. See README.md."""

import json
import pathlib

import pytest
from harness import server as servers

from compat.frameworks import asking, compare, differences

HERE = pathlib.Path(__file__).resolve().parent / "frameworks"
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "differences.md"


def recorded(framework):
    return json.loads((HERE / f"reference_{framework}.json").read_text())


@pytest.fixture(scope="module", params=list(asking.FRAMEWORKS))
def framework(request):
    if servers.REFERENCE or not servers.has_backend(request.param):
        pytest.skip(f"the build has no backend {request.param}, or the server is the reference")
    return request.param


@pytest.fixture(scope="module")
def asked(require_server, framework, tmp_path_factory):
    return asking.ask(framework, tmp_path_factory.mktemp(framework))


def test_every_difference_from_the_reference_is_meant(framework, asked):
    unexplained, used = [], []
    for model, part, reference, ours in compare.differences(recorded(framework), asked):
        ours = ours or {}
        said = f"{ours.get('status', 200)} {ours.get('code', '')} {ours.get('error', '')}".rstrip("; \n")
        meant = differences.reason(framework, f"{model}: {part}", said.replace("  ", " "))
        used.append(meant)
        if meant is None:
            unexplained.append(f"{model}: {part}\n  - {json.dumps(reference)}\n  + {json.dumps(ours)}")
    assert not unexplained, "\n".join(unexplained)
    unused = [d.parts for d in differences.FRAMEWORKS[framework] if d not in used]
    assert not unused, f"these differences are gone: {unused}"


@pytest.mark.parametrize("framework", list(asking.FRAMEWORKS))
def test_every_difference_is_documented(framework):
    rows = [line.removeprefix("| ") for line in DOCUMENT.read_text().splitlines()]
    for difference in differences.FRAMEWORKS[framework] + differences.COMMON:
        assert any(row.startswith(difference.row) for row in rows), f"no row in {DOCUMENT.name} for {difference.row!r}"


def test_there_are_enough_cases():
    responses = [part for f in asking.FRAMEWORKS for model in recorded(f).values() for part in model]
    assert sum(part not in ("load", "metadata", "config") for part in responses) >= 150
    assert sum(len(recorded(f)) for f in asking.FRAMEWORKS) >= 40
