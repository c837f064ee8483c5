# SPDX-License-Identifier: Apache-2.0
"""TorchScript models and requests to them."""

from harness import models, torch_models
from harness.torch_models import config, parameter

from compat.frameworks.cases import Case, batches, fp32, mistakes, request, values

ECHO = "def forward(self, x):\n    return x\n"
ECHO_TEXT = "def forward(self, x: List[str]) -> List[str]:\n    return x\n"
ADD_SUB = "def forward(self, x, y):\n    return x + y, x - y\n"
SWITCHES = (
    "DISABLE_OPTIMIZED_EXECUTION",
    "INFERENCE_MODE",
    "DISABLE_CUDNN",
    "ENABLE_WEIGHT_SHARING",
    "ENABLE_CACHE_CLEANING",
    "ENABLE_JIT_EXECUTOR",
    "ENABLE_JIT_PROFILING",
    "ENABLE_TENSOR_FUSER",
)
STATE = "def forward(self, x, start, s):\n    total = torch.where(start > 0, x, s + x)\n    return total, total\n"
CONTROLS = """
def forward(self, x, start, end, ready, id):
    return 1000 * start + 100 * end + 10 * ready + x, id
"""


def case(name, code, settings, requests=(), **more):
    return Case(f"torch_{name}", "pytorch", settings, list(requests), code=code, **more)


def type_cases():
    for datatype in models.TYPES:
        code = ECHO_TEXT if datatype == "BYTES" else ECHO
        ins, outs = [("INPUT__0", datatype, [-1, -1])], [("OUTPUT__0", datatype, [-1, -1])]
        if datatype == "BYTES":
            ins, outs = [("INPUT__0", datatype, [-1])], [("OUTPUT__0", datatype, [-1])]
        rank = len(ins[0][2])
        shapes = [(1, 1), (2, 3), (0, 3), (3, 0)] if rank == 2 else [(1,), (4,), (0,)]
        requests = [request(f"shape {s}", ("INPUT__0", s), datatype=datatype) for s in shapes]
        yield case(f"echo_{datatype}", code, config(ins, outs), requests)
        if datatype == "BYTES":
            continue
        ins, outs = [("INPUT__0", datatype, [3])], [("OUTPUT__0", datatype, [3])]
        requests = [request(f"{n} rows", ("INPUT__0", (n, 3)), datatype=datatype) for n in (1, 8, 9)]
        yield case(f"batch_{datatype}", ECHO, config(ins, outs, "dynamic_batching { }", 8), requests)
        if datatype != "BOOL":
            ins = [(f"INPUT__{i}", datatype, [2]) for i in range(2)]
            outs = [(f"OUTPUT__{i}", datatype, [2]) for i in range(2)]
            pair = request("a pair", *[(i[0], (2,)) for i in ins], datatype=datatype)
            yield case(f"sums_{datatype}", ADD_SUB, config(ins, outs), [pair])


def name_cases():
    def named(name, inputs, outputs, code=ADD_SUB, rows=8):
        tensors = [(n, (2, 4)) for n in inputs]
        return case(f"names_{name}", code, config(fp32(*inputs), fp32(*outputs), "", rows), [request("two rows", *tensors)])

    pair = ["OUTPUT__0", "OUTPUT__1"]
    yield named("by_number", ["INPUT__1", "INPUT__0"], ["OUTPUT__1", "OUTPUT__0"])
    yield named("by_argument", ["y", "x"], pair)
    yield named("by_order", ["first", "second"], ["sum", "difference"])
    yield named("mixed", ["INPUT__0", "second"], pair)
    yield named("mixed_with_argument", ["x", "INPUT__1"], pair)
    yield named("not_a_number", ["INPUT__a", "INPUT__b"], pair)
    yield named("number_beyond", ["INPUT__0", "INPUT__2"], pair)
    yield named("number_twice", ["A__0", "B__0"], pair)
    yield named("output_beyond", ["x", "y"], ["OUTPUT__0", "OUTPUT__7"])
    yield named("output_twice", ["x", "y"], ["A__0", "B__0"])
    yield named("one_output_of_two", ["x", "y"], ["OUTPUT__1"])
    yield named("three_inputs", ["x", "y", "z"], pair)
    yield named("one_input", ["x"], pair)
    yield named("three_outputs", ["x", "y"], ["OUTPUT__0", "OUTPUT__1", "OUTPUT__2"])
    yield named("underscores", ["A__B__0", "A__B__1"], ["C__D__0", "C__D__1"])
    keys = 'def forward(self, d: Dict[str, Tensor]):\n    return d["left"] + d["right"], d["left"]\n'
    yield named("keys", ["left", "right"], pair, keys)
    yield named("missing_key", ["left", "other"], pair, keys)
    two = "def forward(self, d: Dict[str, Tensor], e: Dict[str, Tensor]):\n    return d['a'] + e['b']\n"
    yield named("two_dictionaries", ["a", "b"], ["OUTPUT__0"], two)
    yield named("dictionary_and_tensor", ["x", "a"], ["OUTPUT__0"],
                "def forward(self, x, d: Dict[str, Tensor]):\n    return x + d['a']\n")
    yield named("list", ["INPUT__0", "INPUT__1"], ["OUTPUT__0"],
                "def forward(self, x: List[Tensor]):\n    return x[0] + x[1]\n")
    yield named("optional", ["x", "y"], ["OUTPUT__0"],
                "def forward(self, x, y: Optional[Tensor]):\n    return x if y is None else x + y\n")


def result_cases():
    ins = fp32("x")

    def result(name, code, outputs, rows=8, requests=None):
        given = requests or [request("three rows", ("x", (3, 4) if rows else (4,)))]
        return case(f"result_{name}", f"def forward(self, x):\n    {code}\n", config(ins, outputs, "", rows), given)

    yield result("dictionary", 'return {"OUTPUT__0": x, "b": x + 1}', fp32("OUTPUT__0", "b"))
    yield result("nested", "return x, (x + 1, x + 2)", fp32("OUTPUT__0", "OUTPUT__1", "OUTPUT__2"))
    yield result("list", "return [x, x + 1]", fp32("OUTPUT__0", "OUTPUT__1"))
    yield result("texts", 'return x, ["a", "bc", ""]', [*fp32("OUTPUT__0"), ("OUTPUT__1", "BYTES", [1])])
    yield result("number", "return x, 5", [*fp32("OUTPUT__0"), ("OUTPUT__1", "INT64", [1])])
    yield result("nothing", "return None", fp32("OUTPUT__0"))
    yield result("scalar", "return x.sum()", fp32("OUTPUT__0", dims=[1]))
    yield result("scalar_unbatched", "return x.sum()", fp32("OUTPUT__0", dims=[1]), 0)
    yield result("another_type", "return x", [("OUTPUT__0", "INT32", [4])])
    yield result("another_shape", "return x", fp32("OUTPUT__0", dims=[5]))
    yield result("another_rank", "return x.reshape(-1)", fp32("OUTPUT__0"))
    yield result("fewer_rows", "return x[0:1]", fp32("OUTPUT__0"))
    yield result("transposed", "return x.transpose(0, 1)", fp32("OUTPUT__0", dims=[-1]))
    yield result("in_place", "return x.add_(1)", fp32("OUTPUT__0"))
    yield result("failing", "assert bool((x > 1000).all()), 'only large numbers'\n    return x", fp32("OUTPUT__0"))
    yield result("mismatch", "return torch.matmul(x, torch.zeros([3, 3]))", fp32("OUTPUT__0"))
    yield result("of_no_rows", "return x", fp32("OUTPUT__0"), 0, [request("no elements", ("x", (0,)))])


def shape_cases():
    one, none = 'reshape { shape: [ 2, 2 ] }', "reshape { shape: [ ] }"
    rows = [request(f"{n} rows", ("x", (n, 4))) for n in (1, 3)]
    yield case("reshaped_input", ECHO, config(fp32("x", extra=one), fp32("OUTPUT__0", dims=[2, 2]), "", 8), rows)
    yield case("reshaped_output", "def forward(self, x):\n    return x.reshape(-1, 2, 2)\n",
               config(fp32("x"), fp32("OUTPUT__0", extra=one), "", 8), rows)
    row = [request("three rows", ("x", (3, 1)))]
    yield case("empty_reshape", ECHO, config(fp32("x", dims=[1], extra=none), fp32("y__0", dims=[1], extra=none), "", 8), row)
    plain = request("unbatched", ("x", (1,)))
    yield case("empty_reshape_unbatched", ECHO, config(fp32("x", dims=[1], extra=none), fp32("y__0", dims=[1])), [plain])
    yield case("variable", ECHO, config(fp32("x", dims=[-1, 2]), fp32("OUTPUT__0", dims=[-1, 2]), "", 4),
               [request(f"{n}x{m}", ("x", (n, m, 2))) for n, m in ((1, 1), (2, 5), (4, 0), (5, 1))])
    yield case("texts_batched", ECHO_TEXT,
               config([("x", "BYTES", [1], none)], [("y__0", "BYTES", [1], none)], "", 8),
               [request(f"{n} rows", ("x", (n, 1)), datatype="BYTES") for n in (1, 3, 9)])
    yield case("texts_two_dims", ECHO_TEXT, config([("x", "BYTES", [2, 2])], [("y__0", "BYTES", [2, 2])]))
    yield case("texts_batched_plainly", ECHO_TEXT, config([("x", "BYTES", [1])], [("y__0", "BYTES", [1])], "", 8))
    yield case("texts_to_tensor", ECHO, config([("x", "BYTES", [-1])], [("y__0", "BYTES", [-1])]),
               [request("two", ("x", (2,)), datatype="BYTES")])
    yield case("tensor_to_texts", ECHO_TEXT, config(fp32("x"), fp32("y__0")), [request("four", ("x", (4,)))])
    ragged = """dynamic_batching { max_queue_delay_microseconds: 1000 }
    batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "INDEX__1" data_type: TYPE_FP32 source_input: "INPUT__0" } ]
    batch_output [ { target_name: "OUTPUT__0" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "INPUT__0" } ]"""
    yield case("ragged", "def forward(self, x, index):\n    return x + index[-1]\n",
               config([("INPUT__0", "FP32", [-1], "allow_ragged_batch: true")], fp32("OUTPUT__0", dims=[-1]), ragged, 8),
               [request(f"{n} long", ("INPUT__0", (1, n))) for n in (1, 3)])


def sequence_steps(shape=(1, 1), name="x__0"):
    return [
        request(step, (name, "FP32", values("FP32", *shape, seed=i)), options=options)
        for i, (step, options) in enumerate([
            ("start", {"sequence_id": 7, "sequence_start": True}),
            ("middle", {"sequence_id": 7}),
            ("another starts", {"sequence_id": 8, "sequence_start": True}),
            ("end", {"sequence_id": 7, "sequence_end": True}),
            ("after the end", {"sequence_id": 7}),
            ("without id", {}),
        ])
    ]


def sequence_cases():
    start = '{{ name: "{}" control [ {{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }} ] }}'
    state = '{{ input_name: "{}" output_name: "{}" data_type: TYPE_FP32 dims: [ 1 ] {} }}'

    def stateful(name, inputs, controls, states, rows=4, outputs="y__0"):
        text = f"sequence_batching {{ control_input [ {controls} ] state [ {states} ] }}"
        settings = config(fp32(inputs, dims=[1]), fp32(outputs, dims=[1]), text, rows)
        return case(f"state_{name}", STATE, settings, sequence_steps((1, 1) if rows else (1,), inputs))

    yield stateful("numbered", "x__0", start.format("START__1"), state.format("s__2", "s__1", ""))
    yield stateful("unbatched", "x__0", start.format("START__1"), state.format("s__2", "s__1", ""), 0)
    initial = 'initial_state { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true name: "zero" }'
    yield stateful("initial", "x__0", start.format("START__1"), state.format("s__2", "s__1", initial))
    yield stateful("control_by_order", "x__0", start.format("START"), state.format("s__2", "s__1", ""))
    yield stateful("state_without_number", "x__0", start.format("START__1"), state.format("s", "s_out", ""))
    yield stateful("input_without_number", "x", start.format("START__1"), state.format("s__2", "s__1", ""))
    yield stateful("output_without_number", "x__0", start.format("START__1"), state.format("s__2", "s__1", ""), 4, "y")
    controls = ", ".join([
        '{ name: "S__1" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] }',
        '{ name: "E__2" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] }',
        '{ name: "R__3" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] }',
        '{ name: "I__4" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }',
    ])
    outputs = [("y__0", "FP32", [1]), ("id__1", "INT64", [1])]
    for kind in ("direct { }", "oldest { max_candidate_sequences: 4 }"):
        text = f"sequence_batching {{ {kind} control_input [ {controls} ] }}"
        yield case(f"controls_{kind.split()[0]}", CONTROLS, config(fp32("x__0", dims=[1]), outputs, text, 4), sequence_steps())


def parameter_cases():
    two = [request("two rows", ("x", (2, 4)))]
    for key in SWITCHES:
        for value in ("true", "false", "1", "maybe"):
            settings = config(fp32("x"), fp32("OUTPUT__0"), parameter(key, value), 8)
            yield case(f"parameter_{key}_{value}", ECHO, settings, two)
    for key in ("INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT"):
        for value in ("1", "many", "-2"):
            settings = config(fp32("x"), fp32("OUTPUT__0"), parameter(key, value), 8)
            yield case(f"parameter_{key}_{value}", ECHO, settings, two)
    settings = config(fp32("x"), fp32("OUTPUT__0"), parameter("NO_SUCH_PARAMETER", "5"), 8)
    yield case("parameter_unknown", ECHO, settings, two)


def loading_cases():
    plain = config(fp32("x"), fp32("OUTPUT__0"), "", 8)
    two = [request("two rows", ("x", (2, 4)))]
    yield case("load_other_name", ECHO, plain + 'default_model_filename: "net.pt"\n', two, file_name="net.pt")
    yield case("load_backend_only", ECHO, plain.replace('platform: "pytorch_libtorch"', 'backend: "pytorch"'), two)
    yield case("load_unknown_platform", ECHO, plain.replace("libtorch", "libtoch"))
    yield case("load_no_inputs", ECHO, 'platform: "pytorch_libtorch"\nmax_batch_size: 8\n')
    yield case("load_no_outputs", ECHO, config(fp32("x"), [], "", 8).replace("output [\n  \n]", ""), two)
    yield case("load_instances", ECHO, plain + "instance_group [ { kind: KIND_CPU count: 2 } ]\n", two)
    yield case("load_kind_model", ECHO, plain + "instance_group [ { kind: KIND_MODEL } ]\n", two)
    yield case("load_kind_gpu", ECHO, plain + "instance_group [ { kind: KIND_GPU } ]\n", two)
    yield case("load_warm_up", ECHO, plain + 'model_warmup [ { name: "w" batch_size: 2 inputs { key: "x" value {'
               " data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } } ]\n", two)
    yield case("load_label", ECHO, plain.replace('"OUTPUT__0"', '"OUTPUT__0" label_filename: "no.txt"'), two)
    for name, files in (("empty", {"model.pt": b""}), ("text", {"model.pt": b"not a model at all\n"}), ("missing", {})):
        yield Case(f"torch_load_{name}", "pytorch", plain, files=files)


def cases():
    yield from type_cases()
    yield from name_cases()
    yield from result_cases()
    yield from shape_cases()
    yield from sequence_cases()
    yield from parameter_cases()
    yield from loading_cases()
    settings = config(fp32("x", "y"), fp32("OUTPUT__0", "OUTPUT__1"), "", 8)
    yield case("mistakes", ADD_SUB, settings, mistakes("x", "y", "OUTPUT__1") + batches("x", "y"))
    settings = config(fp32("x", "y"), fp32("OUTPUT__0", "OUTPUT__1"))
    yield case("mistakes_unbatched", ADD_SUB, settings, mistakes("x", "y", "OUTPUT__1", batched=False))


Repository = torch_models.Repository
