# SPDX-License-Identifier: Apache-2.0
"""The PyTorch backend: types and shapes, names, nested values, strings, parameters, sequences."""

import concurrent.futures
import shutil

import numpy as np
import pytest
import tritonclient.utils.shared_memory as shared
from tritonclient.utils import InferenceServerException

from harness import clients, models, torch_models
from harness import server as servers

pytestmark = pytest.mark.skipif(
    not servers.has_backend("pytorch"), reason="the build has no PyTorch backend (tools/setup --with pytorch)"
)

TYPES = list(models.TYPES)
NUMBERS = [t for t in TYPES if t != "BYTES"]

ECHO = "def forward(self, x):\n    return x\n"
ECHO_TEXT = "def forward(self, x: List[str]) -> List[str]:\n    return x\n"
ADD_SUB = "def forward(self, x, y):\n    return x + y, x - y\n"
NESTED = """
def forward(self, pair: Tuple[Tensor, Tensor], many: List[Tensor], named: Dict[str, Tensor]):
    total = pair[0] + 10 * pair[1]
    for tensor in many:
        total = total + 100 * tensor
    return {"total": (total, [named["a"], named["b"] * 2])}
"""
OPTIONAL = """
def forward(self, x, bias: Optional[Tensor], scale: float = 2.0):
    y = x * scale
    if bias is not None:
        y = y + bias
    return y
"""
SCALARS = """
def forward(self, n: int, flag: bool, word: str, numbers: List[int]):
    return n + 1, not flag, word + "!", 0.5 * n, [number * 2 for number in numbers]
"""
DICT = """
def forward(self, d: Dict[str, Tensor]):
    return {"sum": d["left"] + d["right"], "OUTPUT__0": d["left"]}
"""
IN_PLACE = "def forward(self, x):\n    x.add_(1)\n    return x\n"
IN_PLACE_IN_LIST = "def forward(self, x: List[Tensor]):\n    x[0].add_(1)\n    return x[0] + x[1]\n"
# What a model answers next is what it was sent before.
KEEPERS = {
    "tensor": "def forward(self, x):\n    last = self.w\n    self.w = x\n    return last * 1\n",
    "view": "def forward(self, x):\n    last = self.w\n    self.w = x[1:]\n    return last * 1\n",
    "list": "def forward(self, x):\n    last = self.items[0]\n    self.items[0] = x\n    return last * 1\n",
    "memory": "def forward(self, x):\n    last = self.w.clone()\n    self.w.set_(x)\n    return last\n",
}
# Each changes a tensor of the model in another way.
SUMS = {
    "tensor": "def forward(self, x):\n    self.w.add_(x)\n    return self.w.clone()\n",
    "element": "def forward(self, x):\n    self.items[0].add_(x)\n    return self.items[0].clone()\n",
    "loop": "def forward(self, x):\n    for item in self.items:\n        item.add_(x)\n    return self.items[0].clone()\n",
    "local": "def forward(self, x):\n    all = [self.w]\n    all[0].add_(x)\n    return self.w.clone()\n",
}
VIEW = "def forward(self, x):\n    return x.transpose(0, 1), x[0:1], self.w, x + self.w\n"
COUNTER = "def forward(self, x):\n    self.n.add_(1)\n    return x + self.n\n"
FAILS = "def forward(self, x):\n    assert bool((x > 0).all()), 'only positive numbers'\n    return x\n"
STATE = "def forward(self, x, start, state):\n    total = torch.where(start > 0, x, state + x)\n    return total, total\n"


ONE_INSTANCE = "instance_group [ { kind: KIND_CPU count: 1 } ]"
TWO_INSTANCES = "instance_group [ { kind: KIND_CPU count: 2 } ] sequence_batching { direct { } }"
# The second step reads what the first has read, and after it.
WRITES_THEN_READS = """platform: "ensemble" max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "Z" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "in_place_in_list" model_version: -1
    input_map { key: "x[0]" value: "X" } input_map { key: "x[1]" value: "Z" } output_map { key: "y" value: "T" } },
  { model_name: "first_of_two" model_version: -1
    input_map { key: "a" value: "X" } input_map { key: "b" value: "T" } output_map { key: "OUTPUT__0" value: "Y" } }
] }
"""
OUTPUTS_OF = {"in_place": ["OUTPUT__0"], "in_place_in_list": ["y"]}


def write_types(repository):
    for datatype in NUMBERS:
        ins, outs = [("INPUT__0", datatype, [-1, -1])], [("OUTPUT__0", datatype, [-1, -1])]
        repository.add(f"echo_{datatype}", ECHO, torch_models.config(ins, outs))
        ins, outs = [("INPUT__0", datatype, [3])], [("OUTPUT__0", datatype, [3])]
        config = torch_models.config(ins, outs, "dynamic_batching { }", max_batch_size=8)
        repository.add(f"batch_{datatype}", ECHO, config)
    config = torch_models.config([("INPUT__0", "BYTES", [-1])], [("OUTPUT__0", "BYTES", [-1])])
    repository.add("echo_BYTES", ECHO_TEXT, config)
    one = "reshape { shape: [ ] }"
    config = torch_models.config(
        [("INPUT__0", "BYTES", [1], one)], [("OUTPUT__0", "BYTES", [1], one)], max_batch_size=8
    )
    repository.add("batch_BYTES", ECHO_TEXT, config)


def write_others(repository):
    def fp32(*names, dims=(2,)):
        return [(name, "FP32", dims) for name in names]

    config = torch_models.config
    repository.add("by_number", ADD_SUB, config(fp32("a__1", "b__0"), fp32("OUTPUT__1", "OUTPUT__0")))
    repository.add("by_name", ADD_SUB, config(fp32("y", "x"), fp32("OUTPUT__0", "OUTPUT__1")))
    repository.add("by_order", ADD_SUB, config(fp32("first", "second"), fp32("sum", "difference")))
    repository.add("dict", DICT, config(fp32("left", "right"), fp32("sum", "OUTPUT__0")))
    repository.add(
        "nested",
        NESTED,
        config(
            fp32("pair[0]", "pair[1]", "many[0]", "many[1]", "named[a]", "named[b]"),
            fp32("total[0]", "total[1][1]", "RESULT[total][1][0]"),
        ),
    )
    optional = [("x", "FP32", [2]), ("bias", "FP32", [2], "optional: true"), ("scale", "FP64", [1], "optional: true")]
    repository.add("optional", OPTIONAL, config(optional, fp32("OUTPUT__0")))
    scalars = [("n", "INT64", [1]), ("flag", "BOOL", [1]), ("word", "BYTES", [1]), ("numbers", "INT64", [-1])]
    results = [("r__0", "INT64", [1]), ("r__1", "BOOL", [1]), ("r__2", "BYTES", [1]), ("r__3", "FP64", [1])]
    repository.add("scalars", SCALARS, config(scalars, results + [("r__4", "INT64", [-1])]))
    repository.add("in_place", IN_PLACE, config(fp32("x", dims=[-1]), fp32("OUTPUT__0", dims=[-1])))
    repository.add("in_place_in_list", IN_PLACE_IN_LIST, config(fp32("x[0]", "x[1]", dims=[-1]), fp32("y", dims=[-1])))
    first = "def forward(self, a, b):\n    return a + 0 * b\n"
    repository.add("first_of_two", first, config(fp32("a", "b", dims=[-1]), fp32("OUTPUT__0", dims=[-1])))
    models.write_model(repository.path, "writes_then_reads", WRITES_THEN_READS)
    zero = {"parameters": {"w": np.zeros(1)}, "lists": {"items": [np.zeros(1)]}}
    for kind, code in KEEPERS.items():
        repository.add(f"keeper_{kind}", code, config(fp32("x", dims=[-1]), fp32("y", dims=[-1]), ONE_INSTANCE), **zero)
    for kind, code in SUMS.items():
        repository.add(f"sum_{kind}", code, config(fp32("x", dims=[1]), fp32("y", dims=[1]), TWO_INSTANCES), **zero)
    views = [("a", "FP32", [-1, -1]), ("b", "FP32", [-1, -1]), ("c", "FP32", [-1, -1]), ("d", "FP32", [-1, -1])]
    weights = {"w": np.arange(128 * 128).reshape(128, 128)}
    repository.add("views", VIEW, config([("x", "FP32", [128, 128])], views), weights)
    repository.add("counter", COUNTER, config(fp32("x", dims=[1]), fp32("y", dims=[1])), {"n": np.zeros(1)})
    repository.add("fails", FAILS, config(fp32("x"), fp32("y"), "dynamic_batching { }", max_batch_size=4))
    repository.add("wrong_type", ECHO, config(fp32("x"), [("y", "INT32", [2])]))
    states = """sequence_batching {
      max_sequence_idle_microseconds: 60000000
      control_input [ { name: "START__1" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
      state [ { input_name: "s__2" output_name: "s__1" data_type: TYPE_FP32 dims: [ 1 ] } ]
    }"""
    stateful = config(fp32("x__0", dims=[1]), fp32("y__0", dims=[1]), states, max_batch_size=4)
    repository.add("stateful", STATE, stateful)


ALL_PARAMETERS = {
    "DISABLE_OPTIMIZED_EXECUTION": "true",
    "INFERENCE_MODE": "false",
    "DISABLE_CUDNN": "true",
    "ENABLE_WEIGHT_SHARING": "true",
    "ENABLE_CACHE_CLEANING": "true",
    "ENABLE_JIT_EXECUTOR": "true",
    "ENABLE_JIT_PROFILING": "true",
    "ENABLE_TENSOR_FUSER": "false",
    "INTRA_OP_THREAD_COUNT": "1",
    "INTER_OP_THREAD_COUNT": "1",
}


def write_digits(repository):
    """The classifier of the examples in both of its forms."""
    shutil.copytree(models.ROOT / "examples/platforms/pytorch/digits_torchscript", repository.path / "digits_torchscript")
    if servers.has_backend("onnxruntime"):
        models.copy_example(repository.path, "digits")


def write_parameters(repository):
    ins, outs = [("x", "FP32", [2])], [("y", "FP32", [2])]
    for key, value in ALL_PARAMETERS.items():
        config = torch_models.config(ins, outs, torch_models.parameter(key, value))
        repository.add(f"with_{key}", ECHO, config)


@pytest.fixture(scope="module")
def torch_server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("torch")
    repository = torch_models.Repository(path)
    write_types(repository)
    write_others(repository)
    write_parameters(repository)
    write_digits(repository)
    repository.write()
    args = [] if servers.REFERENCE else ["--allow-client-shm=true"]
    with servers.running(path, args=args, log_dir=tmp_path_factory.mktemp("torch_server")) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(torch_server, request):
    client = clients.Client(request.param, torch_server)
    yield client
    client.close()


def infer(client, model, arrays, outputs=None, **options):
    """The outputs of a request, by name. `arrays` are (datatype, array) or FP32 arrays by name."""
    inputs = []
    for name, given in arrays.items():
        datatype, array = given if isinstance(given, tuple) else ("FP32", np.asarray(given, np.float32))
        inputs.append(client.tensors.InferInput(name, list(array.shape), datatype))
        inputs[-1].set_data_from_numpy(array)
    wanted = None if outputs is None else [client.tensors.InferRequestedOutput(name) for name in outputs]
    result = client.infer(model, inputs, outputs=wanted, **options)
    response = result.get_response()
    names = [o["name"] for o in response["outputs"]] if client.is_http else [o.name for o in response.outputs]
    return {name: result.as_numpy(name) for name in names}


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4), (128, 129)])
@pytest.mark.parametrize("datatype", NUMBERS)
def test_every_type_comes_back_as_it_was_sent(client, datatype, shape):
    sent = models.random_tensor(np.random.default_rng(1), datatype, shape)
    received = infer(client, f"echo_{datatype}", {"INPUT__0": (datatype, sent)})["OUTPUT__0"]
    assert received.shape == shape
    np.testing.assert_array_equal(received, sent)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("datatype", NUMBERS)
def test_every_type_is_batched(client, datatype, rows):
    sent = models.random_tensor(np.random.default_rng(2), datatype, (rows, 3))
    received = infer(client, f"batch_{datatype}", {"INPUT__0": (datatype, sent)})["OUTPUT__0"]
    np.testing.assert_array_equal(received, sent)


@pytest.mark.parametrize("texts", [[], [b""], [b"a\0b", "é".encode(), b"\xff\xfe", b"x" * 5000]])
def test_strings_have_any_bytes(client, texts):
    sent = np.array(texts, dtype=np.object_)
    received = infer(client, "echo_BYTES", {"INPUT__0": ("BYTES", sent)})["OUTPUT__0"]
    assert list(received) == texts


def test_strings_are_batched(client):
    sent = np.array([[b"a"], [b"bc"], [b""]], dtype=np.object_)
    received = infer(client, "batch_BYTES", {"INPUT__0": ("BYTES", sent)})["OUTPUT__0"]
    assert received.tolist() == sent.tolist()


@pytest.mark.parametrize(
    "model, first, second, plus, minus",
    [
        ("by_number", "b__0", "a__1", "OUTPUT__0", "OUTPUT__1"),
        ("by_name", "x", "y", "OUTPUT__0", "OUTPUT__1"),
        ("by_order", "first", "second", "sum", "difference"),
    ],
)
def test_names_follow_tritons_conventions(client, model, first, second, plus, minus):
    out = infer(client, model, {first: [5, 6], second: [1, 2]})
    assert out[plus].tolist() == [6, 8]
    assert out[minus].tolist() == [4, 4]


def test_keys_of_a_dictionary_are_names(client):
    out = infer(client, "dict", {"left": [1, 2], "right": [10, 20]})
    assert out["sum"].tolist() == [11, 22]
    assert out["OUTPUT__0"].tolist() == [1, 2]


def test_nested_values_are_flattened_by_position_and_key(client):
    given = {"pair[0]": [1, 2], "pair[1]": [3, 4], "many[0]": [5, 6], "many[1]": [7, 8]}
    given |= {"named[a]": [9, 9], "named[b]": [8, 8]}
    out = infer(client, "nested", given)
    assert out["total[0]"].tolist() == [1231, 1442]
    assert out["RESULT[total][1][0]"].tolist() == [9, 9]
    assert out["total[1][1]"].tolist() == [16, 16]


def test_optional_arguments_may_be_left_out(client):
    scale = ("FP64", np.array([3.0]))
    assert infer(client, "optional", {"x": [1, 2]})["OUTPUT__0"].tolist() == [2, 4]
    assert infer(client, "optional", {"x": [1, 2], "bias": [5, 5]})["OUTPUT__0"].tolist() == [7, 9]
    assert infer(client, "optional", {"x": [1, 2], "scale": scale})["OUTPUT__0"].tolist() == [3, 6]


def test_single_values_are_tensors_of_one_element(client):
    out = infer(
        client,
        "scalars",
        {
            "n": ("INT64", np.array([7])),
            "flag": ("BOOL", np.array([True])),
            "word": ("BYTES", np.array([b"hello"], dtype=np.object_)),
            "numbers": ("INT64", np.array([1, 2, 3])),
        },
    )
    assert out["r__0"].tolist() == [8]
    assert out["r__1"].tolist() == [False]
    assert out["r__2"].tolist() == [b"hello!"]
    assert out["r__3"].tolist() == [3.5]
    assert out["r__4"].tolist() == [2, 4, 6]


@pytest.mark.parametrize("model, name", [("in_place", "x"), ("in_place_in_list", "x[0]")])
def test_a_model_that_writes_to_its_input_does_not_change_the_clients_memory(client, model, name):
    sent = np.arange(4096, dtype=np.float32)
    region = shared.create_shared_memory_region(f"torch_{client.kind}", f"/torch_{client.kind}", sent.nbytes)
    try:
        shared.set_shared_memory_region(region, [sent])
        client.register_system_shared_memory(f"torch_{client.kind}", f"/torch_{client.kind}", sent.nbytes)
        inputs = [client.tensors.InferInput(name, [4096], "FP32")]
        inputs[0].set_shared_memory(f"torch_{client.kind}", sent.nbytes)
        if name == "x[0]":
            inputs.append(client.tensors.InferInput("x[1]", [4096], "FP32"))
            inputs[1].set_data_from_numpy(np.zeros(4096, np.float32))
        result = client.infer(model, inputs)
        (output,) = OUTPUTS_OF[model]
        np.testing.assert_array_equal(result.as_numpy(output), sent + 1)
        np.testing.assert_array_equal(shared.get_contents_as_numpy(region, np.float32, [4096]), sent)
        client.unregister_system_shared_memory(f"torch_{client.kind}")
    finally:
        shared.destroy_shared_memory_region(region)


def test_a_step_that_writes_to_its_input_does_not_change_that_of_a_later_step(client):
    sent = np.arange(100_000, dtype=np.float32)
    out = infer(client, "writes_then_reads", {"X": sent, "Z": np.zeros(100_000)})
    np.testing.assert_array_equal(out["Y"], sent)


@pytest.mark.parametrize("kind", KEEPERS)
def test_a_model_that_keeps_its_input_keeps_a_copy(client, kind):
    count = 300_000  # memory of this size is soon used again
    infer(client, f"keeper_{kind}", {"x": np.full(count, 1)})
    infer(client, "in_place", {"x": np.full(count, 7777)})
    kept = infer(client, f"keeper_{kind}", {"x": np.full(2, 1)})["y"]
    assert kept.size in (count, count - 1) and (kept == 1).all()


@pytest.mark.parametrize("kind", SUMS)
def test_instances_do_not_share_what_the_model_changes(client, kind):
    base = 300 if client.is_http else 400
    sums = {1: [], 100: []}
    for step in range(3):
        for value, seen in sums.items():
            options = {"sequence_id": base + value, "sequence_start": step == 0, "sequence_end": step == 2}
            seen.append(infer(client, f"sum_{kind}", {"x": [value]}, **options)["y"].item())
    for value, seen in sums.items():
        # Sums go on from what earlier sequences on the same instance have left.
        assert [after - before for before, after in zip(seen, seen[1:])] == [value, value]


def test_results_that_share_memory_with_inputs_and_weights_are_right(client):
    weights = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    sent = np.random.default_rng(3).standard_normal((128, 128)).astype(np.float32)
    for _ in range(3):
        out = infer(client, "views", {"x": sent})
        np.testing.assert_array_equal(out["a"], sent.T)
        np.testing.assert_array_equal(out["b"], sent[0:1])
        np.testing.assert_array_equal(out["c"], weights)
        np.testing.assert_array_equal(out["d"], sent + weights)


def test_only_requested_outputs_are_returned(client):
    assert set(infer(client, "by_order", {"first": [1, 2], "second": [3, 4]}, outputs=["difference"])) == {"difference"}


def test_the_failure_of_a_model_is_reported_with_its_own_words(client):
    with pytest.raises(InferenceServerException, match="PyTorch execute failure: (.|\n)*only positive numbers"):
        infer(client, "fails", {"x": [[-1, 2]]})
    assert infer(client, "fails", {"x": [[1, 2]]})["y"].tolist() == [[1, 2]]


def test_an_output_of_another_type_is_an_error(client):
    text = "configuration expects datatype TYPE_INT32 for output 'y', model provides TYPE_FP32"
    with pytest.raises(InferenceServerException, match=text):
        infer(client, "wrong_type", {"x": [1, 2]})


@pytest.mark.parametrize(
    "tensor",
    [("FP64", np.zeros(2)), ("FP32", np.zeros(3, np.float32)), ("FP32", np.zeros((1, 2), np.float32))],
    ids=["type", "length", "rank"],
)
def test_inputs_that_do_not_fit_the_configuration_reach_no_model(client, tensor):
    with pytest.raises(InferenceServerException, match="(unexpected|expected|shape|data-?type)"):
        infer(client, "by_name", {"x": tensor, "y": [1, 2]})


def test_a_model_may_change_its_own_tensors(client):
    first = infer(client, "counter", {"x": [0]})["y"].item()
    assert infer(client, "counter", {"x": [0]})["y"].item() == first + 1


@pytest.mark.parametrize("key", ALL_PARAMETERS)
def test_a_model_with_each_parameter_works(client, key):
    assert infer(client, f"with_{key}", {"x": [1, 2]})["y"].tolist() == [1, 2]


def test_states_are_kept_for_each_sequence(client):
    base = 100 if client.is_http else 200
    sums = {}
    for value, sequence in [(1, base + 1), (10, base + 2), (2, base + 1), (20, base + 2), (3, base + 1)]:
        is_last = value in (20, 3)
        options = {"sequence_id": sequence, "sequence_start": sequence not in sums, "sequence_end": is_last}
        sums[sequence] = infer(client, "stateful", {"x__0": [[value]]}, **options)["y__0"].item()
    assert sums == {base + 1: 6, base + 2: 30}


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_digits_come_out_as_from_the_onnx_model(client, rows):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime backend")
    pixels = models.digit_images()[:rows]
    expected = infer(client, "digits", {"pixels": pixels})
    received = infer(client, "digits_torchscript", {"pixels": pixels})
    np.testing.assert_array_equal(received["label"], expected["label"])
    np.testing.assert_allclose(received["probabilities"], expected["probabilities"], atol=1e-4)


def test_requests_of_many_clients_are_batched(torch_server):
    def ask(number):
        client = clients.Client("grpc", torch_server)
        try:
            sent = np.full((1, 3), number, np.float32)
            return infer(client, "batch_FP32", {"INPUT__0": sent})["OUTPUT__0"].tolist() == sent.tolist()
        finally:
            client.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(64)))
