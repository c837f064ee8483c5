# SPDX-License-Identifier: Apache-2.0
"""Models for tests of repositories in object stores, and requests to them."""

import numpy as np

from harness import models, wire
from harness import server as servers
from harness.clients import Client

POLL = ["--model-control-mode=poll", "--repository-poll-secs=1"]


def write_models(path):
    """Models of several kinds, with labels and a large file."""
    models.write_model(path, "onnx_mlp", versions={"1": {"model.onnx": models.onnx_mlp()}})
    models.write_model(
        path,
        "onnx_add",
        versions={
            "1": {"model.onnx": models.onnx_add_sub("FP32", [4])},
            "3": {"model.onnx": models.onnx_add_sub("FP32", [4], swap=True)},
        },
    )
    models.copy_example(path, "digits")


def write_identity(path, name, blob=b"weights", max_batch_size=0):
    return models.write_model(
        path,
        name,
        models.identity_config("INT32", [-1], max_batch_size=max_batch_size),
        {"1": {"weights.bin": blob}},
    )


def infer_identity(server, model):
    client = Client("http", server)
    tensor = np.arange(5, dtype=np.int32)
    result = client.infer(model, [client.input("INPUT0", tensor, "INT32")])
    client.close()
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), tensor)


def get(server, path):
    reply = wire.request(server, "GET", path)
    assert reply.status == 200, reply
    return reply.json()


def is_ready(server, model):
    return wire.request(server, "GET", f"/v2/models/{model}/ready").status == 200


def start_failing(start_server, *arguments, **options):
    server = start_server(*arguments, wait=False, **options)
    assert server.wait() == 1
    return server.log


def add_or_subtract(server):
    """What the first output of the model "calc" does: +1 for the sum, -1 for the difference."""
    client = Client("http", server)
    one = np.ones([4], dtype=np.float32)
    inputs = [client.input(name, one, "FP32") for name in ("INPUT0", "INPUT1")]
    result = client.infer("calc", inputs).as_numpy("OUTPUT0")
    client.close()
    return 1 if result[0] == 2 else -1


def compare_servers(local, remote):
    """Both serve the models of write_models in the same way."""
    rng = np.random.default_rng(3)
    for model in ("onnx_mlp", "onnx_add", "digits"):
        assert get(local, f"/v2/models/{model}") == get(remote, f"/v2/models/{model}")
        assert get(local, f"/v2/models/{model}/config") == get(remote, f"/v2/models/{model}/config")
        metadata = get(local, f"/v2/models/{model}")
        for protocol in ("http", "grpc"):
            tensors = [
                rng.standard_normal([2 if d == -1 else d for d in t["shape"]]).astype(np.float32)
                for t in metadata["inputs"]
            ]
            answers = []
            for server in (local, remote):
                client = Client(protocol, server)
                inputs = [
                    client.input(t["name"], tensor, t["datatype"])
                    for t, tensor in zip(metadata["inputs"], tensors)
                ]
                result = client.infer(model, inputs)
                answers.append([result.as_numpy(t["name"]) for t in metadata["outputs"]])
                client.close()
            for ours, theirs in zip(*answers):
                np.testing.assert_array_equal(ours, theirs)


def start_while_away(start, leave, come_back):
    """A server that `start` starts without waiting, while what it needs is away until it tries again. A server gives up
    after a second or more of trying; where this process comes too late for that, all of it is done once more."""
    for _ in range(10):
        leave()
        server = start()
        servers.wait_until(lambda: "trying again" in server.log, "the server tries again", timeout=60)
        is_alone = server.is_live() and not server.is_ready()
        come_back()
        servers.wait_until(
            lambda: server.is_ready() or server.process.poll() is not None, "the server is ready", timeout=60
        )
        if server.process.poll() is None:
            assert is_alone, "whoever asks for the server's health is answered meanwhile"
            return server
        assert "trying again (5 of 5)" in server.log, server.tail()
    raise AssertionError("the server always gave up before what it needs came back")
