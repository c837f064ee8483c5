# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of cases/http_*.json; README.md says how a case is written."""

import json
import pathlib

import pytest
from harness import wire

CASES = pathlib.Path(__file__).parent / "cases"


def all_cases():
    for path in sorted(CASES.glob("http_*.json")):
        for case in json.loads(path.read_text())["cases"]:
            marks = [pytest.mark.newer] if case.get("newer") else []
            yield pytest.param(case, id=f"{path.stem}: {case['name']}", marks=marks)


def encode(request):
    """The body and the headers of a case's request."""
    headers = dict(request.get("headers", {}))
    if "json" not in request:
        return request.get("text", "").encode(), headers
    text = json.dumps(request["json"], separators=(",", ":")).encode()
    if "binary" in request:
        headers.setdefault("Inference-Header-Content-Length", str(len(text)))
    return text + bytes.fromhex(request.get("binary", "")), headers


@pytest.mark.parametrize("case", all_cases())
def test_case(server, case):
    request, expected = case["request"], case["expect"]
    body, headers = encode(request)
    with wire.Connection(server) as connection:
        reply = connection.request(request["method"], request["path"], body, headers)
        check(reply, expected)
        # Whatever the request was, the connection goes on.
        assert connection.request("GET", "/v2/health/live").status == 200


def check(reply, expected):
    statuses = expected["status"] if isinstance(expected["status"], list) else [expected["status"]]
    assert reply.status in statuses, reply
    if reply.status >= 400:
        assert set(reply.json()) == {"error"}, reply
    if "error" in expected:
        assert reply.error == expected["error"]
    if "error_prefix" in expected:
        assert reply.error.startswith(expected["error_prefix"]), reply
    if "error_contains" in expected:
        assert expected["error_contains"] in reply.error, reply
    if "text" in expected:
        assert reply.body.decode() == expected["text"]
    if "json" in expected:
        assert reply.json() == expected["json"]
    if "binary" in expected:
        assert wire.split_reply(reply)[1].hex() == expected["binary"]
    for name, value in expected.get("headers", {}).items():
        assert reply.headers.get(name) == value, reply
