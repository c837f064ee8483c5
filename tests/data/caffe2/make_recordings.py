#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what Caffe2 itself computes: for each case the two networks, inputs and outputs.

Caffe2 is in PyTorch up to 1.8, for Python up to 3.8; so the results are kept, in recordings.json.xz, and the
tests need neither. To record again, with Python 3.8:

    python -m venv oracle
    oracle/bin/pip install --no-deps torch==1.8.1
    oracle/bin/pip install 'numpy<1.24' 'protobuf<3.21' future six typing_extensions
    oracle/bin/python tests/data/caffe2/make_recordings.py

A case is {"net", "init": base64 of the files, "inputs", "outputs": {name: {"dtype", "shape", "data": base64}}}.
"""

import base64
import json
import lzma
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from caffe2.proto import caffe2_pb2  # noqa: E402
from caffe2.python import core, workspace  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FILLS = {"f": "GivenTensorFill", "d": "GivenTensorDoubleFill", "i": "GivenTensorIntFill", "l": "GivenTensorInt64Fill"}
CASES = {}


def op(kind, inputs, outputs, **arguments):
    return core.CreateOperator(kind, inputs.split(), outputs.split(), **arguments)


def fill(name, value):
    """The operator that makes a weight."""
    value = np.asarray(value)
    if value.dtype == bool:
        return op("GivenTensorBoolFill", "", name, shape=value.shape, values=value.flatten().tolist())
    if value.dtype == np.uint8:
        return op("GivenTensorByteStringToUInt8Fill", "", name, shape=value.shape, values=[value.tobytes()])
    return op(FILLS[value.dtype.char], "", name, shape=value.shape, values=value.flatten())


def network(name, operators, inputs, outputs):
    net = caffe2_pb2.NetDef()
    net.name = name
    net.op.extend(operators)
    net.external_input.extend(inputs)
    net.external_output.extend(outputs)
    return net


def coded(array):
    array = np.asarray(array)
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "data": base64.b64encode(array.tobytes()).decode(),
    }


def case(name, operators, inputs, outputs, weights=None, init=()):
    """Runs the operators and keeps what comes of them. `inputs` and `weights` are {name: array}."""
    assert name not in CASES, name
    weights = weights or {}
    init_net = network(name + "_init", [fill(k, v) for k, v in weights.items()] + list(init), [], [])
    made = [o for operator in init_net.op for o in operator.output]
    net = network(name, operators, [*inputs, *dict.fromkeys(made)], outputs.split())
    workspace.ResetWorkspace()
    workspace.RunNetOnce(init_net)
    for key, value in inputs.items():
        workspace.FeedBlob(key, np.asarray(value))
    workspace.RunNetOnce(net)
    results = {}
    for key in outputs.split():
        blob = workspace.FetchBlob(key)
        results[key] = blob.data if hasattr(blob, "zero_point") else np.asarray(blob)
    CASES[name] = {
        "net": base64.b64encode(net.SerializeToString()).decode(),
        "init": base64.b64encode(init_net.SerializeToString()).decode(),
        "inputs": {key: coded(value) for key, value in inputs.items()},
        "outputs": {key: coded(value) for key, value in results.items()},
    }


def rand(*shape, seed=0, low=-1.0, high=1.0):
    return np.random.RandomState(seed + sum(shape)).uniform(low, high, shape).astype(np.float32)


def one(kind, x=None, name=None, **arguments):
    """An operator with one input and one output."""
    label = name or kind
    case(label, [op(kind, "x", "y", **arguments)], {"x": rand(2, 3, 4) if x is None else x}, "y")


def elementwise():
    for kind in (
        "Abs Ceil Cos Cosh Elu Erf Exp Floor HardSigmoid LeakyRelu Negative Relu Selu Sigmoid Sign Sin Sinh Softplus "
        "Softsign Sqr Swish Tan Tanh Atan Cube Copy Alias StopGradient Logit Clip"
    ).split():
        one(kind)
    for kind in ("Acos", "Asin"):
        one(kind)
    for kind in ("Log", "Sqrt", "Rsqrt", "Reciprocal"):
        one(kind, rand(2, 3, low=0.1, high=3.0))
    one("Elu", alpha=0.3, name="Elu_alpha")
    one("LeakyRelu", alpha=0.3, name="LeakyRelu_alpha")
    one("Selu", alpha=1.2, scale=2.0, name="Selu_alpha_scale")
    one("HardSigmoid", alpha=0.4, beta=0.3, name="HardSigmoid_alpha_beta")
    one("Clip", min=-0.25, max=0.5, name="Clip_both")
    one("Clip", min=0.0, name="Clip_min")
    one("Scale", scale=2.5)
    one("Pow", rand(3, 4, low=0.1, high=2.0), exponent=1.5)
    one("Dropout", is_test=1, ratio=0.5, name="Dropout_is_test")
    one("Mod", np.array([-7, -3, 0, 3, 7, 11], np.int64), divisor=4, name="Mod_dividend")
    one("Mod", np.array([-7, -3, 0, 3, 7, 11], np.int32), divisor=4, sign_follow_divisor=1, name="Mod_divisor")
    one("Not", np.array([True, False, True]))
    x = rand(2, 4, 3, 3)
    case("PRelu_channels", [op("PRelu", "x s", "y")], {"x": x}, "y", {"s": rand(4)})
    case("PRelu_shared", [op("PRelu", "x s", "y")], {"x": x}, "y", {"s": rand(1)})
    case("PRelu_nhwc", [op("PRelu", "x s", "y", order="NHWC")], {"x": rand(2, 3, 3, 4)}, "y", {"s": rand(4)})
    case(
        "LeakyReluGradient",
        [op("LeakyReluGradient", "y d", "x", alpha=0.1)],
        {"y": x, "d": rand(2, 4, 3, 3, seed=9)},
        "x",
    )
    case("Pow_input", [op("Pow", "x e", "y")], {"x": rand(3, 4, low=0.1, high=2.0), "e": rand(3, 4)}, "y")
    one("IsNaN", np.array([1.0, np.nan, np.inf], np.float32))


def binary():
    a, b = rand(2, 3, 4), rand(2, 3, 4, seed=7)
    b += np.sign(b) * 0.1
    for kind in ("Add", "Sub", "Mul", "Div"):
        for label, x, y in (
            ("", a, b),
            ("_int32", np.arange(-5, 7, dtype=np.int32), np.arange(1, 13, dtype=np.int32)),
            ("_int64", np.arange(-5, 7, dtype=np.int64), np.arange(1, 13, dtype=np.int64)),
            ("_double", a.astype(np.float64), b.astype(np.float64)),
        ):
            case(kind + label, [op(kind, "a b", "y")], {"a": x, "b": y}, "y")
        case(kind + "_numpy", [op(kind, "a b", "y")], {"a": rand(2, 1, 4), "b": b[0, :, :1]}, "y")
        wide = rand(2, 3, 4, 5)
        old = dict(broadcast=1)
        case(kind + "_old_last", [op(kind, "a b", "y", **old)], {"a": wide}, "y", {"b": rand(4, 5, seed=3) + 2})
        case(kind + "_old_axis", [op(kind, "a b", "y", axis=1, **old)], {"a": wide}, "y", {"b": rand(3, seed=3) + 2})
        case(kind + "_old_axes", [op(kind, "a b", "y", axis=1, **old)], {"a": wide, "b": rand(3, 4, seed=3) + 2}, "y")
        case(kind + "_old_first", [op(kind, "a b", "y", axis=0, **old)], {"a": wide}, "y", {"b": rand(2, seed=3) + 2})
        case(kind + "_old_one", [op(kind, "a b", "y", **old)], {"a": wide}, "y", {"b": np.float32([3])})
        case(kind + "_old_letter", [op(kind, "a b", "y", axis_str="C", **old)], {"a": wide}, "y", {"b": rand(3) + 2})
        case(
            kind + "_in_place",
            [op(kind, "a b", "a2"), op(kind, "a2 b", "a2"), op("Copy", "a2", "y")],
            {"a": a, "b": b},
            "y a2",
        )
    p, q = np.array([[True, False], [True, True]]), np.array([[False, False], [True, False]])
    for kind in ("And", "Or", "Xor"):
        case(kind, [op(kind, "a b", "y")], {"a": p, "b": q}, "y")
        case(kind + "_old", [op(kind, "a b", "y", broadcast=1, axis=0)], {"a": p, "b": q[:, 0]}, "y")
    i, j = np.array([1, 2, 3, 4]), np.array([4, 2, 0, 4])
    for kind in ("LT", "LE", "GT", "GE", "EQ", "NE"):
        for dtype in (np.float32, np.int32, np.int64, np.float64):
            if kind in ("EQ", "NE") and dtype in (np.float32, np.float64):
                continue
            case(
                f"{kind}_{np.dtype(dtype).name}",
                [op(kind, "a b", "y")],
                {"a": i.astype(dtype), "b": j.astype(dtype)},
                "y",
            )
        x = np.arange(12, dtype=np.int32).reshape(3, 4)
        case(kind + "_old", [op(kind, "a b", "y", broadcast=1)], {"a": x, "b": np.int32([4, 5, 6, 7])}, "y")
    for kind in ("EQ", "NE"):
        case(kind + "_bool", [op(kind, "a b", "y")], {"a": p, "b": q}, "y")
    for kind in ("Sum", "Max", "Min", "Mean"):
        case(kind, [op(kind, "a b c", "y")], {"a": a, "b": b, "c": a * b}, "y")
        case(kind + "_one", [op(kind, "a", "y")], {"a": a}, "y")
    case("Sum_int", [op("Sum", "a b", "y")], {"a": i.astype(np.int32), "b": j.astype(np.int32)}, "y")
    for dtype in (np.float32, np.int32, np.int64, np.float64):
        x, y = i.astype(dtype), j.astype(dtype)
        case(f"Where_{np.dtype(dtype).name}", [op("Where", "c a b", "y")], {"c": i > j, "a": x, "b": y}, "y")
    case("Where_bool", [op("Where", "c a b", "y")], {"c": p, "a": p, "b": q}, "y")
    rows = {"c": np.array([True, False]), "a": rand(2, 3), "b": rand(2, 3, seed=4)}
    case("Where_rows", [op("Where", "c a b", "y", broadcast_on_rows=1)], rows, "y")
    case("Conditional", [op("Conditional", "c a b", "y")], rows, "y")
    numbers = np.array([0.0, 1.0, 2.7, 100.2], np.float32)
    for name in ("int32", "int64", "uint8", "int16", "bool", "double", "float"):
        case(f"Cast_{name}", [op("Cast", "x", "y", to=name)], {"x": numbers}, "y")
    for number, source in (
        (1, np.int32),
        (1, np.bool_),
        (2, np.int64),
        (10, np.int32),
        (13, np.int64),
        (1, np.float64),
    ):
        x = np.array([0, 1, 1, 0]).astype(source)
        case(f"Cast_{number}_{np.dtype(source).name}", [op("Cast", "x", "y", to=number)], {"x": x}, "y")
    case("Cast_upper", [op("Cast", "x", "y", to="FLOAT")], {"x": np.int32([1, 2])}, "y")
    case("Half", [op("FloatToHalf", "x", "h"), op("HalfToFloat", "h", "y")], {"x": rand(4)}, "y h")


def convolutions():
    x, w, b = rand(2, 4, 7, 8), rand(6, 4, 3, 3, seed=1), rand(6)

    def conv(name, weights=(w, b), data=x, kind="Conv", **arguments):
        names = ["w", "b"][: len(weights)]
        case(name, [op(kind, " ".join(["x", *names]), "y", **arguments)], {"x": data}, "y", dict(zip(names, weights)))

    conv("Conv_kernel", kernel=3)
    conv("Conv_pad_stride", kernel=3, pad=1, stride=2)
    conv("Conv_sides", kernel_h=3, kernel_w=3, stride_h=2, stride_w=1, pad_t=1, pad_l=2, pad_b=0, pad_r=1)
    conv("Conv_lists", kernels=[3, 3], strides=[2, 1], pads=[1, 0, 2, 1])
    conv("Conv_dilation", kernel=3, dilation=2, pad=2)
    conv("Conv_no_bias", (w,), kernel=3)
    conv("Conv_group", (rand(6, 2, 3, 3), b), kernel=3, group=2, pad=1)
    conv("Conv_depthwise", (rand(4, 1, 3, 3), rand(4)), kernel=3, group=4, pad=1)
    conv("Conv_same", kernel=3, stride=2, legacy_pad=2)
    conv("Conv_valid", kernel=3, stride=2, legacy_pad=1)
    conv("Conv_nhwc", (rand(6, 3, 3, 4), b), rand(2, 7, 8, 4), kernel=3, pad=1, order="NHWC")
    conv("Conv2D", kind="Conv2D", kernels=[3, 3])
    conv("Conv1D", (rand(6, 4, 3), b), rand(2, 4, 9), "Conv1D", kernels=[3], strides=[2], pads=[1, 1])
    conv("Conv_1d", (rand(6, 4, 3), b), rand(2, 4, 9), kernels=[3])
    conv("Conv3D", (rand(3, 2, 2, 2, 2), rand(3)), rand(1, 2, 4, 5, 4), "Conv3D", kernels=[2, 2, 2], strides=[2, 1, 2])
    up = (rand(4, 5, 3, 3), rand(5))
    conv("ConvTranspose", up, kind="ConvTranspose", kernel=3, stride=2)
    conv("ConvTranspose_pad_adj", up, kind="ConvTranspose", kernel=3, stride=2, pad=1, adj=1)
    conv(
        "ConvTranspose_sides",
        up,
        kind="ConvTranspose",
        kernel=3,
        stride_h=2,
        stride_w=3,
        adj_h=1,
        adj_w=2,
        pad_t=1,
        pad_l=0,
        pad_b=1,
        pad_r=2,
    )
    conv("ConvTranspose_no_bias", up[:1], kind="ConvTranspose", kernel=3)
    conv(
        "ConvTranspose_nhwc",
        (rand(4, 3, 3, 5), rand(5)),
        rand(2, 5, 6, 4),
        kind="ConvTranspose",
        kernel=3,
        stride=2,
        order="NHWC",
    )
    for kind in ("MaxPool", "AveragePool"):

        def pool(label, data=x, suffix="", **arguments):
            one(kind + suffix, data, f"{kind}{suffix}_{label}", **arguments)

        pool("kernel", kernel=2, stride=2)
        pool("pad", kernel=3, stride=2, pad=1)
        pool("sides", kernel_h=2, kernel_w=3, stride_h=1, stride_w=2, pad_t=1, pad_l=1, pad_b=0, pad_r=1)
        pool("lists", kernels=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
        pool("same", kernel=3, stride=2, legacy_pad=2)
        pool("valid", kernel=3, stride=2, legacy_pad=1)
        pool("caffe", kernel=3, stride=2, legacy_pad=3)
        pool("caffe_pad", kernel=3, stride=2, pad=1, legacy_pad=3)
        pool("caffe_even", rand(1, 2, 6, 6), kernel=2, stride=3, pad=1, legacy_pad=3)
        pool("global", global_pooling=1)
        pool("global_kernel", global_pooling=1, kernel=3)
        pool("nhwc", rand(2, 7, 8, 4), kernel=3, stride=2, order="NHWC")
        pool("global_nhwc", rand(2, 7, 8, 4), global_pooling=1, order="NHWC")
        pool("x", rand(2, 3, 9), "1D", kernels=[3], strides=[2], pads=[1, 1])
        pool("x", x, "2D", kernels=[3, 3], strides=[2, 2])
        pool("x", rand(1, 2, 5, 4, 5), "3D", kernels=[2, 2, 2], strides=[2, 1, 2])
    one("AveragePool", x, "AveragePool_count_pad", kernel=3, stride=2, pad=1, count_include_pad=1)
    one("ResizeNearest", x, width_scale=2.0, height_scale=1.5)
    one("ResizeNearest", x, "ResizeNearest_down", width_scale=0.5, height_scale=0.6)
    one("ResizeNearest", rand(1, 3, 4, 2), "ResizeNearest_nhwc", width_scale=2.0, height_scale=2.0, order="NHWC")
    one("UpsampleBilinear", x, width_scale=2.0, height_scale=2.0)
    one("ChannelShuffle", rand(2, 6, 3, 4), group=3, kernel=1)
    one("ChannelShuffle", rand(2, 3, 4, 6), "ChannelShuffle_nhwc", group=2, kernel=1, order="NHWC")
    for mode in ("constant", "reflect", "edge"):
        one("PadImage", x, f"PadImage_{mode}", mode=mode, pad_t=1, pad_l=2, pad_b=3, pad_r=1, value=0.5)
    one("PadImage", rand(1, 4, 5, 2), "PadImage_nhwc", pad=2, order="NHWC")


def normalizations():
    x = rand(2, 4, 5, 3)
    parts = {"s": rand(4) + 2, "b": rand(4, seed=1), "m": rand(4, seed=2), "v": rand(4, low=0.5, high=2.0)}
    bn = "x s b m v"
    case("SpatialBN", [op("SpatialBN", bn, "y", is_test=1)], {"x": x}, "y", parts)
    case("SpatialBN_epsilon", [op("SpatialBN", bn, "y", is_test=1, epsilon=0.1)], {"x": x}, "y", parts)
    case("SpatialBN_flat", [op("SpatialBN", bn, "y", is_test=1)], {"x": rand(3, 4)}, "y", parts)
    case("SpatialBN_3d", [op("SpatialBN", bn, "y", is_test=1)], {"x": rand(1, 4, 2, 3, 2)}, "y", parts)
    case("SpatialBN_nhwc", [op("SpatialBN", bn, "y", is_test=1, order="NHWC")], {"x": rand(2, 5, 3, 4)}, "y", parts)
    case("SpatialBN_in_place", [op("SpatialBN", bn, "x", is_test=1), op("Relu", "x", "y")], {"x": x}, "y", parts)
    case(
        "SpatialBN_training",
        [op("SpatialBN", bn, "y m v sm sv", is_test=0, momentum=0.8)],
        {"x": x},
        "y m v sm sv",
        parts,
    )
    for size, arguments in ((3, dict(alpha=0.1, beta=0.75)), (5, dict(alpha=1.0, beta=0.5, bias=2.0))):
        one("LRN", rand(2, 8, 3, 3), f"LRN_{size}", size=size, **arguments)
    one("LRN", rand(2, 3, 3, 8), "LRN_nhwc", size=3, alpha=0.5, beta=0.75, order="NHWC")
    case("InstanceNorm", [op("InstanceNorm", "x s b", "y", epsilon=1e-3)], {"x": x}, "y", parts)
    case("AffineChannel", [op("AffineChannel", "x s b", "y")], {"x": x}, "y", parts)
    one("Softmax", rand(3, 4))
    one("Softmax", rand(2, 3, 4), "Softmax_flattens")
    one("Softmax", rand(2, 3, 4), "Softmax_axis2", axis=2)
    one("Softmax", rand(2, 3, 4), "Softmax_negative", axis=-1)
    one("Normalize", rand(3, 4))
    one("Normalize", rand(3, 4, 2), "Normalize_axis", axis=1)
    one("NormalizeL1", rand(3, 4))
    case("LayerNorm", [op("LayerNorm", "x", "y mean std", axis=1, epsilon=1e-3)], {"x": rand(3, 4, 2)}, "y mean std")


def matrices():
    x, w, b = rand(3, 8), rand(5, 8), rand(5)
    params = {"w": w, "b": b}
    case("FC", [op("FC", "x w b", "y")], {"x": x}, "y", params)
    case("FC_flattens", [op("FC", "x w b", "y")], {"x": rand(3, 2, 4)}, "y", params)
    case("FC_axis2", [op("FC", "x w b", "y", axis=2)], {"x": rand(2, 3, 8)}, "y", params)
    case("FC_axis_negative", [op("FC", "x w b", "y", axis=-1)], {"x": rand(2, 3, 8)}, "y", params)
    case("FC_axis2_flattens", [op("FC", "x w b", "y", axis=2)], {"x": rand(2, 3, 2, 4)}, "y", params)
    case("FC_wide_weights", [op("FC", "x w b", "y")], {"x": x}, "y", {"w": rand(5, 2, 4), "b": b})
    case("FC_weights_from_request", [op("FC", "x w b", "y")], {"x": x, "w": w}, "y", {"b": b})
    case("FCTransposed", [op("FCTransposed", "x w b", "y")], {"x": x}, "y", {"w": rand(8, 5), "b": b})
    case(
        "FCTransposed_axis",
        [op("FCTransposed", "x w b", "y", axis=2)],
        {"x": rand(2, 3, 8)},
        "y",
        {"w": rand(8, 5), "b": b},
    )
    case("MatMul", [op("MatMul", "a b", "y")], {"a": rand(3, 4), "b": rand(4, 5)}, "y")
    case("MatMul_transposed", [op("MatMul", "a b", "y", trans_a=1, trans_b=1)], {"a": rand(4, 3), "b": rand(5, 4)}, "y")
    case("MatMul_axes", [op("MatMul", "a b", "y", axis_a=2, axis_b=1)], {"a": rand(2, 3, 4), "b": rand(4, 5)}, "y")
    case("BatchMatMul", [op("BatchMatMul", "a b", "y")], {"a": rand(2, 3, 4), "b": rand(2, 4, 5)}, "y")
    case(
        "BatchMatMul_trans",
        [op("BatchMatMul", "a b", "y", trans_a=1, trans_b=1)],
        {"a": rand(2, 4, 3), "b": rand(2, 5, 4)},
        "y",
    )
    case(
        "BatchMatMul_broadcast",
        [op("BatchMatMul", "a b", "y", broadcast=1)],
        {"a": rand(2, 3, 3, 4), "b": rand(4, 5)},
        "y",
    )
    case("BatchMatMul_vector", [op("BatchMatMul", "a b", "y", broadcast=1)], {"a": rand(2, 3, 4), "b": rand(4)}, "y")
    case("DotProduct", [op("DotProduct", "a b", "y")], {"a": rand(3, 4), "b": rand(3, 4, seed=1)}, "y")
    case("DotProduct_wide", [op("DotProduct", "a b", "y")], {"a": rand(3, 4, 2), "b": rand(3, 4, 2, seed=1)}, "y")
    case("DotProduct_flat", [op("DotProduct", "a b", "y")], {"a": rand(3), "b": rand(3, seed=1)}, "y")
    case(
        "ElementwiseLinear",
        [op("ElementwiseLinear", "x w b", "y")],
        {"x": rand(3, 4)},
        "y",
        {"w": rand(4), "b": rand(4, seed=1)},
    )
    case(
        "ElementwiseLinear_flat",
        [op("ElementwiseLinear", "x w b", "y")],
        {"x": rand(3, 2, 2)},
        "y",
        {"w": rand(4), "b": rand(4, seed=1)},
    )
    y = rand(2, 3, 4)
    for kind in ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"):
        one(kind, y, kind + "_all", keepdims=0)
        one(kind, y, kind + "_axes", axes=[0, 2], keepdims=1)
        one(kind, y, kind + "_axis", axes=[1], keepdims=0)
    for side in ("Front", "Back"):
        for kind in ("Mean", "Sum", "Max"):
            one(f"Reduce{side}{kind}", y)
            one(f"Reduce{side}{kind}", y, f"Reduce{side}{kind}_two", num_reduce_dim=2)
    one("SumElements", y)
    one("SumElements", y, "SumElements_average", average=1)
    one("SumSqrElements", y)
    one("ColwiseMax", y)
    one("RowwiseMax", y)
    one("ArgMax", y)
    one("ArgMax", y, "ArgMax_axis", axis=1, keepdims=0)
    one("ArgMin", y, axis=0)
    case("TopK", [op("TopK", "x", "v i", k=2)], {"x": y}, "v i")
    case("TopK_axis", [op("TopK", "x", "v i", k=5, axis=1)], {"x": y}, "v i")


def shapes():
    x = rand(2, 3, 4)
    case("Reshape", [op("Reshape", "x", "y old", shape=[6, 4])], {"x": x}, "y old")
    case("Reshape_open", [op("Reshape", "x", "y old", shape=[0, -1])], {"x": x}, "y old")
    case("Reshape_input", [op("Reshape", "x s", "y old")], {"x": x}, "y", {"s": np.int64([4, -1])})
    case("Reshape_input_int32", [op("Reshape", "x s", "y old")], {"x": x}, "y", {"s": np.int32([3, 8])})
    case("Reshape_request", [op("Reshape", "x s", "y old")], {"x": x, "s": np.int64([4, 6])}, "y")
    case(
        "Reshape_back",
        [op("Reshape", "x", "f old", shape=[-1]), op("Relu", "f", "f"), op("Reshape", "f old", "y _")],
        {"x": x},
        "y",
    )
    case("ResizeLike", [op("ResizeLike", "x z", "y")], {"x": x, "z": rand(4, 6)}, "y")
    one("Flatten", x)
    one("Flatten", x, "Flatten_0", axis=0)
    one("Flatten", x, "Flatten_2", axis=2)
    one("FlattenToVec", x)
    one("ExpandDims", x, dims=[0, 2])
    one("Squeeze", x.reshape(2, 1, 3, 1, 4), dims=[1, 3])
    one("Transpose", x)
    one("Transpose", x, "Transpose_axes", axes=[1, 0, 2])
    one("Transpose", np.arange(6).reshape(2, 3), "Transpose_int64")
    one("NCHW2NHWC", rand(2, 3, 4, 5))
    one("NHWC2NCHW", rand(2, 3, 4, 5))
    one("MergeDim", x)
    one("PrependDim", rand(6, 2), dim_size=3)
    one("Shape", x)
    one("Shape", x, "Shape_axes", axes=[2, 0])
    one("Size", x)
    pair = {"a": x, "b": rand(2, 5, 4)}
    case("Concat", [op("Concat", "a b", "y info", axis=1)], pair, "y info")
    case("Concat_order", [op("Concat", "a b", "y info")], pair, "y info")
    case(
        "Concat_nhwc",
        [op("Concat", "a b", "y info", order="NHWC")],
        {"a": rand(1, 2, 2, 3), "b": rand(1, 2, 2, 1)},
        "y info",
    )
    case("Concat_add_axis", [op("Concat", "a b", "y info", axis=1, add_axis=1)], {"a": x, "b": x * 2}, "y info")
    case("Concat_negative", [op("Concat", "a b", "y info", axis=-1)], {"a": x, "b": x}, "y info")
    case("Concat_ints", [op("Concat", "a b", "y info", axis=0)], {"a": np.int32([1, 2]), "b": np.int32([3])}, "y info")
    case("Split", [op("Split", "x", "a b", axis=2)], {"x": x}, "a b")
    case("Split_order", [op("Split", "x", "a b c")], {"x": x}, "a b c")
    case("Split_lengths", [op("Split", "x", "a b", axis=1, split=[1, 2])], {"x": x}, "a b")
    case("Split_input", [op("Split", "x s", "a b", axis=1)], {"x": x}, "a b", {"s": np.int32([2, 1])})
    case("Split_request", [op("Split", "x s", "a b", axis=1)], {"x": x, "s": np.int32([2, 1])}, "a b")
    case("Split_add_axis", [op("Split", "x", "a b c", axis=1, add_axis=1)], {"x": x}, "a b c")
    case(
        "Split_Concat",
        [op("Concat", "a b", "c info", axis=1), op("Relu", "c", "c"), op("Split", "c info", "y z", axis=1)],
        pair,
        "y z",
    )


def selections():
    x = rand(4, 5, 3)
    one("Slice", x, starts=[1, 0, 0], ends=[3, -1, -1])
    one("Slice", x, "Slice_negative", starts=[0, -4, 0], ends=[-1, -2, -1])
    one("Slice", x, "Slice_beyond", starts=[2], ends=[100])
    case(
        "Slice_inputs",
        [op("Slice", "x s e", "y")],
        {"x": x},
        "y",
        {"s": np.int32([0, 1, 0]), "e": np.int32([-1, 3, -1])},
    )
    case(
        "Slice_request",
        [op("Slice", "x s e", "y")],
        {"x": x, "s": np.int64([0, 1, 0]), "e": np.int64([-1, -2, -1])},
        "y",
    )
    indices = np.array([[0, 2], [3, 3]])
    for dtype in (np.int32, np.int64):
        case(f"Gather_{np.dtype(dtype).name}", [op("Gather", "x i", "y")], {"x": x, "i": indices.astype(dtype)}, "y")
    case("Gather_axis", [op("Gather", "x i", "y", axis=1)], {"x": x, "i": indices}, "y")
    case("Gather_ints", [op("Gather", "x i", "y")], {"x": np.arange(5), "i": np.int32([4, 0])}, "y")
    case("BatchGather", [op("BatchGather", "x i", "y")], {"x": x, "i": np.int32([4, 0, 1])}, "y")
    one("Tile", x, tiles=3, axis=1)
    case("Tile_inputs", [op("Tile", "x t a", "y")], {"x": x}, "y", {"t": np.int32([2]), "a": np.int32([2])})
    case("NumpyTile", [op("NumpyTile", "x r", "y")], {"x": x}, "y", {"r": np.int64([2, 1, 3])})
    case("NumpyTile_request", [op("NumpyTile", "x r", "y")], {"x": x, "r": np.int64([1, 2, 1])}, "y")
    case("Range", [op("Range", "s", "y")], {"s": np.int32([5])}, "y")
    case("Range_steps", [op("Range", "a b c", "y")], {"a": np.int64([2]), "b": np.int64([11]), "c": np.int64([3])}, "y")
    case("OneHot", [op("OneHot", "i n", "y")], {"i": np.int64([2, 0, 1])}, "y", {"n": np.int64([4])})


def fills():
    case(
        "Fills",
        [op("Add", "x f", "y"), op("Cast", "b", "c", to="float")],
        {"x": rand(2, 3)},
        "y c i l d b h",
        {
            "f": rand(2, 3, seed=1),
            "i": np.int32([1, -2]),
            "l": np.int64([1 << 40, -1]),
            "d": np.float64([0.5]),
            "b": np.array([True, False]),
        },
        [op("GivenTensorInt16Fill", "", "h", shape=[2], values=[-3, 300])],
    )
    kinds = ((1, 2.5), (2, -7), (10, 1 << 40), (5, True), (13, 0.25), (6, 200))
    operators = [op("ConstantFill", "", f"c{dtype}", shape=[2, 2], dtype=dtype, value=value) for dtype, value in kinds]
    case("ConstantFill", [op("Copy", "x", "y"), *operators], {"x": rand(2)}, "y " + " ".join(f"c{d}" for d, _ in kinds))
    case("ConstantFill_like", [op("ConstantFill", "x", "y", value=1.5)], {"x": rand(2, 3)}, "y")
    case(
        "ConstantFill_as_shape",
        [op("ConstantFill", "s", "y", input_as_shape=1, value=2, dtype=2)],
        {"s": np.int64([2, 3])},
        "y",
    )
    case("ConstantFill_extra", [op("ConstantFill", "x", "y", extra_shape=[2], value=1.0)], {"x": rand(2, 3)}, "y")
    case("Replaced_by_request", [op("Relu", "x", "y")], {"x": rand(2, 3)}, "y", {"x": np.float32([1])})
    case(
        "Init_computes",
        [op("Add", "x w2", "y")],
        {"x": rand(3)},
        "y",
        {"w": rand(3)},
        [op("Scale", "w", "w2", scale=2.0)],
    )
    case(
        "Two_outputs_of_one_value",
        [op("Relu", "x", "a"), op("Copy", "a", "b"), op("Alias", "a", "c")],
        {"x": rand(3)},
        "a b c",
    )
    case("Written_twice", [op("Relu", "x", "y"), op("Copy", "y", "z"), op("Negative", "y", "y")], {"x": rand(3)}, "y z")
    case(
        "Names_of_our_own",
        [op("Relu", "t1", "t0"), op("Negative", "t0", "t2"), op("Sqr", "t2", "t3")],
        {"t1": rand(3)},
        "t3 t0",
    )
    case("Not_needed", [op("Relu", "x", "y"), op("XavierFill", "", "w", shape=[2, 2])], {"x": rand(3)}, "y")


def sparse():
    table = rand(10, 8)
    ids, lengths = np.int64([1, 3, 3, 9, 0, 2, 5]), np.int32([3, 0, 2, 2])
    base = {"i": ids, "l": lengths}
    weights = rand(7, low=0.5, high=2.0)
    for kind in ("Sum", "Mean"):
        case(f"SparseLengths{kind}", [op(f"SparseLengths{kind}", "t i l", "y")], base, "y", {"t": table})
    case(
        "SparseLengthsSum_int32",
        [op("SparseLengthsSum", "t i l", "y")],
        {"i": ids.astype(np.int32), "l": lengths},
        "y",
        {"t": table},
    )
    case("SparseLengthsSum_flat", [op("SparseLengthsSum", "t i l", "y")], base, "y", {"t": rand(10)})
    case("SparseLengthsSum_wide", [op("SparseLengthsSum", "t i l", "y")], base, "y", {"t": rand(10, 2, 3)})
    case("SparseLengthsSum_table_in_request", [op("SparseLengthsSum", "t i l", "y")], {"t": table, **base}, "y")
    case(
        "SparseLengthsWeightedSum",
        [op("SparseLengthsWeightedSum", "t w i l", "y")],
        {"w": weights, **base},
        "y",
        {"t": table},
    )
    case(
        "SparseLengthsPositionalWeightedSum",
        [op("SparseLengthsPositionalWeightedSum", "t w i l", "y")],
        base,
        "y",
        {"t": table, "w": rand(5, low=0.5)},
    )
    for kind in ("Sum", "Mean"):
        case(f"Lengths{kind}", [op(f"Lengths{kind}", "x l", "y")], {"x": rand(7, 3), "l": lengths}, "y")
    case("LengthsMax", [op("LengthsMax", "x l", "y")], {"x": rand(7, 3), "l": np.int32([3, 1, 1, 2])}, "y")
    case(
        "LengthsWeightedSum",
        [op("LengthsWeightedSum", "x w l", "y")],
        {"x": rand(7, 3), "w": weights, "l": lengths},
        "y",
    )
    quantised(table, base, weights)
    table_of = np.int32([0, 1, -1, 2, 3, -1, 4, 5, 6, 7])
    case(
        "SparseLengthsSumSparseLookup",
        [op("SparseLengthsSumSparseLookup", "i l m", "oi ol")],
        base,
        "oi ol",
        {"m": table_of},
    )
    case(
        "SparseLengthsSumSparseLookup_weights",
        [op("SparseLengthsSumSparseLookup", "i l m w", "oi ol ow")],
        {"w": weights, **base},
        "oi ol ow",
        {"m": table_of},
    )


def quantised(table, base, weights):
    for bits in (8, 4, 2):
        workspace.ResetWorkspace()
        workspace.FeedBlob("t", table)
        quantise = {
            8: "FloatToFused8BitRowwiseQuantized",
            4: "FloatToFused4BitRowwiseQuantized",
            2: "FloatToFused2BitRowwiseQuantized",
        }[bits]
        workspace.RunOperatorOnce(op(quantise, "t", "q"))
        q = workspace.FetchBlob("q")
        kind = f"Fused{bits}BitRowwise"
        case(f"SparseLengthsSum{kind}", [op(f"SparseLengthsSum{kind}", "t i l", "y")], base, "y", {"t": q})
        case(f"SparseLengthsMean{kind}", [op(f"SparseLengthsMean{kind}", "t i l", "y")], base, "y", {"t": q})
        case(
            f"SparseLengthsWeightedSum{kind}",
            [op(f"SparseLengthsWeightedSum{kind}", "t w i l", "y")],
            {"w": weights, **base},
            "y",
            {"t": q},
        )
        mapping = np.int32([0, 1, -1, 2, 3, -1, 4, 5, 6, 7])
        sparse_kind = f"{bits}BitRowwiseSparse"
        for label, m in (("", mapping), ("_whole", np.int32([0]))):
            case(
                f"SparseLengthsSum{sparse_kind}{label}",
                [op(f"SparseLengthsSum{sparse_kind}", "t i l m", "y")],
                base,
                "y",
                {"t": q, "m": m},
            )
        case(
            f"SparseLengthsWeightedSum{sparse_kind}",
            [op(f"SparseLengthsWeightedSum{sparse_kind}", "t w i l m", "y")],
            {"w": weights, **base},
            "y",
            {"t": q, "m": mapping},
        )
    workspace.ResetWorkspace()
    workspace.FeedBlob("t", table)
    workspace.RunOperatorOnce(op("FloatToRowwiseQuantized8Bits", "t", "q s"))
    q, s = workspace.FetchBlob("q"), workspace.FetchBlob("s")
    case(
        "SparseLengthsSum8BitsRowwise",
        [op("SparseLengthsSum8BitsRowwise", "t i l s", "y")],
        base,
        "y",
        {"t": q, "s": s},
    )
    case(
        "SparseLengthsWeightedSum8BitsRowwise",
        [op("SparseLengthsWeightedSum8BitsRowwise", "t w i l s", "y")],
        {"w": weights, **base},
        "y",
        {"t": q, "s": s},
    )


def decoders():
    scores = np.random.RandomState(5).dirichlet(np.ones(5) * 0.7, (9, 3)).astype(np.float32)
    lengths = np.int32([9, 4, 7])
    case(
        "CTCGreedyDecoder", [op("CTCGreedyDecoder", "x l", "n v", merge_repeated=1)], {"x": scores, "l": lengths}, "n v"
    )
    case("CTCGreedyDecoder_repeats", [op("CTCGreedyDecoder", "x", "n v", merge_repeated=0)], {"x": scores}, "n v")
    case(
        "CTCBeamSearchDecoder",
        [op("CTCBeamSearchDecoder", "x l", "n v p", beam_width=4, prune_threshold=0.01)],
        {"x": scores, "l": lengths},
        "n v p",
    )
    case(
        "CTCBeamSearchDecoder_candidates",
        [op("CTCBeamSearchDecoder", "x", "n v p", beam_width=6, num_candidates=3, prune_threshold=0.2)],
        {"x": scores},
        "n v p",
    )


def int8():
    x = rand(2, 3, 4)
    how = dict(Y_scale=0.01, Y_zero_point=100)
    first = op("Int8Quantize", "x", "q", **how)
    last = op("Int8Dequantize", "r", "y")
    case("Int8Quantize", [first, op("Int8Dequantize", "q", "y")], {"x": x}, "y")
    case("Int8Relu", [first, op("Int8Relu", "q", "r", **how), last], {"x": x}, "y")
    case(
        "Int8Slice", [first, op("Int8Slice", "q", "r", starts=[0, 1, 0], ends=[-1, 3, -1], **how), last], {"x": x}, "y"
    )
    case(
        "Int8Concat",
        [first, op("Int8Quantize", "z", "p", **how), op("Int8Concat", "q p", "r", axis=3, order="NHWC", **how), last],
        {"x": rand(1, 2, 2, 3), "z": rand(1, 2, 2, 2)},
        "y",
    )
    case("Int8Flatten", [first, op("Int8Flatten", "q", "r", **how), last], {"x": x}, "y")
    case("Int8Reshape", [first, op("Int8Reshape", "q", "r old", shape=[4, -1], **how), last], {"x": x}, "y")
    bytes_ = np.arange(24, dtype=np.uint8)
    case(
        "Int8GivenTensorFill",
        [op("Int8Dequantize", "q", "y"), op("Copy", "x", "z")],
        {"x": rand(2)},
        "y z",
        {},
        [op("Int8GivenTensorFill", "", "q", shape=[2, 12], values=bytes_.tobytes(), **how)],
    )


class Net:
    """Builds a network, weights and all, with the operators of the classic kinds."""

    def __init__(self):
        self.operators, self.weights, self.seed = [], {}, 0

    def weight(self, name, *shape, low=-0.3, high=0.3):
        self.seed += 1
        self.weights[name] = rand(*shape, seed=self.seed, low=low, high=high)
        return name

    def add(self, kind, inputs, outputs, **arguments):
        self.operators.append(op(kind, inputs, outputs, **arguments))
        return outputs.split()[0]

    def conv(self, x, name, channels, out, kernel=3, **arguments):
        weight = self.weight(name + "_w", out, channels // arguments.get("group", 1), kernel, kernel)
        bias = self.weight(name + "_b", out)
        return self.add("Conv", f"{x} {weight} {bias}", name, kernel=kernel, order="NCHW", **arguments)

    def bn(self, x, channels):
        parts = [self.weight(f"{x}_{p}", channels, low=0.5, high=1.5) for p in ("s", "b", "m", "v")]
        return self.add("SpatialBN", " ".join([x, *parts]), x, is_test=1, epsilon=1e-5)

    def fc(self, x, name, inputs, outputs, **arguments):
        return self.add(
            "FC",
            f"{x} {self.weight(name + '_w', outputs, inputs)} {self.weight(name + '_b', outputs)}",
            name,
            **arguments,
        )


def residual_classifier():
    n = Net()
    x = n.add("Relu", n.bn(n.conv("data", "conv1", 3, 8, 3, stride=2, pad=1), 8), "conv1")
    x = n.add("MaxPool", x, "pool1", kernel=3, stride=2, legacy_pad=3)
    for block, (channels, out, stride) in enumerate(((8, 8, 1), (8, 16, 2))):
        branch = n.add(
            "Relu", n.bn(n.conv(x, f"b{block}_1", channels, out, 3, pad=1, stride=stride), out), f"b{block}_1"
        )
        branch = n.bn(n.conv(branch, f"b{block}_2", out, out, 3, pad=1), out)
        if channels != out:
            x = n.bn(n.conv(x, f"b{block}_short", channels, out, 1, stride=stride), out)
        x = n.add("Sum", f"{branch} {x}", branch)
        x = n.add("Relu", x, x)
    x = n.add("LRN", x, "norm", size=5, alpha=1e-4, beta=0.75)
    x = n.add("AveragePool", x, "pool5", global_pooling=1)
    x = n.add("Dropout", x, "pool5_drop", is_test=1, ratio=0.5)
    x = n.fc(x, "fc", 16, 10)
    n.add("Softmax", x, "prob")
    case("network_residual_classifier", n.operators, {"data": rand(3, 3, 32, 32)}, "prob fc", n.weights)


def ranking():
    n = Net()
    x = n.add("Relu", n.fc("dense", "bottom1", 6, 16), "bottom1")
    x = n.add("Relu", n.fc(x, "bottom2", 16, 8), "bottom2")
    features = [x]
    for i in range(3):
        table = n.weight(f"table{i}", 40, 8, low=-1.0, high=1.0)
        features.append(n.add("SparseLengthsSum", f"{table} ids{i} lengths{i}", f"emb{i}"))
    n.add("Concat", " ".join(features), "stack info", axis=1, add_axis=1)
    z = n.add("BatchMatMul", "stack stack", "dots", trans_b=1)
    z = n.add("Flatten", z, "dots_flat", axis=1)
    n.add("Concat", f"{x} {z}", "all info2", axis=1)
    x = n.add("Relu", n.fc("all", "top1", 8 + 16, 12), "top1")
    x = n.fc(x, "top2", 12, 1)
    n.add("Sigmoid", x, "click")
    random = np.random.RandomState(3)
    inputs = {"dense": rand(5, 6)}
    for i in range(3):
        lengths = random.randint(0, 5, 5).astype(np.int32)
        inputs[f"ids{i}"] = random.randint(0, 40, lengths.sum()).astype(np.int64)
        inputs[f"lengths{i}"] = lengths
    case("network_ranking", n.operators, inputs, "click", n.weights)


def detector():
    n = Net()
    x = n.add("Relu", n.conv("data", "c1", 3, 8, 3, stride=2, pad=1), "c1")
    x = n.add("Relu", n.conv(x, "dw", 8, 8, 3, pad=1, group=8), "dw")
    low = n.add("Relu", n.conv(x, "c2", 8, 8, 3, stride=2, pad=1), "c2")
    lateral = n.conv("dw", "lateral", 8, 8, 1)
    up = n.add("ResizeNearest", low, "up", width_scale=2.0, height_scale=2.0)
    fine = n.add("Sum", f"{lateral} {up}", "fine")
    scores, boxes = [], []
    for level, feature in (("p3", fine), ("p4", low)):
        score = n.add("Sigmoid", n.conv(feature, f"cls_{level}", 8, 6, 3, pad=1), f"cls_{level}")
        score = n.add("NCHW2NHWC", score, f"cls_{level}_t")
        n.add("Reshape", score, f"cls_{level}_f cls_{level}_old", shape=[0, -1, 3])
        scores.append(f"cls_{level}_f")
        box = n.add("Transpose", n.conv(feature, f"box_{level}", 8, 8, 3, pad=1), f"box_{level}_t", axes=[0, 2, 3, 1])
        n.add("Reshape", box, f"box_{level}_f box_{level}_old", shape=[0, -1, 4])
        boxes.append(f"box_{level}_f")
    n.add("Concat", " ".join(scores), "scores s_info", axis=1)
    n.add("Concat", " ".join(boxes), "deltas d_info", axis=1)
    n.add("Slice", "deltas", "centre", starts=[0, 0, 0], ends=[-1, -1, 2])
    n.add("Slice", "deltas", "size", starts=[0, 0, 2], ends=[-1, -1, -1])
    n.add("Clip", "size", "size", max=4.0)
    n.add("Exp", "size", "size")
    scale = n.weight("anchor", 2, low=4.0, high=8.0)
    n.add("Mul", f"size {scale}", "size", broadcast=1)
    n.add("Mul", f"centre {scale}", "centre", broadcast=1)
    half = n.add("Scale", "size", "half", scale=0.5)
    n.add("Sub", f"centre {half}", "low")
    n.add("Add", f"centre {half}", "high")
    n.add("Concat", "low high", "boxes b_info", axis=2)
    n.add("ReduceMax", "scores", "best", axes=[2], keepdims=0)
    n.add("TopK", "best", "top_scores top", k=10)
    case("network_detector_head", n.operators, {"data": rand(2, 3, 16, 16)}, "scores boxes top_scores top", n.weights)


def main():
    groups = (
        elementwise,
        binary,
        convolutions,
        normalizations,
        matrices,
        shapes,
        selections,
        fills,
        sparse,
        decoders,
        int8,
        residual_classifier,
        ranking,
        detector,
    )
    for group in groups:
        group()
    text = json.dumps(CASES, indent=0).encode()
    path = HERE / "recordings.json.xz"
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{path}: {len(CASES)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
