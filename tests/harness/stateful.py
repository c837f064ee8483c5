# SPDX-License-Identifier: Apache-2.0
"""ONNX models whose results depend on earlier requests or on the others in their batch.

| model | what it computes |
| --- | --- |
| controls | OUTPUT = READY * (INPUT + START): what the controls say, without any state |
| accumulate | OUTPUT = INPUT + STATE, which is the new STATE; START begins at 0 where there is that control |
| collect | STATE = STATE and INPUT one after the other, OUTPUT = their sum: a state that grows |
| remember | OUTPUT = STATE, STATE = INPUT, both strings |
| ragged | Y = 2 X for requests of any size, and what each kind of batch input says of the batch |
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import models

START = '{ name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] }'
READY = '{ name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }'


def shape(batching, *dims):
    return (["n"] if batching else []) + list(dims)


def onnx_controls(batching):
    return models.onnx_model(
        [
            helper.make_node("Add", ["INPUT", "START"], ["sum"]),
            helper.make_node("Mul", ["sum", "READY"], ["OUTPUT"]),
        ],
        [(name, TensorProto.INT32, shape(batching, 1)) for name in ("INPUT", "START", "READY")],
        [("OUTPUT", TensorProto.INT32, shape(batching, 1))],
    )


def onnx_accumulate(datatype, batching, with_start):
    kind = models.TYPES[datatype][2]
    nodes = [
        helper.make_node("Add", ["INPUT", "kept"], ["OUTPUT"]),
        helper.make_node("Identity", ["OUTPUT"], ["STATE_OUT"]),
    ]
    inputs = [("INPUT", kind, shape(batching, 1)), ("STATE_IN", kind, shape(batching, 1))]
    if with_start:
        inputs.append(("START", TensorProto.INT32, shape(batching, 1)))
        nodes[:0] = [
            helper.make_node("Cast", ["START"], ["is_start"], to=TensorProto.BOOL),
            helper.make_node("Sub", ["STATE_IN", "STATE_IN"], ["zero"]),
            helper.make_node("Where", ["is_start", "zero", "STATE_IN"], ["kept"]),
        ]
    else:
        nodes[0].input[1] = "STATE_IN"
    outputs = [(name, kind, shape(batching, 1)) for name in ("OUTPUT", "STATE_OUT")]
    return models.onnx_model(nodes, inputs, outputs)


def onnx_collect(batching):
    axis = 1 if batching else 0
    return models.onnx_model(
        [
            helper.make_node("Concat", ["STATE_IN", "INPUT"], ["STATE_OUT"], axis=axis),
            helper.make_node("ReduceSum", ["STATE_OUT", "axis"], ["OUTPUT"], keepdims=1),
        ],
        [
            ("INPUT", TensorProto.INT32, shape(batching, 1)),
            ("STATE_IN", TensorProto.INT32, shape(batching, "k")),
        ],
        [
            ("OUTPUT", TensorProto.INT32, shape(batching, 1)),
            ("STATE_OUT", TensorProto.INT32, shape(batching, "m")),
        ],
        [helper.make_tensor("axis", TensorProto.INT64, [1], [axis])],
    )


def onnx_remember():
    return models.onnx_model(
        [
            helper.make_node("Identity", ["STATE_IN"], ["OUTPUT"]),
            helper.make_node("Identity", ["INPUT"], ["STATE_OUT"]),
        ],
        [(name, TensorProto.STRING, ["n", 1]) for name in ("INPUT", "STATE_IN")],
        [(name, TensorProto.STRING, ["n", 1]) for name in ("OUTPUT", "STATE_OUT")],
    )


def state_config(datatype, dims, extra=""):
    dims = ", ".join(map(str, dims))
    return (
        'state [ { input_name: "STATE_IN" output_name: "STATE_OUT" '
        f"data_type: {models.CONFIG_TYPE[datatype]} dims: [ {dims} ] {extra} }} ]"
    )


def initial_state(datatype, dims, data):
    """`data` is `zero_data: true` or `data_file: "name"`."""
    dims = ", ".join(map(str, dims))
    return (
        f'initial_state {{ name: "first" data_type: {models.CONFIG_TYPE[datatype]} '
        f"dims: [ {dims} ] {data} }}"
    )


def write(repository, name, model, datatype="INT32", controls=(), state="", slots=4, strategy="direct { }",
          shows_state=(), files=None, extra=""):
    """A sequence model; `shows_state` are the dims of STATE_OUT where clients may ask for it, `files`
    what lies in its folder initial_state."""
    outputs = [models.tensor_config("OUTPUT", datatype, [1])]
    if shows_state:
        outputs.append(models.tensor_config("STATE_OUT", datatype, shows_state))
    config = (
        f'platform: "onnxruntime_onnx"\nmax_batch_size: {slots}\n'
        f"input [ {models.tensor_config('INPUT', datatype, [1])} ]\n"
        f"output [ {', '.join(outputs)} ]\n"
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: 60000000\n"
        f"  control_input [ {', '.join(controls)} ]\n  {state}\n}}\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n" + extra
    )
    folder = models.write_model(repository, name, config, {"1": {"model.onnx": model}})
    if files:
        (folder / "initial_state").mkdir()
        for file_name, content in files.items():
            (folder / "initial_state" / file_name).write_bytes(content)


# Batch input → (kind, output that shows it, its shape in the model, its dims in the configuration)
BATCH_INPUTS = {
    "COUNT": ("BATCH_ELEMENT_COUNT", ["n"]),
    "SUM": ("BATCH_ACCUMULATED_ELEMENT_COUNT", ["n"]),
    "OFFSET": ("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", ["p"]),
    "MAX": ("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", ["q"]),
    "SHAPES": ("BATCH_ITEM_SHAPE", ["n", 1]),
    "FLAT": ("BATCH_ITEM_SHAPE_FLATTEN", ["r"]),
}


def onnx_ragged():
    nodes = [helper.make_node("Add", ["X", "X"], ["Y"])]
    outputs = [("Y", TensorProto.FLOAT, ["y"])]
    for name, (_, dims) in BATCH_INPUTS.items():
        if name == "MAX":
            nodes += [
                helper.make_node("Shape", ["MAX"], ["max"]),
                helper.make_node("Shape", ["COUNT"], ["requests"]),
                helper.make_node("Expand", ["max", "requests"], ["MAX_SEEN"]),
            ]
            outputs.append(("MAX_SEEN", TensorProto.INT64, ["n"]))
        elif name == "OFFSET":
            # One more than there are requests: an output has as many rows as the batch.
            nodes.append(helper.make_node("Slice", ["OFFSET", "begin", "end"], ["OFFSET_SEEN"]))
            outputs.append(("OFFSET_SEEN", TensorProto.INT32, ["n"]))
        else:
            nodes.append(helper.make_node("Identity", [name], [f"{name}_SEEN"]))
            outputs.append((f"{name}_SEEN", TensorProto.INT32, dims))
    inputs = [("X", TensorProto.FLOAT, ["x"])]
    inputs += [(name, TensorProto.INT32, dims) for name, (_, dims) in BATCH_INPUTS.items()]
    constants = [numpy_helper.from_array(np.array([value], np.int64), name)
                 for name, value in (("begin", 0), ("end", -1))]
    return models.onnx_model(nodes, inputs, outputs, constants)


def write_ragged(repository, name="ragged", delay_us=0):
    batch_inputs = ", ".join(
        f'{{ kind: {kind} target_name: "{name}" data_type: TYPE_INT32 source_input: "X" }}'
        for name, (kind, _) in BATCH_INPUTS.items()
    )
    outputs = [models.tensor_config("Y", "FP32", [-1])]
    for seen, (_, dims) in BATCH_INPUTS.items():
        flat = "" if len(dims) > 1 else "reshape { shape: [ ] }"
        datatype = "INT64" if seen == "MAX" else "INT32"
        outputs.append(models.tensor_config(f"{seen}_SEEN", datatype, [1], flat))
    config = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
        f"input [ {models.tensor_config('X', 'FP32', [-1], 'allow_ragged_batch: true')} ]\n"
        f"output [ {', '.join(outputs)} ]\n"
        f"batch_input [ {batch_inputs} ]\n"
        'batch_output [ { target_name: "Y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" } ]\n'
        f"dynamic_batching {{ max_queue_delay_microseconds: {delay_us} }}\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    models.write_model(repository, name, config, {"1": {"model.onnx": onnx_ragged()}})
