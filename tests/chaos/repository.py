# SPDX-License-Identifier: Apache-2.0
"""The models: of each kind one whose right response follows from the request."""

import dataclasses

import numpy as np
import onnx

from harness import decoupled, files, isolation, models, openai_models, python_models, sequences
from harness import server as servers
from harness import tensorflow_models, torch_models

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
# A model that asks another one while it holds a resource of the rate limiter, of which there are two. The other needs
# one, too, and an isolated model both.
RESOURCE = "R"
ASKS = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.ask(request.inputs()) for request in requests]

    def ask(self, inputs):
        response = pb_utils.InferenceRequest(
            model_name="identity_limited", requested_output_names=["OUTPUT0"], inputs=inputs).exec()
        if response.has_error():
            return pb_utils.InferenceResponse(error=response.error())
        return pb_utils.InferenceResponse(response.output_tensors())
"""
# Each response of its first model goes through its second one, and only two are in work at a time.
FLOW = "flow"
FLOW_CONFIG = (
    'platform: "ensemble"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('IN', 'INT32', [-1])}, {models.tensor_config('DELAY', 'UINT32', [-1])}, "
    f"{models.tensor_config('WAIT', 'UINT32', [1])} ]\n"
    f"output [ {models.tensor_config('OUT', 'INT32', [1])} ]\n"
    'ensemble_scheduling { step [ { model_name: "repeat" model_version: -1\n'
    'input_map { key: "IN" value: "IN" } input_map { key: "DELAY" value: "DELAY" } '
    'input_map { key: "WAIT" value: "WAIT" } output_map { key: "OUT" value: "EACH" } },\n'
    '{ model_name: "identity_number" model_version: -1\n'
    'input_map { key: "INPUT0" value: "EACH" } output_map { key: "OUTPUT0" value: "OUT" } } ]\n'
    "max_inflight_requests: 2 }\n")
# In the store, when there is one.
REMOTE = "from_store"
CHANGING = "changing"
# Version N of it adds N: 1 is stable, 2 the canary, and 3 gets copies, whose answers nobody must see.
CANARY = "canary"
STABLE, SHARED, SHADOW = "1", "2", "3"
# Served by OpenAI's API; they say what they were told, the first in pieces.
SPEAKERS = ("echo", "parrot")
# Answers a first number and a count with so many responses, each of which is long and says its number.
PIECES = "pieces"
PIECE_BYTES = 50_000
PIECES_CODE = f"""
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            numbers = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().tolist()
            threading.Thread(target=self.send, args=(*numbers, request.get_response_sender())).start()

    def send(self, start, count, sender):
        for number in range(start, start + count):
            piece = np.array([str(number).encode().ljust({PIECE_BYTES}, b".")], object)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", piece)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


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
    """The model `changing`, or another one in its place."""
    folder = path / CHANGING / "1"
    folder.mkdir(parents=True, exist_ok=True)
    config = path / CHANGING / "config.pbtxt"
    if not config.exists():
        config.write_text('platform: "onnxruntime_onnx"\nmax_batch_size: 0\n' + FLOATS)
    files.replace(folder / "model.onnx", onnx_adder(number).SerializeToString())


def write_canary(path):
    values = {"version_labels": f"stable={STABLE}", "default_version_label": "stable", "canary_version": SHARED,
              "shadow_version": SHADOW, "shadow_percent": "20"}  # fmt: skip
    config = 'platform: "onnxruntime_onnx"\nmax_batch_size: 0\nversion_policy { all { } }\n' + FLOATS
    config += "".join(openai_models.parameter(name, value) for name, value in values.items())
    models.write_model(path, CANARY, config,
                       {version: {"model.onnx": onnx_adder(int(version))} for version in (STABLE, SHARED, SHADOW)})


def limited(count):
    """One instance that needs so much of the resource."""
    resource = f'{{ name: "{RESOURCE}" global: true count: {count} }}'
    return f"instance_group [ {{ kind: KIND_CPU count: 1 rate_limiter {{ resources [ {resource} ] }} }} ]\n"


def piece(number):
    """What such a response says."""
    return str(number).encode().ljust(PIECE_BYTES, b".")


def write_pieces(path):
    python_models.write(path, PIECES, PIECES_CODE, config=(
        f"input [ {models.tensor_config('INPUT0', 'INT64', [2])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'BYTES', [1])} ]\n" + decoupled.DECOUPLED))


def write_speakers(path):
    echo, parrot = SPEAKERS
    python_models.write(path, echo, openai_models.ECHO, openai_models.ECHO_CONFIG)
    names = {"openai": "completions", "openai_text_input": "INPUT0", "openai_text_output": "OUTPUT0"}
    models.write_model(path, parrot, models.identity_config("BYTES", [1])
                       + "".join(openai_models.parameter(name, value) for name, value in names.items()))


def write_of_frameworks(path):
    """Models of frameworks that are built only where they are installed."""
    rows = [("INPUT0", "FP32", [-1])], [("OUTPUT0", "FP32", [-1])]
    if servers.has_backend("pytorch") and (servers.build_folder() / torch_models.MAKER).exists():
        made = torch_models.Repository(path)
        code = 'def forward(self, INPUT0):\n    return {"OUTPUT0": INPUT0}\n'
        made.add("pytorch", code, torch_models.config(*rows, BATCHED, max_batch_size=8)).write()
        yield Identity("pytorch", is_batched=True)
    if servers.has_backend("tensorflow"):
        graph, inputs, outputs = tensorflow_models.echo("FP32", [-1, -1])
        tensorflow_models.write_saved_model(
            path, "tensorflow", (graph, {"INPUT0": inputs["x"]}, {"OUTPUT0": outputs["y"]}),
            'platform: "tensorflow_savedmodel"\nmax_batch_size: 8\n' + BATCHED + FLOATS)
        yield Identity("tensorflow", is_batched=True)


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
    python_models.write(path, "asks", ASKS, config=FLOATS + limited(1))
    models.write_model(path, "identity_limited", 'backend: "identity"\n' + FLOATS + limited(1))
    models.write_model(path, "isolated", 'backend: "identity"\n' + FLOATS + limited(2) + ISOLATED)
    models.write_model(path, "chain", CHAIN)
    decoupled.write_repeat(path)
    models.write_model(path, "identity_number", models.identity_config("INT32", [1]))
    models.write_model(path, FLOW, FLOW_CONFIG)
    known = [Identity("identity"), Identity("identity_batched", is_batched=True), Identity("cached"),
             Identity("python_one", is_python=True), Identity("python_two", is_python=True),
             Identity("python_batched", is_batched=True, is_python=True), Identity("isolated"), Identity("chain"),
             Identity("asks", is_python=True), Identity("identity_limited")]
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
        write_canary(path)
    if servers.has_backend("openvino"):
        models.write_model(path, "openvino", 'backend: "openvino"\nmax_batch_size: 8\n'
                           'default_model_filename: "model.onnx"\n' + FLOATS,
                           {"1": {"model.onnx": models.onnx_identity("FP32", ["n", "m"])}})
        known.append(Identity("openvino", is_batched=True))
    write_speakers(path)
    write_pieces(path)
    return [*known, *write_of_frameworks(path)]


def write_remote(path):
    """The model of the store, with a file of some size to be copied."""
    models.write_model(path, REMOTE, models.identity_config("FP32", [-1]), {"1": {"data.bin": bytes(4 << 20)}})
