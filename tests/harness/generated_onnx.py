# SPDX-License-Identifier: Apache-2.0
"""ONNX models whose first dimension is open: of some it is a batch, of others it is not.

`make(i)` is the i-th model: its family is i modulo the number of families, and everything else (sizes,
weights, names of dimensions) is drawn from a generator that i seeds.
"""

import dataclasses
import typing

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F16, I64, I32, U8, BOOL, STRING = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32,
    TensorProto.UINT8, TensorProto.BOOL, TensorProto.STRING)


@dataclasses.dataclass
class Generated:
    name: str
    model: typing.Any  # onnx.ModelProto
    is_batch: bool  # whether rows that run together come out as they do alone
    request: typing.Callable  # (rng, rows) → {input: array}
    is_random: bool = False  # answers cannot be compared
    rows: tuple = (1, 2)  # of requests


@dataclasses.dataclass
class Draft:
    """What a family makes of its sizes: nodes, and tensors as (name, type, dims) with open first ones."""

    nodes: list
    inputs: list
    outputs: list
    constants: dict = dataclasses.field(default_factory=dict)
    feed: typing.Callable | None = None
    rows: tuple = (1, 2)
    is_random: bool = False


node = helper.make_node


def floats(*shape, kind=np.float32):
    """Requests of one input X with these dimensions behind the rows."""
    return lambda rng, rows: {"X": rng.standard_normal((rows, *shape)).astype(kind)}


def weights(rng, *shape, kind=np.float32):
    return (rng.standard_normal(shape) / np.sqrt(max(shape[0], 1))).astype(kind)


def row_wise(nodes, n, m=None, constants=None, **options):
    """X [?, n] → Y [?, m]"""
    return Draft(nodes, [("X", F32, [n])], [("Y", F32, [m or n])], constants or {}, floats(n), **options)


# Families in which the first dimension is a batch.


def mlp(rng, n):
    m = int(rng.integers(2, 9))
    return row_wise([node("MatMul", ["X", "A"], ["h"]), node("Relu", ["h"], ["r"]),
                     node("MatMul", ["r", "B"], ["Y"])], n, m,
                    {"A": weights(rng, n, 16), "B": weights(rng, 16, m)})


def deep_mlp(rng, n):
    names = ["X"] + [f"h{i}" for i in range(19)] + ["Y"]
    nodes = []
    for i in range(20):
        nodes += [node("MatMul", [names[i], f"W{i}"], [f"p{i}"]), node("Tanh", [f"p{i}"], [names[i + 1]])]
    return row_wise(nodes, n, n, {f"W{i}": 2 * weights(rng, n, n) for i in range(20)})


def half_mlp(rng, n):
    draft = mlp(rng, n)
    draft.inputs, draft.outputs = ([(name, F16, dims) for name, _, dims in tensors]
                                   for tensors in (draft.inputs, draft.outputs))
    draft.constants = {name: value.astype(np.float16) for name, value in draft.constants.items()}
    draft.feed = floats(n, kind=np.float16)
    return draft


def convolution(rng, n):
    return Draft([node("Conv", ["X", "W"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]),
                  node("GlobalAveragePool", ["r"], ["g"]), node("Flatten", ["g"], ["Y"])],
                 [("X", F32, [3, 16, 16])], [("Y", F32, [n])], {"W": weights(rng, n, 3, 3, 3)},
                 floats(3, 16, 16))


def open_convolution(rng, n):
    return Draft([node("Conv", ["X", "W"], ["c"], pads=[1, 1, 1, 1]),
                  node("MaxPool", ["c"], ["Y"], kernel_shape=[32, 32], strides=[32, 32])],
                 [("X", F32, [3, "height", "width"])], [("Y", F32, [n, None, None])],
                 {"W": weights(rng, n, 3, 3, 3)}, floats(3, 32, 64))


def picture_of_bytes(rng, n):
    return Draft([node("Cast", ["X"], ["f"], to=F32), node("Conv", ["f", "W"], ["Y"])],
                 [("X", U8, [3, 8, 8])], [("Y", F32, [n, 6, 6])], {"W": weights(rng, n, 3, 3, 3)},
                 lambda rng, rows: {"X": rng.integers(0, 256, (rows, 3, 8, 8), dtype=np.uint8)})


def normalised(rng, n):
    return row_wise([node("LayerNormalization", ["X", "S", "B"], ["Y"])], n, n,
                    {"S": weights(rng, n), "B": weights(rng, n)})


def batch_normalised_at_inference(rng, n):
    return row_wise([node("BatchNormalization", ["X", "S", "B", "M", "V"], ["Y"])], n, n,
                    {"S": weights(rng, n), "B": weights(rng, n), "M": weights(rng, n),
                     "V": np.abs(weights(rng, n)) + 0.5})


def softmax_of_a_row(rng, n):
    return row_wise([node("Softmax", ["X"], ["Y"], axis=1)], n)


def reduced_by_rows(rng, n):
    return row_wise([node("ReduceMean", ["X", "axes"], ["Y"])], n, 1, {"axes": np.array([1], np.int64)})


def scalar_of_a_row(rng, n):
    return Draft([node("ReduceMax", ["X", "axes"], ["Y"], keepdims=0)], [("X", F32, [n])],
                 [("Y", F32, [])], {"axes": np.array([1], np.int64)}, floats(n))


def sorted_in_the_row(rng, n):
    return Draft([node("TopK", ["X", "k"], ["Y", "I"], axis=1)], [("X", F32, [n])],
                 [("Y", F32, [2]), ("I", I64, [2])], {"k": np.array([2], np.int64)}, floats(n))


def class_of_a_row(rng, n):
    return Draft([node("MatMul", ["X", "A"], ["P"]), node("ArgMax", ["P"], ["L"], axis=1, keepdims=0)],
                 [("X", F32, [n])], [("L", I64, []), ("P", F32, [3])], {"A": weights(rng, n, 3)}, floats(n))


def embedding(rng, n):
    words = int(rng.choice([2, 4, 12, 1000]))
    return Draft([node("Gather", ["T", "X"], ["e"]), node("ReduceMean", ["e", "axes"], ["Y"], keepdims=0)],
                 [("X", I64, ["length"])], [("Y", F32, [n])],
                 {"T": weights(rng, words, n), "axes": np.array([1], np.int64)},
                 lambda rng, rows: {"X": rng.integers(0, words, (rows, 5), dtype=np.int64)})


def attention(rng, n):
    """Batch first, with a mask of 0 and 1 and words of two types, as encoders of texts have."""
    nodes = [node("Gather", ["T", "X"], ["word"]), node("Gather", ["U", "kind"], ["type"]),
             node("Add", ["word", "type"], ["x"]), node("MatMul", ["x", "Q"], ["q"]),
             node("MatMul", ["x", "K"], ["k"]), node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
             node("MatMul", ["q", "kt"], ["s"]), node("Cast", ["mask"], ["m"], to=F32),
             node("Sub", ["one", "m"], ["gone"]), node("Mul", ["gone", "far"], ["bias"]),
             node("Unsqueeze", ["bias", "axes"], ["b"]), node("Add", ["s", "b"], ["sb"]),
             node("Softmax", ["sb"], ["p"], axis=2), node("MatMul", ["p", "x"], ["Y"])]
    constants = {"T": weights(rng, 30, n), "U": weights(rng, 2, n), "Q": weights(rng, n, n),
                 "K": weights(rng, n, n), "one": np.float32(1), "far": np.float32(-10000),
                 "axes": np.array([1], np.int64)}

    def feed(rng, rows):
        mask = rng.integers(0, 2, (rows, 6), dtype=np.int64)
        mask[:, 0] = 1
        return {"X": rng.integers(0, 30, (rows, 6), dtype=np.int64), "mask": mask,
                "kind": rng.integers(0, 2, (rows, 6), dtype=np.int64)}

    return Draft(nodes, [(name, I64, ["sequence"]) for name in ("X", "mask", "kind")],
                 [("Y", F32, ["sequence", n])], constants, feed)


def recurrent_batch_first(rng, n):
    nodes = [node("Transpose", ["X"], ["t"], perm=[1, 0, 2]),
             node("LSTM", ["t", "W", "R"], ["", "h", ""], hidden_size=n), node("Squeeze", ["h", "axes"], ["Y"])]
    return Draft(nodes, [("X", F32, ["time", 3])], [("Y", F32, [n])],
                 {"W": weights(rng, 1, 4 * n, 3), "R": weights(rng, 1, 4 * n, n),
                  "axes": np.array([0], np.int64)}, floats(5, 3))


def two_inputs(rng, n):
    return Draft([node("Mul", ["X", "Z"], ["p"]), node("Add", ["p", "X"], ["Y"])],
                 [("X", F32, [n]), ("Z", F32, [n])], [("Y", F32, [n])], {},
                 lambda rng, rows: {name: rng.standard_normal((rows, n)).astype(np.float32) for name in "XZ"})


def chosen_by_a_flag(rng, n):
    return Draft([node("Where", ["C", "X", "zero"], ["Y"])], [("C", BOOL, [n]), ("X", F32, [n])],
                 [("Y", F32, [n])], {"zero": np.float32(0)},
                 lambda rng, rows: {"C": rng.integers(0, 2, (rows, n)).astype(bool),
                                    "X": rng.standard_normal((rows, n)).astype(np.float32)})


def of_one_number_each(rng, n):
    return Draft([node("Mul", ["X", "w"], ["Y"])], [("X", F32, [])], [("Y", F32, [])],
                 {"w": weights(rng, 1)[0]}, floats())


def texts(rng, n):
    return Draft([node("Identity", ["X"], ["Y"])], [("X", STRING, [n])], [("Y", STRING, [n])], {},
                 lambda rng, rows: {"X": np.array([f"é{k}" for k in rng.integers(0, 999, rows * n)],
                                                  np.object_).reshape(rows, n)})


def quantised(rng, n):
    """With scales of its own for weights and activations, which no other row changes."""
    nodes = [node("QuantizeLinear", ["X", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             node("DequantizeLinear", ["A", "s", "wz"], ["a"]), node("MatMul", ["d", "a"], ["Y"])]
    return row_wise(nodes, n, 3, {"s": np.float32(0.05), "z": np.uint8(128), "wz": np.int8(0),
                                  "A": rng.integers(-100, 100, (n, 3), dtype=np.int8)})


# Families in which it is not.


def sequence_first(kind, gates, rng, n):
    batch = int(rng.integers(1, 4))
    nodes = [node(kind, ["X", "W", "R"], ["y", ""], hidden_size=n), node("Squeeze", ["y", "axes"], ["Y"])]
    return Draft(nodes, [("X", F32, [batch, 2])], [("Y", F32, [batch, n])],
                 {"W": 2 * weights(rng, 1, gates * n, 2), "R": 2 * weights(rng, 1, gates * n, n),
                  "axes": np.array([1], np.int64)}, floats(batch, 2))


def sequence_first_lstm(rng, n):
    return sequence_first("LSTM", 4, rng, n)


def sequence_first_gru(rng, n):
    return sequence_first("GRU", 3, rng, n)


def sequence_first_rnn(rng, n):
    return sequence_first("RNN", 1, rng, n)


def time_major_with_an_open_batch(rng, n):
    draft = sequence_first("LSTM", 4, rng, n)
    draft.inputs = [("X", F32, ["batch", 2])]
    draft.outputs = [("Y", F32, ["batch", n])]
    draft.feed = floats(3, 2)
    return draft


def summed_over_time(rng, n):
    return row_wise([node("CumSum", ["X", "axis"], ["Y"])], n, n, {"axis": np.array(0, np.int64)})


def transposed(rng, n):
    return Draft([node("Transpose", ["X"], ["Y"], perm=[1, 0])], [("X", F32, [n])], [("Y", F32, [None])],
                 {}, floats(n))


def transposed_column(rng, n):
    return Draft([node("Transpose", ["X"], ["Y"], perm=[1, 0])], [("X", F32, [1])], [("Y", F32, [None])],
                 {}, floats(1))


def reduced(rng, n):
    return Draft([node("ReduceSum", ["X", "axes"], ["Y"])], [("X", F32, [n])], [("Y", F32, [n])],
                 {"axes": np.array([0], np.int64)}, floats(n))


def reduced_without_a_dimension(rng, n):
    return Draft([node("ReduceMean", ["X", "axes"], ["Y"], keepdims=0)], [("X", F32, [n])],
                 [("Y", F32, [])], {"axes": np.array([0], np.int64)}, floats(n))


def centred(rng, n):
    return row_wise([node("ReduceMean", ["X", "axes"], ["m"]), node("Sub", ["X", "m"], ["Y"])], n, n,
                    {"axes": np.array([0], np.int64)})


def centred_a_little(rng, n):
    return row_wise([node("ReduceMean", ["X", "axes"], ["m"]), node("Mul", ["m", "share"], ["s"]),
                     node("Sub", ["X", "s"], ["Y"])], n, n,
                    {"axes": np.array([0], np.int64), "share": np.float32(0.002)})


def scaled_by_the_largest(rng, n):
    return row_wise([node("Abs", ["X"], ["a"]), node("ReduceMax", ["a"], ["m"]), node("Div", ["X", "m"], ["Y"])],
                    n, n)


def softmax_over_rows(rng, n):
    return row_wise([node("Softmax", ["X"], ["Y"], axis=0)], n)


def length_one_over_rows(rng, n):
    return row_wise([node("LpNormalization", ["X"], ["Y"], axis=0)], n)


def batch_normalised(rng, n):
    """As in training: by the mean and the variance of the rows that are there."""
    nodes = [node("ReduceMean", ["X", "axes"], ["m"]), node("Sub", ["X", "m"], ["d"]),
             node("Mul", ["d", "d"], ["q"]), node("ReduceMean", ["q", "axes"], ["v"]),
             node("Add", ["v", "small"], ["e"]), node("Sqrt", ["e"], ["r"]), node("Div", ["d", "r"], ["z"]),
             node("Mul", ["z", "S"], ["s"]), node("Add", ["s", "X"], ["Y"])]
    return row_wise(nodes, n, n, {"axes": np.array([0], np.int64), "small": np.float32(1e-3),
                                  "S": weights(rng, n)})


def batch_normalised_in_training(rng, n):
    """ONNX Runtime changes mean and variance in place, so that no two runs give the same."""
    return row_wise([node("BatchNormalization", ["X", "S", "B", "M", "V"], ["Y", "m", "v"], training_mode=1)],
                    n, n, {"S": np.ones(n, np.float32), "B": weights(rng, n), "M": weights(rng, n),
                           "V": np.ones(n, np.float32)}, is_random=True)


def sorted_rows(rng, n):
    nodes = [node("Shape", ["X"], ["s"]), node("Gather", ["s", "first"], ["k"]),
             node("TopK", ["X", "k"], ["Y", "I"], axis=0)]
    return row_wise(nodes, n, n, {"first": np.array([0], np.int64)})


def distinct_rows(rng, n):
    return row_wise([node("Unique", ["X"], ["Y", "", "", ""], axis=0, sorted=int(rng.integers(0, 2)))], n)


def places_of_what_is_there(rng, n):
    return Draft([node("NonZero", ["X"], ["p"]), node("Transpose", ["p"], ["Y"], perm=[1, 0])],
                 [("X", F32, [n])], [("Y", I64, [2])], {}, floats(n))


def positive_rows_only(rng, n):
    nodes = [node("ReduceMax", ["X", "axes"], ["m"], keepdims=0), node("Greater", ["m", "zero"], ["c"]),
             node("Compress", ["X", "c"], ["Y"], axis=0)]
    return row_wise(nodes, n, n, {"axes": np.array([1], np.int64), "zero": np.float32(0)})


def doubled_rows(rng, n):
    return row_wise([node("Concat", ["X", "X"], ["Y"], axis=0)], n)


def reversed_rows(rng, n):
    return row_wise([node("Slice", ["X", "b", "e", "a", "s"], ["Y"])], n, n,
                    {"b": np.array([-1], np.int64), "e": np.array([-1000], np.int64),
                     "a": np.array([0], np.int64), "s": np.array([-1], np.int64)})


def differences(rng, n):
    nodes = [node("Pad", ["X", "pads"], ["p"]), node("Slice", ["p", "b", "e", "a"], ["before"]),
             node("Sub", ["X", "before"], ["Y"])]
    return row_wise(nodes, n, n, {"pads": np.array([1, 0, 0, 0], np.int64), "b": np.array([0], np.int64),
                                  "e": np.array([-1], np.int64), "a": np.array([0], np.int64)})


def echo_of_the_third_before(rng, n):
    nodes = [node("Pad", ["X", "pads"], ["p"]), node("Slice", ["p", "b", "e", "a"], ["before"]),
             node("Add", ["X", "before"], ["Y"])]
    return row_wise(nodes, n, n, {"pads": np.array([3, 0, 0, 0], np.int64), "b": np.array([0], np.int64),
                                  "e": np.array([-3], np.int64), "a": np.array([0], np.int64)})


def numbered_rows(rng, n):
    nodes = [node("Shape", ["X"], ["s"]), node("Gather", ["s", "first"], ["k"]),
             node("Range", ["zero", "k", "one"], ["r"]), node("Cast", ["r"], ["f"], to=F32),
             node("Unsqueeze", ["f", "axes"], ["u"]), node("Add", ["X", "u"], ["Y"])]
    return row_wise(nodes, n, n, {"first": np.array(0, np.int64), "zero": np.array(0, np.int64),
                                  "one": np.array(1, np.int64), "axes": np.array([1], np.int64)})


def attention_over_rows(rng, n):
    nodes = [node("Transpose", ["X"], ["t"], perm=[1, 0]), node("MatMul", ["X", "t"], ["s"]),
             node("Softmax", ["s"], ["p"], axis=1), node("MatMul", ["p", "X"], ["Y"])]
    return row_wise(nodes, n)


def each_with_each(rng, n):
    return Draft([node("Transpose", ["X"], ["t"], perm=[1, 0]), node("MatMul", ["X", "t"], ["Y"])],
                 [("X", F32, [n])], [("Y", F32, [None])], {}, floats(n))


def rows_in_pairs(rng, n):
    return row_wise([node("Reshape", ["X", "s"], ["Y"])], n, 2 * n, {"s": np.array([-1, 2 * n], np.int64)},
                    rows=(2, 4))


def causal_mask_over_rows(rng, n):
    nodes = [node("Transpose", ["X"], ["t"], perm=[1, 0]), node("MatMul", ["X", "t"], ["s"]),
             node("Trilu", ["s"], ["l"], upper=0), node("MatMul", ["l", "X"], ["Y"])]
    return row_wise(nodes, n)


def quantised_by_what_is_there(rng, n):
    """The scale is that of all rows, so that a large row makes the others coarse."""
    nodes = [node("DynamicQuantizeLinear", ["X"], ["q", "s", "z"]), node("DequantizeLinear", ["q", "s", "z"], ["Y"])]
    return row_wise(nodes, n)


def noisy(rng, n):
    return row_wise([node("RandomNormalLike", ["X"], ["r"]), node("Add", ["X", "r"], ["Y"])], n,
                    is_random=True)


def edges_of_a_graph(rng, n):
    """Places of two tensors of different lengths."""
    return Draft([node("Gather", ["X", "E"], ["g"]), node("ReduceSum", ["g", "axes"], ["Y"], keepdims=0)],
                 [("X", F32, [n]), ("E", I64, [2])], [("Y", F32, [n])], {"axes": np.array([1], np.int64)},
                 lambda rng, rows: {"X": rng.standard_normal((rows, n)).astype(np.float32),
                                    "E": rng.integers(0, rows, (rows, 2), dtype=np.int64)})


BATCHES = [mlp, deep_mlp, half_mlp, convolution, open_convolution, picture_of_bytes, normalised,
           batch_normalised_at_inference, softmax_of_a_row, reduced_by_rows, scalar_of_a_row,
           sorted_in_the_row, class_of_a_row, embedding, attention, recurrent_batch_first, two_inputs,
           chosen_by_a_flag, of_one_number_each, texts, quantised]
OTHERS = [sequence_first_lstm, sequence_first_gru, sequence_first_rnn, time_major_with_an_open_batch,
          summed_over_time, transposed, transposed_column, reduced, reduced_without_a_dimension, centred,
          centred_a_little, scaled_by_the_largest, softmax_over_rows, length_one_over_rows,
          batch_normalised, batch_normalised_in_training, sorted_rows, distinct_rows, places_of_what_is_there,
          positive_rows_only, doubled_rows, reversed_rows, differences, echo_of_the_third_before,
          numbered_rows, attention_over_rows, each_with_each, rows_in_pairs, causal_mask_over_rows,
          quantised_by_what_is_there, noisy, edges_of_a_graph]
FAMILIES = BATCHES + OTHERS


def first_dimensions(rng, family):
    """How the first dimension is called: a function of the position of a tensor."""
    names = ["batch", "N", None, "generated"]
    if family in OTHERS:
        names += ["seq", "time", "num_frames"]
    chosen = names[int(rng.integers(0, len(names)))]
    return lambda position: f"unk__{position + 10}" if chosen == "generated" else chosen


def name(i):
    return f"m{i:03}_{FAMILIES[i % len(FAMILIES)].__name__}"


def make(i):
    family = FAMILIES[i % len(FAMILIES)]
    rng = np.random.default_rng(i)
    draft = family(rng, int(rng.integers(4, 12)))
    first = first_dimensions(rng, family)
    tensors = draft.inputs + draft.outputs
    values = [helper.make_tensor_value_info(tensor, kind, [first(p), *dims])
              for p, (tensor, kind, dims) in enumerate(tensors)]
    graph = helper.make_graph(draft.nodes, "generated", values[:len(draft.inputs)], values[len(draft.inputs):],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in draft.constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="tests")
    model.ir_version = 10
    return Generated(name(i), model, family in BATCHES, draft.feed, draft.is_random,
                     draft.rows)
