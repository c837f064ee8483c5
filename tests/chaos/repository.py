# SPDX-License-Identifier: Apache-2.0
"""The models: of each kind one whose right response follows from the request."""

import dataclasses

import numpy as np
import onnx

from harness import decoupled, isolation, models, python_models, sequences
from harness import server as servers

ISOLATION_TIMEOUT_SECONDS = 10
ISOLATED = isolation.ISOLATED + isolation.parameter("isolation_timeout_secs", ISOLATION_TIMEOUT_SECONDS)
BATCHED = "dynamic_batching { }\n"
CACHED = "response_cache { enable: true }\n"
FLOATS = (f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
          f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n")
CHAIN = ('platform: "ensemble"\nmax_batch_size: 0\n' + FLOATS
         + 'ensemble_scheduling { step [ { model_name: "python_one" model_version: -1\n'
         'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "MIDDLE" } },\n'
         '{ model_name: "identity" model_version: -1\n'
         'input_map { key: "INPUT0" value: "MIDDLE" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }\n')
# In the store, when there is one.
REMOTE = "from_store"
CHANGING = "changing"


@dataclasses.dataclass(frozen=True)
class Identity:
    """A model that answers INPUT0 in OUTPUT0."""

    name: str
    is_batched: bool = False
    is_python: bool = False

    def values(self, rng, size):
        values = np.arange(size, dtype=np.float32) + rng.randrange(1 << 20)
        return values.reshape(1, size) if self.is_batched else values


def onnx_adder(number):
    """OUTPUT0 = INPUT0 + number."""
    constant = onnx.numpy_helper.from_array(np.array([number], np.float32), "number")
    return models.onnx_model(
        [onnx.helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", onnx.TensorProto.FLOAT, ["n"])], [("OUTPUT0", onnx.TensorProto.FLOAT, ["n"])], [constant])


def write_changing(path, number):
    """The model `changing`, in one step for whoever reads the file meanwhile."""
    folder = path / CHANGING / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (path / CHANGING / "config.pbtxt").write_text('platform: "onnxruntime_onnx"\nmax_batch_size: 0\n' + FLOATS)
    (folder / "new").write_bytes(onnx_adder(number).SerializeToString())
    (folder / "new").rename(folder / "model.onnx")


def write(path):
    """Writes the repository; returns the models that the build can serve, as Identity."""
    models.write_model(path, "identity", models.identity_config("FP32", [-1]))
    models.write_model(path, "identity_batched",
                       models.identity_config("FP32", [-1], max_batch_size=8, extra=BATCHED))
    models.write_model(path, "cached", models.identity_config("FP32", [-1], extra=CACHED))
    python_models.write(path, "python_one", python_models.IDENTITY)
    python_models.write(path, "python_two", python_models.IDENTITY, config=FLOATS,
                        extra="instance_group [ { kind: KIND_CPU count: 2 } ]\n")
    python_models.write(path, "python_batched", python_models.IDENTITY, max_batch_size=8, extra=BATCHED)
    models.write_model(path, "isolated", models.identity_config("FP32", [-1], extra=ISOLATED))
    models.write_model(path, "chain", CHAIN)
    decoupled.write_repeat(path)
    known = [Identity("identity"), Identity("identity_batched", is_batched=True), Identity("cached"),
             Identity("python_one", is_python=True), Identity("python_two", is_python=True),
             Identity("python_batched", is_batched=True, is_python=True), Identity("isolated"), Identity("chain")]
    if servers.has_backend("onnxruntime"):
        models.write_model(path, "onnx_batched", 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n' + BATCHED + FLOATS,
                           {"1": {"model.onnx": models.onnx_identity("FP32", ["n", "m"])}})
        known.append(Identity("onnx_batched", is_batched=True))
        two = "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
        models.write_model(path, "onnx_isolated", 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n' + BATCHED + FLOATS
                           + two + ISOLATED, {"1": {"model.onnx": models.onnx_identity("FP32", ["n", "m"])}})
        known.append(Identity("onnx_isolated", is_batched=True))
        sequences.write_keep(path, "keep", idle_us=5_000_000)
        write_changing(path, 0)
    if servers.has_backend("openvino"):
        models.write_model(path, "openvino", 'backend: "openvino"\nmax_batch_size: 8\n'
                           'default_model_filename: "model.onnx"\n' + FLOATS,
                           {"1": {"model.onnx": models.onnx_identity("FP32", ["n", "m"])}})
        known.append(Identity("openvino", is_batched=True))
    return known


def write_remote(path):
    """The model of the store, with a file of some size to be copied."""
    models.write_model(path, REMOTE, models.identity_config("FP32", [-1]), {"1": {"data.bin": bytes(4 << 20)}})
