# SPDX-License-Identifier: Apache-2.0
"""The cases of compat/cases through Ray Serve's proxy, with two replicas of nereid.ray: its clients see the same
protocol as those of a server."""

import pathlib
import re
import sys

import pytest
from compat import protocol
from harness import repository
from harness import server as servers

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import cluster as clusters  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.skipif(servers.REFERENCE, reason="about this server's package")]

FILES = ("generate", "http_details", "http_infer_binary", "http_infer_json", "http_queries", "http_types", "shared_memory_off")
CLOSED = re.compile(r"/v2/repository/(index|models/\w+/(un)?load)")


def cases(are_closed):
    """Those over HTTP, of the routes that are closed or of all others."""
    for file, case in protocol.load():
        requests = [step["request"] for step in protocol.steps(case)]
        if file not in FILES or any("rpc" in request for request in requests):
            continue
        if any(CLOSED.fullmatch(request["path"]) for request in requests) == are_closed:
            yield pytest.param(case, id=f"{file}: {case['name']}")


@pytest.fixture(scope="module")
def front(require_server):
    if reason := clusters.missing():
        pytest.skip(f"nereid.ray is NOT tested: {reason}")
    running = clusters.Cluster(lambda folder: repository.write(folder / "shared", with_onnx=servers.has_backend("onnxruntime")))
    try:
        running.ask("run", app="cases")
        yield protocol.Front(running.port)
    finally:
        running.stop()


@pytest.mark.parametrize("case", cases(False))
def test_case(case, front):
    protocol.run(case, lambda kind: front)


@pytest.mark.parametrize("case", cases(True))
def test_control_of_models_is_closed(case, front):
    """What it says and does would be one replica's."""
    closed = {"status": 403, "error_prefix": "This API is restricted"}
    protocol.run({**case, "steps": [{**step, "expect": closed} for step in protocol.steps(case)]}, lambda kind: front)
