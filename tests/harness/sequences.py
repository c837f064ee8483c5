# SPDX-License-Identifier: Apache-2.0
"""Models that show what a sequence batcher does, and a client that sends sequences.

`show` answers each request with the whole batch it was part of: BATCH has one number per position of
the batch, which `describe` turns into "7s" (id 7 with START), "7", "7e" or "-" (padding).
`keep` answers with the tag that its sequence started with, which it has as an implicit state.
"""

import queue

import numpy as np
import tritonclient.grpc as grpc
from onnx import TensorProto, helper

from harness import models

START, END = 1, 2
CONTROLS = """
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }
  ]
"""


def onnx_show(size):
    """OUTPUT = INPUT, and BATCH = 8 * CORRID + 4 * READY + 2 * END + START of every position."""
    controls = ["START", "END", "READY"]
    nodes = [helper.make_node("Identity", ["INPUT"], ["OUTPUT"])]
    nodes += [helper.make_node("Cast", [name], [f"{name}64"], to=TensorProto.INT64) for name in controls]
    nodes += [
        helper.make_node("Mul", ["CORRID", "eight"], ["shifted_id"]),
        helper.make_node("Mul", ["READY64", "four"], ["shifted_ready"]),
        helper.make_node("Mul", ["END64", "two"], ["shifted_end"]),
        helper.make_node("Sum", ["shifted_id", "shifted_ready"], ["sum0"]),
        helper.make_node("Sum", ["sum0", "shifted_end"], ["sum1"]),
        helper.make_node("Sum", ["sum1", "START64"], ["code"]),
        helper.make_node("Transpose", ["code"], ["row"]),
        helper.make_node("Shape", ["code"], ["column_shape"]),
        helper.make_node("Expand", ["row", "column_shape"], ["BATCH"]),
    ]
    # Sum works on floats alone.
    for node in nodes:
        if node.op_type == "Sum":
            node.op_type = "Add"
    constants = [
        helper.make_tensor(name, TensorProto.INT64, [1], [value])
        for name, value in (("eight", 8), ("four", 4), ("two", 2))
    ]
    return models.onnx_model(
        nodes,
        [("INPUT", TensorProto.INT32, ["n", size])]
        + [(name, TensorProto.INT32, ["n", 1]) for name in controls]
        + [("CORRID", TensorProto.INT64, ["n", 1])],
        [("OUTPUT", TensorProto.INT32, ["n", size]), ("BATCH", TensorProto.INT64, ["n", "m"])],
        constants,
    )


def onnx_keep():
    """OUTPUT = the INPUT of the first request of the sequence."""
    return models.onnx_model(
        [
            helper.make_node("Cast", ["START"], ["is_start"], to=TensorProto.BOOL),
            helper.make_node("Where", ["is_start", "INPUT", "STATE_IN"], ["OUTPUT"]),
            helper.make_node("Identity", ["OUTPUT"], ["STATE_OUT"]),
        ],
        [
            ("INPUT", TensorProto.INT64, ["n", 1]),
            ("START", TensorProto.INT32, ["n", 1]),
            ("STATE_IN", TensorProto.INT64, ["n", 1]),
        ],
        [("OUTPUT", TensorProto.INT64, ["n", 1]), ("STATE_OUT", TensorProto.INT64, ["n", 1])],
    )


def write_show(repository, name, strategy="direct { }", slots=4, instances=1, idle_us=60_000_000, size=1,
               extra=""):
    config = (
        f'platform: "onnxruntime_onnx"\nmax_batch_size: {slots}\n'
        f"input [ {models.tensor_config('INPUT', 'INT32', [size])} ]\n"
        f"output [ {models.tensor_config('OUTPUT', 'INT32', [size])}, "
        f"{models.tensor_config('BATCH', 'INT64', [-1])} ]\n"
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: {idle_us} {CONTROLS} }}\n"
        f"instance_group [ {{ kind: KIND_CPU count: {instances} }} ]\n" + extra
    )
    onnx_size = "k" if size < 0 else size
    models.write_model(repository, name, config, {"1": {"model.onnx": onnx_show(onnx_size)}})


def write_keep(repository, name, strategy="direct { }", slots=4, instances=1, idle_us=1_000_000):
    config = (
        f'platform: "onnxruntime_onnx"\nmax_batch_size: {slots}\n'
        f"input [ {models.tensor_config('INPUT', 'INT64', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT', 'INT64', [1])} ]\n"
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: {idle_us}\n"
        '  control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START '
        "int32_false_true: [ 0, 1 ] } ] } ]\n"
        '  state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT64 dims: [ 1 ] } ]\n'
        f"}}\ninstance_group [ {{ kind: KIND_CPU count: {instances} }} ]\n"
    )
    models.write_model(repository, name, config, {"1": {"model.onnx": onnx_keep()}})


def describe(codes):
    """The numbers of BATCH as text, one word per position."""
    words = []
    for code in np.asarray(codes).ravel():
        if not code & 4:
            words.append("-")
            continue
        words.append(f"{code >> 3}" + ("s" if code & 1 else "") + ("e" if code & 2 else ""))
    return " ".join(words)


class Stream:
    """One stream, whose requests reach the server in the order in which they are sent."""

    def __init__(self, server):
        self.answers = queue.Queue()
        self.client = grpc.InferenceServerClient(server.grpc)
        self.client.start_stream(callback=lambda result, error: self.answers.put((result, error)))
        self.sent = 0

    def send(self, model, sequence, flags=0, values=(1,), datatype="INT32", **options):
        tensor = np.array([values], models.TYPES[datatype][1])
        given = grpc.InferInput("INPUT", list(tensor.shape), datatype)
        given.set_data_from_numpy(tensor)
        self.client.async_stream_infer(
            model,
            [given],
            sequence_id=sequence,
            sequence_start=bool(flags & START),
            sequence_end=bool(flags & END),
            request_id=str(self.sent),
            **options,
        )
        self.sent += 1

    def receive(self, timeout=30):
        """The next answer: its result, or the text of its error."""
        result, error = self.answers.get(timeout=timeout)
        return result if error is None else error.message()

    def batches(self, count):
        """The batches that the next `count` answers were part of, each once. A stream has its answers in
        the order of its requests, whatever runs first."""
        seen = []
        for _ in range(count):
            result = self.receive()
            text = describe(result.as_numpy("BATCH")) if not isinstance(result, str) else result
            if text not in seen:
                seen.append(text)
        return seen

    def close(self, cancel=False):
        self.client.stop_stream(cancel_requests=cancel)
        self.client.close()
