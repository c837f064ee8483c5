# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's models and requests to them."""

from harness import models, openvino_models
from harness.openvino_models import config, parameter

from compat.frameworks.cases import Case, batches, fp32, mistakes, request
from compat.frameworks.pytorch_cases import sequence_steps

PAIR = fp32("a", "b"), fp32("sum", "difference")
CHOICES = {
    "INFERENCE_NUM_THREADS": ("1", "many", "-1"),
    "COMPILATION_NUM_THREADS": ("many",),
    "NUM_STREAMS": ("1", "AUTO", "NUMA", "numa", "many", "-3"),
    "PERFORMANCE_HINT": ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT", "latency", "fast"),
    "HINT_BF16": ("NO", "maybe"),
    "SKIP_OV_DYNAMIC_BATCHSIZE": ("YES", "NO", "maybe"),
    "ENABLE_BATCH_PADDING": ("YES", "NO", "maybe"),
    "RESHAPE_IO_LAYERS": ("YES", "NO", "maybe"),
    "CPU_EXTENSION_PATH": ("/no/such/library.so",),
    "TARGET_DEVICE": ("CPU",),
    "NO_SUCH_PARAMETER": ("5",),
}


def case(name, made, settings, requests=(), **more):
    return Case(f"openvino_{name}", "openvino", settings, list(requests), made=made, **more)


def type_cases():
    for datatype in openvino_models.TYPES:
        io = [("x", datatype, [2, 3])], [("y", datatype, [2, 3])]
        requests = [request(f"shape {s}", ("x", s), datatype=datatype) for s in ((2, 3), (3, 2))]
        yield case(f"echo_{datatype}", ("echo", datatype, "2x3"), config(*io), requests)
        io = [("x", datatype, [3])], [("y", datatype, [3])]
        requests = [request(f"{n} rows", ("x", (n, 3)), datatype=datatype) for n in (1, 8, 9)]
        yield case(f"batch_{datatype}", ("echo", datatype, "?x3"), config(*io, "dynamic_batching { }", 8), requests)
        if datatype not in ("BYTES", "BOOL"):
            io = [("a", datatype, [2]), ("b", datatype, [2])], [("sum", datatype, [2]), ("difference", datatype, [2])]
            pair = request("a pair", ("a", (2,)), ("b", (2,)), datatype=datatype)
            yield case(f"sums_{datatype}", ("add_sub", datatype, "2"), config(*io), [pair])


def shape_cases():
    rows = batches("a", "b")
    for dims in ("?x4", "1x4", "8x4"):
        yield case(f"batches_{dims.replace('?', 'n')}", ("add_sub", "FP32", dims), config(*PAIR, "", 8), rows)
    few = [request("four", ("a", (4,)), ("b", (4,)))]
    yield case("unbatched", ("add_sub", "FP32", "4"), config(*PAIR), few)
    variable = [request(f"{n} rows", ("x", (n, 4))) for n in (1, 5)]
    for dims in ("?x?", "?x4", "1x4"):
        settings = config(fp32("x", dims=[-1, -1]), fp32("y", dims=[-1, -1]))
        yield case(f"variable_{dims.replace('?', 'n')}", ("echo", "FP32", dims), settings, variable)
    settings = config(fp32("x", dims=[-1]), [("y", "INT64", [1, -1])])
    yield case("shape_of_the_data", ("positive", "FP32", "?"), settings, [request("nine", ("x", (9,)))])
    two = "reshape { shape: [ 2, 2 ] }"
    settings = config(fp32("x", extra=two), fp32("y", extra=two), "", 8)
    yield case("reshaped", ("echo", "FP32", "?x2x2"), settings, [request("three rows", ("x", (3, 4)))])
    settings = config(fp32("x", dims=[1]), fp32("y", dims=[1]))
    yield case("scalar", ("echo", "FP32", "scalar"), settings, [request("one", ("x", (1,)))])
    settings = config(fp32("x"), [("y", "FP64", [4])], "", 8)
    yield case("converted", ("echo", "FP32", "?x4"), settings, [request("two rows", ("x", (2, 4)))])


def completion_cases():
    plain = 'backend: "openvino"\n'
    for name, settings in (("", plain), ("_batched", plain + "max_batch_size: 8\n"), ("_unbatched", plain + "max_batch_size: 0\n")):
        for dims in ("?x4", "1x4", "?x?"):
            rows = [request(f"{n} rows", ("a", (n, 4)), ("b", (n, 4))) for n in (1, 3)]
            yield case(f"completed{name}_{dims.replace('?', 'n')}", ("add_sub", "FP32", dims), settings, rows)
    settings = f"{plain}input [ {models.tensor_config('a', 'FP32', [-1, 4])}, {models.tensor_config('b', 'FP32', [-1, 4])} ]\n"
    yield case("completed_outputs", ("add_sub", "FP32", "?x4"), settings, [request("a row", ("a", (1, 4)), ("b", (1, 4)))])


def loading_cases():
    plain = 'backend: "openvino"\n'
    one, two = ("echo", "FP32", "?x4"), [request("two rows", ("x", (2, 4)))]
    io = config(fp32("x"), fp32("y"), "", 8)
    yield case("load_other_name", one, io + 'default_model_filename: "net.xml"\n', two, file_name="net.xml")
    yield case("load_instances", one, io + "instance_group [ { kind: KIND_CPU count: 3 } ]\n", two)
    yield case("load_kind_gpu", one, io + "instance_group [ { kind: KIND_GPU } ]\n", two)
    yield case("load_kind_model", one, io + "instance_group [ { kind: KIND_MODEL } ]\n", two)
    for name, inputs, outputs in (
        ("unknown_input", fp32("z"), fp32("y")),
        ("unknown_output", fp32("x"), fp32("z")),
        ("two_inputs", fp32("x", "z"), fp32("y")),
        ("two_outputs", fp32("x"), fp32("y", "z")),
        ("narrow_input", fp32("x", dims=[3]), fp32("y", dims=[3])),
        ("narrow_output", fp32("x"), fp32("y", dims=[3])),
        ("flat_input", fp32("x", dims=[4, 1]), fp32("y")),
        ("another_type", [("x", "INT32", [4])], [("y", "INT32", [4])]),
        ("text_input", [("x", "BYTES", [4])], fp32("y")),
    ):
        yield case(f"load_{name}", one, config(inputs, outputs, "", 8), two)
    onnx = {"model.onnx": models.onnx_add_sub("FP32", ["n", 16])}
    pair = [request(f"{n} rows", ("INPUT0", (n, 16)), ("INPUT1", (n, 16))) for n in (1, 4)]
    names = [(f"INPUT{i}", "FP32", [16]) for i in range(2)], [(f"OUTPUT{i}", "FP32", [16]) for i in range(2)]
    named = 'default_model_filename: "model.onnx"\n'
    yield Case("openvino_onnx", "openvino", config(*names, "", 8) + named, pair, files=onnx)
    yield Case("openvino_onnx_completed", "openvino", plain + named, pair, files=onnx)
    for name, files in (("empty", {"model.xml": b""}), ("text", {"model.xml": b"not a model\n"}), ("missing", {})):
        yield Case(f"openvino_load_{name}", "openvino", io, files=files)


def other_cases():
    rows = [request(f"{n} rows", ("a", (n, 4)), ("b", (n, 4))) for n in (1, 8)]
    for key, choices in CHOICES.items():
        for value in choices:
            name = f"parameter_{key}_{value.replace('/', '_')}"
            yield case(name, ("add_sub", "FP32", "?x4"), config(*PAIR, parameter(key, value), 8), rows)
    start = '{ name: "start" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] }'
    states = '{ input_name: "state" output_name: "next" data_type: TYPE_FP32 dims: [ 1 ] }'
    text = f"sequence_batching {{ control_input [ {start} ] state [ {states} ] }}"
    settings = config(fp32("x", dims=[1]), fp32("y", dims=[1]), text, 4)
    yield case("state", ("state", "FP32", "?x1"), settings, sequence_steps(name="x"))
    accumulate = [request(f"time {i}", ("x", (1, 4))) for i in range(3)]
    settings = config(fp32("x", dims=[1, 4]), fp32("y", dims=[1, 4]))
    yield case("variable_inside", ("accumulate", "FP32", "1x4"), settings, accumulate)
    asked = mistakes("a", "b", "difference")
    yield case("mistakes", ("add_sub", "FP32", "?x4"), config(*PAIR, "", 8), asked)
    asked = mistakes("a", "b", "difference", batched=False)
    yield case("mistakes_unbatched", ("add_sub", "FP32", "4"), config(*PAIR), asked)


def cases():
    yield from type_cases()
    yield from shape_cases()
    yield from completion_cases()
    yield from loading_cases()
    yield from other_cases()


Repository = openvino_models.Repository
