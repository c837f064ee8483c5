# SPDX-License-Identifier: Apache-2.0
"""Servers with the entry points of the clouds, and what their tests send."""

import json

import numpy as np

from harness import models
from harness import server as servers

ROW = list(range(16))


def write_models(repository, *names):
    """Models that echo two rows."""
    for name in names:
        models.write_model(
            repository, name, models.identity_config("INT32", [-1], count=2, max_batch_size=8)
        )


def json_body(outputs=()):
    inputs = [
        {"name": f"INPUT{i}", "shape": [1, 16], "datatype": "INT32", "data": ROW} for i in range(2)
    ]
    body = {"inputs": inputs}
    if outputs:
        body["outputs"] = [{"name": n, "parameters": {"binary_data": b}} for n, b in outputs]
    return json.dumps(body)


def binary_body():
    """The body and the number of its JSON bytes."""
    data = np.array(ROW, np.int32).tobytes()
    inputs = [
        {
            "name": "INPUT0",
            "shape": [1, 16],
            "datatype": "INT32",
            "parameters": {"binary_data_size": len(data)},
        },
        {"name": "INPUT1", "shape": [1, 16], "datatype": "INT32", "data": ROW},
    ]
    head = json.dumps({"inputs": inputs}).encode()
    return head + data, len(head)


def outputs_of(reply):
    return {o["name"]: o["data"] for o in reply.json()["outputs"]}


def start(start_server, repository, flag, env=None, args=(), **options):
    """A server whose entry point for a cloud listens on its `port`."""
    port = servers.free_ports(1)[0]
    server = start_server(
        repository,
        args=[f"--allow-{flag}=true", f"--{flag}-port={port}", f"--{flag}-address=127.0.0.1", *args],
        env=env,
        **options,
    )
    server.cloud = f"http://127.0.0.1:{port}"
    if flag == "vertex-ai":
        wait_for_vertex_ai(server)
    return server


def wait_for_vertex_ai(server):
    """Its entry point opens last, a moment after the server is ready: it first looks which model is the default."""
    server.wait_for_log("Started Vertex AI HTTPService")
