# SPDX-License-Identifier: Apache-2.0
"""Models are replaced under load: no request fails, none gets a wrong answer, memory stays flat."""

import contextlib
import re
import shutil
import threading

import numpy as np
from harness import files, models
from harness import server as servers
from harness.clients import Client
from onnx import TensorProto, helper, numpy_helper

EXPLICIT = ["--model-control-mode=explicit"]
ROUNDS = 50
WEIGHTS = 1 << 18  # floats in each model: one that is not freed shows


def adder(number):
    constants = [
        numpy_helper.from_array(np.array([number], dtype=np.float32), "number"),
        numpy_helper.from_array(np.full(WEIGHTS, number, dtype=np.float32), "weights"),
        numpy_helper.from_array(np.array([0], dtype=np.int64), "index"),
    ]
    return models.onnx_model(
        [
            helper.make_node("Gather", ["weights", "index"], ["weight"]),
            helper.make_node("Sub", ["number", "weight"], ["zero"]),
            helper.make_node("Add", ["INPUT0", "number"], ["sum"]),
            helper.make_node("Add", ["sum", "zero"], ["OUTPUT0"]),
        ],
        [("INPUT0", TensorProto.FLOAT, [2])],
        [("OUTPUT0", TensorProto.FLOAT, [2])],
        constants,
    )


class Load:
    """Requests without a pause over both protocols; each answer must be one that is permitted."""

    def __init__(self, server, model):
        self.server = server
        self.model = model
        # What may be answered, one set for each moment: a request may live through several.
        self.moments = []
        self.failures = []
        self.count = 0
        self.is_over = threading.Event()

    def permit(self, *answers):
        """From now on these are right: pairs of number and version."""
        self.moments.append(set(answers))

    def work(self, kind):
        client = Client(kind, self.server)
        tensor = np.zeros(2, dtype=np.float32)
        while not self.is_over.is_set():
            sent = len(self.moments) - 1
            try:
                result = client.infer(self.model, [client.input("INPUT0", tensor, "FP32")])
                number = float(result.as_numpy("OUTPUT0")[0])
                version = result.get_response()
                version = version["model_version"] if client.is_http else version.model_version
            except Exception as error:
                self.failures.append(str(error))
                continue
            self.count += 1
            allowed = set().union(*self.moments[sent:])
            if (number, version) not in allowed:
                self.failures.append(f"{number} of version {version}, allowed {allowed}")
        client.close()


@contextlib.contextmanager
def under_load(server, model, permitted):
    load = Load(server, model)
    load.permit(permitted)
    threads = [threading.Thread(target=load.work, args=(kind,)) for kind in ("http", "grpc", "http", "grpc")]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.is_over.set()
        for thread in threads:
            thread.join()
    assert load.failures == []
    assert load.count > ROUNDS


def check_memory(server, first, last):
    if not servers.is_sanitized():
        assert last - first < 24 << 20, f"from {first >> 20} to {last >> 20} MiB"


def test_50_reloads_under_load(empty_repository, start_server, onnx):
    """Each is seen by every request that is sent after the load has returned."""
    path = empty_repository / "m" / "1" / "model.onnx"
    models.write_model(empty_repository, "m", None, {"1": {"model.onnx": adder(0)}})
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    control = {kind: Client(kind, server) for kind in ("http", "grpc")}
    sizes = []
    with under_load(server, "m", (0.0, "1")) as load:
        for i in range(1, ROUNDS + 1):
            load.permit((i - 1.0, "1"), (float(i), "1"))
            files.replace(path, adder(i).SerializeToString())
            control["http" if i % 2 else "grpc"].load_model("m")
            load.permit((float(i), "1"))
            sizes.append(server.resident_bytes())
    servers.wait_until(
        lambda: server.log.count("successfully unloaded 'm' version 1") == ROUNDS, "the old ones are gone")
    check_memory(server, max(sizes[5:15]), max(sizes[-10:]))
    for client in control.values():
        client.close()


def test_50_version_changes_under_load(empty_repository, start_server, onnx):
    """A version comes, and the one before the last goes."""
    models.write_model(empty_repository, "m", None, {"1": {"model.onnx": adder(1)}})
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    control = {kind: Client(kind, server) for kind in ("http", "grpc")}
    sizes = []
    with under_load(server, "m", (1.0, "1")) as load:
        for i in range(2, ROUNDS + 2):
            load.permit((i - 1.0, str(i - 1)), (float(i), str(i)))
            models.write_model(empty_repository, "m", None, {str(i): {"model.onnx": adder(i)}})
            control["http" if i % 2 else "grpc"].load_model("m")
            load.permit((float(i), str(i)))
            shutil.rmtree(empty_repository / "m" / str(i - 1))
            sizes.append(server.resident_bytes())
    server.wait_for_match(rf"loading: m:{ROUNDS + 1}\b")
    for i in range(1, ROUNDS + 2):
        assert len(re.findall(rf"loading: m:{i}\b", server.log)) == 1
    check_memory(server, max(sizes[5:15]), max(sizes[-10:]))
    for client in control.values():
        client.close()


def test_memory_goes_back_after_unloading(empty_repository, start_server, onnx):
    for i in range(8):
        models.write_model(empty_repository, f"m{i}", None, {"1": {"model.onnx": adder(i)}})
    server = start_server(empty_repository, args=EXPLICIT)
    client = Client("grpc", server)

    def cycle():
        for i in range(8):
            client.load_model(f"m{i}")
        full = server.resident_bytes()
        for i in range(8):
            client.unload_model(f"m{i}")
        return full

    sizes = [cycle() for _ in range(6)]
    check_memory(server, sizes[1], sizes[-1])
    client.close()


def test_ensembles_answer_while_their_parts_are_reloaded(empty_repository, start_server, onnx):
    models.write_model(empty_repository, "part", None, {"1": {"model.onnx": adder(0)}})
    models.write_model(empty_repository, "e", """
platform: "ensemble"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [ {
  model_name: "part" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" }
} ] }
""")
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=e"])
    control = Client("http", server)
    path = empty_repository / "part" / "1" / "model.onnx"
    with under_load(server, "e", (0.0, "1")) as load:
        for i in range(1, 16):
            load.permit((i - 1.0, "1"), (float(i), "1"))
            files.replace(path, adder(i).SerializeToString())
            control.load_model("part")
            load.permit((float(i), "1"))
    control.close()
