# SPDX-License-Identifier: Apache-2.0
"""The entry points of clouds wait for no body of somebody who has no API key (S22, S23), as the routes of
test_strangers.py do not."""

import socket

import pytest
from harness import cloud, transports, wire
from harness import server as servers

pytestmark = pytest.mark.newer

LARGE = {"Content-Length": str(64 << 20)}
REDIRECT = {"X-Vertex-Ai-Triton-Redirect": "v2/models/one/infer"}
REQUESTS = [
    ("sagemaker", "/invocations", {}),
    ("sagemaker", "/models", {}),
    ("sagemaker", "/models/one/invoke", {}),
    ("vertex-ai", "/predict", {}),
    ("vertex-ai", "/predict", REDIRECT),
]


class CloudConnection(wire.Connection):
    def __init__(self, server):
        port = int(server.cloud.rsplit(":", 1)[1])
        self.socket = socket.create_connection(("127.0.0.1", port), 30 * servers.SLOWNESS)
        self.buffer = b""


@pytest.fixture
def transport():
    made = transports.KEYED["tcp-keys"]()
    yield made
    made.close()


@pytest.mark.parametrize("flag", ["sagemaker", "vertex-ai"])
def test_s22_no_entry_point_waits_for_a_body(start_server, empty_repository, transport, flag):
    cloud.write_models(empty_repository, "one")
    env = {"AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health",
           "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "one"}  # fmt: skip
    server = cloud.start(start_server, empty_repository, flag, env, transport=transport)
    for asked, path, more in REQUESTS:
        if asked != flag:
            continue
        for length in (LARGE, {"Transfer-Encoding": "chunked"}):
            with CloudConnection(server) as connection:
                connection.send(wire.encode("POST", path, b"", {**length, **more}))
                reply = connection.receive()
                assert reply.status == 401 and "needs an API key" in reply.error, (path, reply)
                assert connection.is_closed_by_server()
    # Who has a key is served, in chunks as well.
    path = "/invocations" if flag == "sagemaker" else "/predict"
    body = cloud.json_body().encode()
    with CloudConnection(server) as connection:
        fields = {**transport.credentials, "Transfer-Encoding": "chunked"}
        connection.send(wire.encode("POST", path, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), fields))
        reply = connection.receive()
    assert reply.status == 200 and cloud.outputs_of(reply)["OUTPUT0"] == cloud.ROW
