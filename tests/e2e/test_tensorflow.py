# SPDX-License-Identifier: Apache-2.0
"""The TensorFlow backend: types and shapes of SavedModel and GraphDef, completed configurations, batches,
signatures, sessions that are shared, states."""

import concurrent.futures
import shutil

import numpy as np
import pytest
from harness import clients, models
from harness import server as servers
from harness import tensorflow_models as tf
from harness.tensorflow_models import UNKNOWN_RANK, config, parameter
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(
        not servers.has_backend("tensorflow"),
        reason="the build has no TensorFlow backend (tools/setup --with tensorflow)",
    ),
]

TYPES = [t for t in tf.TYPES if t != "RESOURCE"]
SUMS = [t for t in TYPES if t != "BOOL"]
PLATFORMS = ["savedmodel", "graphdef"]
BATCHES = "dynamic_batching { max_queue_delay_microseconds: 20000 }"
SEQUENCES = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  control_input [ { name: "start" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "state" output_name: "next" data_type: TYPE_FP32 dims: [ 1 ] } ]
}
"""
COUNTERS_OF_SEQUENCES = {"counter_of_sequences": tf.counter, "reference_counter_of_sequences": tf.reference_counter}
EACH_ITS_INSTANCE = """
sequence_batching { max_sequence_idle_microseconds: 60000000 }
instance_group [ { kind: KIND_CPU count: 3 } ]
"""
RAGGED = """
dynamic_batching { max_queue_delay_microseconds: 20000 }
batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "count" data_type: TYPE_INT32 source_input: "x" } ]
batch_output [ { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" } ]
"""


class Repository:
    """Writes the same model as SavedModel and as GraphDef."""

    def __init__(self, path):
        self.path = path

    def add(self, name, model, extra="", max_batch_size=0, dims=None, more=""):
        """`dims` are those of the configuration where they are not the model's without the batch."""
        graph, inputs, outputs = model
        for platform in PLATFORMS:
            by_place = platform == "graphdef"

            def listed(tensors, by_place=by_place):
                first = 1 if max_batch_size else 0
                return [
                    (place.removesuffix(":0") if by_place else key, kind, dims or shape[first:], more)
                    for key, (place, kind, shape) in tensors.items()
                ]

            text = config(platform, listed(inputs), listed(outputs), extra, max_batch_size)
            if by_place:
                tf.write_graph_def(self.path, f"graphdef_{name}", graph, text)
            else:
                tf.write_saved_model(self.path, f"savedmodel_{name}", model, text)


def write_types(repository):
    for datatype in TYPES:
        repository.add(f"echo_{datatype}", tf.echo(datatype, [-1, -1]))
        repository.add(f"batch_{datatype}", tf.echo(datatype, [-1, 3]), BATCHES, 8)
    for datatype in SUMS:
        repository.add(f"sums_{datatype}", tf.add_sub(datatype, [-1]))


def no_dimensions(dims):
    """By the graph and the signature a scalar, which the reference's own test models take for any shape."""
    graph, inputs, _ = tf.echo("FP32", [])
    return graph, inputs, {"y": ("out_y:0", "FP32", dims)}


def write_shapes(repository):
    add = repository.add
    add("scalar", tf.echo("FP32", []), dims=[1])
    add("fixed", tf.echo("INT32", [2, 3]))
    add("three", tf.echo("FP32", [-1, 2, -1]), max_batch_size=4)
    add("reshape", tf.echo("FP32", [-1, 12]), max_batch_size=4, dims=[3, 4], more="reshape { shape: [ 12 ] }")
    add("reshape_strings", tf.echo("BYTES", [-1, 4]), dims=[2, 2], more="reshape { shape: [ 1, 4 ] }")
    flat = "reshape { shape: [ ] }"
    add("one_per_row", tf.echo("BYTES", [-1]), max_batch_size=4, dims=[1], more=flat)
    add("unknown_rank", tf.echo("FP32", UNKNOWN_RANK), dims=[-1, 2])
    add("unknown_rank_batch", tf.echo("FP32", UNKNOWN_RANK), max_batch_size=4, dims=[2])
    add("says_no_shape", tf.echo("FP32", UNKNOWN_RANK), dims=[3])
    add("says_no_dimensions", no_dimensions([-1, 2]), dims=[-1, 2])
    add("says_no_dimensions_batch", no_dimensions([-1, 2]), max_batch_size=4, dims=[2])


def sequence_model():
    """y and next are x + state, but only x where a sequence begins."""
    graph = tf.Graph()
    dims = [-1, 1]
    for name in ("x", "state", "start"):
        graph.placeholder(name, "FP32", dims)
    graph.constant("one", "FP32", np.float32(1))
    graph.binary("goes_on", "Sub", "FP32", "one", "start")
    graph.binary("kept", "Mul", "FP32", "state", "goes_on")
    graph.binary("y", "AddV2", "FP32", "x", "kept")
    graph.identity("next", "FP32", "y")
    info = {name: (name + ":0", "FP32", dims) for name in ("x", "state", "start", "y", "next")}
    return graph, {k: info[k] for k in ("x", "state", "start")}, {k: info[k] for k in ("y", "next")}


def ragged_model():
    """x plus the number of requests."""
    graph = tf.Graph()
    graph.placeholder("x", "FP32", [-1])
    graph.placeholder("count", "INT32", [-1])
    graph.node("size", "Size", ["count"], T=tf.type_of("INT32"), out_type=tf.type_of("INT32"))
    graph.node("number", "Cast", ["size"], SrcT=tf.type_of("INT32"), DstT=tf.type_of("FP32"))
    graph.binary("y", "AddV2", "FP32", "x", "number")
    inputs = {"x": ("x:0", "FP32", [-1]), "count": ("count:0", "INT32", [-1])}
    return graph, inputs, {"y": ("y:0", "FP32", [-1])}


def write_others(repository):
    path = repository.path
    for name, model in (
        ("completed", tf.add_sub("FP32", [-1, 4])),
        ("completed_fixed", tf.add_sub("FP32", [2, 4])),
        ("completed_share", tf.share("FP32", [-1, 4])),
        ("completed_strings", tf.echo("BYTES", [-1])),
        ("completed_scalar", tf.echo("INT64", [])),
    ):
        tf.write_saved_model(path, name, model)
    text = 'platform: "tensorflow_savedmodel"\ninput [ { name: "a" dims: [ 4 ] } ]\n'
    tf.write_saved_model(path, "completed_partly", tf.add_sub("FP32", [-1, 4]), text)
    io = [("a", "FP32", [4]), ("b", "FP32", [4])], [("sum", "FP32", [4])]
    tf.write_saved_model(path, "without_scheduler", tf.add_sub("FP32", [-1, 4]), config("savedmodel", *io, "", 8))
    io = [("x", "FP32", [1])], [("y", "FP32", [1])]
    tf.write_saved_model(path, "sequence", sequence_model(), config("savedmodel", *io, SEQUENCES, 4))
    io = [("x", "FP32", [-1], "allow_ragged_batch: true")], [("y", "FP32", [-1])]
    tf.write_saved_model(path, "ragged", ragged_model(), config("savedmodel", *io, RAGGED, 8))
    settings = "".join(
        parameter(key, value)
        for key, value in (
            ("TF_NUM_INTRA_THREADS", "1"),
            ("TF_NUM_INTER_THREADS", "1"),
            ("TF_USE_PER_SESSION_THREADS", "on"),
            ("MAX_SESSION_SHARE_COUNT", "2"),
        )
    )
    settings += "instance_group [ { kind: KIND_CPU count: 3 } ]\noptimization { graph { level: 1 } }\n"
    repository.add("parameters", tf.matrix(1024, [-1, 1024]), settings, 8)
    io = [("by", "INT32", [1])], [("count", "INT32", [1])]
    init = parameter("TF_INIT_OPS_FILE", "init_ops.json")
    for name in ("counter", "counter_in_version"):
        group = "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
        tf.write_graph_def(path, name, tf.counter(), config("graphdef", *io, init + group))
        folder = path / name / ("1" if name == "counter_in_version" else "")
        (folder / "init_ops.json").write_text('{"init_ops": ["init"]}')
    for name, graph in COUNTERS_OF_SEQUENCES.items():
        tf.write_graph_def(path, name, graph(), config("graphdef", *io, init + EACH_ITS_INSTANCE))
        (path / name / "init_ops.json").write_text('{"init_ops": ["init"]}')
    io = [("by", "INT32", [1])], [("now", "INT32", [1])]
    tf.write_graph_def(path, "counter_without", tf.counter(), config("graphdef", *io))
    big = [1, 32768]
    io = [("x", "FP32", big)], [("done", "FP32", big), ("last", "FP32", big)]
    tf.write_graph_def(path, "keeper", tf.keeper("FP32", big), config("graphdef", *io))
    optional = tf.Graph()
    optional.constant("default", "FP32", np.float32([7, 8]))
    kinds = {"dtype": tf.type_of("FP32"), "shape": tf.shape_of([-1])}
    optional.node("x", "PlaceholderWithDefault", ["default"], **kinds)
    optional.placeholder("z", "FP32", [-1])
    optional.binary("y", "AddV2", "FP32", "x", "z")
    io = [("x", "FP32", [2], "optional: true"), ("z", "FP32", [2])], [("y", "FP32", [2])]
    tf.write_graph_def(path, "optional", optional, config("graphdef", *io))
    io = [("in_a:0", "FP32", [2]), ("in_b", "FP32", [2])], [("difference:0", "FP32", [2])]
    tf.write_graph_def(path, "places", tf.add_sub("FP32", [-1])[0], config("graphdef", *io))
    io = [("in_x", "FP32", [4])], [("out_y", "FP32", [4])]
    other = config("graphdef", *io) + 'default_model_filename: "frozen.pb"\n'
    tf.write_graph_def(path, "other_name", tf.echo("FP32", [-1])[0], other, file_name="frozen.pb")


def write_large_counter(path):
    """A variable of TensorFlow 1 with 8 MB, to which each run adds."""
    graph, kind, count = tf.Graph(), tf.type_of("FP32"), 2_000_000
    integer = tf.type_of("INT32")
    graph.placeholder("by", "FP32", [])
    shape = tf.shape_of([count])
    graph.node("v", "VariableV2", dtype=kind, shape=shape, shared_name=tf.text_of(""), container=tf.text_of(""))
    graph.constant("dims", "INT32", np.array([count], np.int32))
    graph.constant("zero", "FP32", np.float32(0))
    graph.node("first", "Fill", ["dims", "zero"], T=kind, index_type=integer)
    graph.node("init", "Assign", ["v", "first"], T=kind)
    graph.node("full", "Fill", ["dims", "by"], T=kind, index_type=integer)
    graph.node("add", "AssignAdd", ["v", "full"], T=kind)
    graph.identity("count", "FP32", "add")
    io = [("by", "FP32", [1])], [("count", "FP32", [count])]
    tf.write_graph_def(
        path, "large_counter", graph, config("graphdef", *io) + parameter("TF_INIT_OPS_FILE", "init_ops.json")
    )
    (path / "large_counter" / "init_ops.json").write_text('{"init_ops": ["init"]}')


def write_signatures(path):
    """A SavedModel of two graphs with two signatures each, which four models take from the same files."""
    graphs = []
    for t, tag in enumerate(("serve", "testTag")):
        graph, signatures = tf.Graph(), {}
        for s, name in enumerate(("serving_default", "testSigDef")):
            graph.placeholder(f"in_{s}", "FP32", [16])
            graph.constant(f"factor_{s}", "FP32", np.float32(1 + s + 2 * t))
            graph.binary(f"out_{s}", "Mul", "FP32", f"in_{s}", f"factor_{s}")
            io = {"INPUT": (f"in_{s}:0", "FP32", [16])}, {"OUTPUT": (f"out_{s}:0", "FP32", [16])}
            signatures[name] = tf.signature(*io)
        start = {"__saved_model_init_op": (graph.node("start", "NoOp"), "FP32", [])}
        signatures["__saved_model_init_op"] = tf.signature({}, start)
        graphs.append(tf.meta_graph(graph.graph_def(), signatures, [tag]))
    folder = tf.write_saved_model_bytes(path, "sig_tag0", tf.saved_model(*graphs))
    for number, extra in (
        (1, parameter("TF_SIGNATURE_DEF", "testSigDef")),
        (2, parameter("TF_GRAPH_TAG", "testTag")),
        (3, parameter("TF_GRAPH_TAG", "testTag") + parameter("TF_SIGNATURE_DEF", "testSigDef")),
    ):
        models.write_model(path, f"sig_tag{number}", 'platform: "tensorflow_savedmodel"\n' + extra)
        (path / f"sig_tag{number}" / "1" / "model.savedmodel").symlink_to(folder)
    other = tf.multiply(5, [4])
    signatures = {"only": tf.signature(*other[1:]), "__saved_model_train_op": tf.signature({}, {})}
    tf.write_saved_model(path, "other_signature", other, signatures=signatures)
    both = tf.multiply(6, [4])
    tf.write_saved_model(path, "two_tags", both, parameter("TF_GRAPH_TAG", "gpu,serve"), tags=["serve", "gpu"])


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("tensorflow") / "models"
    path.mkdir()
    repository = Repository(path)
    write_types(repository)
    write_shapes(repository)
    write_others(repository)
    write_signatures(path)
    write_large_counter(path)
    models.copy_example(path, "digits")
    for example in (models.ROOT / "examples" / "platforms" / "tensorflow").iterdir():
        shutil.copytree(example, path / example.name)
    with servers.running(path, log_dir=tmp_path_factory.mktemp("server"), timeout=120) as running:
        running.repository = path
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


def infer(client, model, tensors, datatype="FP32", **options):
    """The outputs as {name: array} for inputs given in the same way."""
    answer = client.infer(model, [client.input(n, t, datatype) for n, t in tensors.items()], **options)
    outputs = client.as_json("get_model_metadata", model)["outputs"]
    return {o["name"]: answer.as_numpy(o["name"]) for o in outputs}


def ones(*shape):
    return np.ones(shape, np.float32)


def random_tensor(datatype, shape, seed=3):
    return models.random_tensor(np.random.default_rng(seed), datatype, shape)


def names(platform):
    """What the models call their tensors."""
    return ("in_x", "out_y") if platform == "graphdef" else ("x", "y")


def echoed(client, platform, model, values, datatype="FP32"):
    x, y = names(platform)
    answer = client.infer(f"{platform}_{model}", [client.input(x, values, datatype)])
    return answer.as_numpy(y)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (200, 100), (0, 3), (3, 0)], ids=str)
def test_every_type_arrives_and_returns_in_every_shape(client, platform, datatype, shape):
    values = random_tensor(datatype, shape)
    np.testing.assert_array_equal(echoed(client, platform, f"echo_{datatype}", values, datatype), values)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("datatype", TYPES)
def test_requests_of_different_sizes_share_a_batch(client, platform, datatype):
    rows = [random_tensor(datatype, (n, 3), seed=n) for n in (1, 3, 2, 1)]

    def one(values):
        own = clients.Client(client.kind, type("", (), {"http": client.url, "grpc": client.url}))
        try:
            return echoed(own, platform, f"batch_{datatype}", values, datatype)
        finally:
            own.close()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for values, answer in zip(rows, pool.map(one, rows), strict=True):
            np.testing.assert_array_equal(answer, values)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("datatype", SUMS)
def test_every_type_is_computed_with(client, platform, datatype):
    prefix = "in_" if platform == "graphdef" else ""
    if datatype == "BYTES":
        a, b = np.array([b"a", b"", b"long " * 20], object), np.array([b"1", b"2", b"\0"], object)
        expected = {
            "sum": [b"a+1", b"+2", b"long " * 20 + b"+\0"],
            "difference": [b"1-a", b"2-", b"\0-" + b"long " * 20],
        }
        expected = {name: np.array(values, object) for name, values in expected.items()}
    else:
        kind = np.dtype(models.TYPES[datatype][1])
        a, b = (np.array(values).astype(kind) for values in ([5, 6, 7], [1, 2, 3]))
        expected = {"sum": np.array([6, 8, 10]).astype(kind), "difference": np.array([4, 4, 4]).astype(kind)}
    answer = infer(client, f"{platform}_sums_{datatype}", {prefix + "a": a, prefix + "b": b}, datatype)
    for name, values in expected.items():
        np.testing.assert_array_equal(answer[name], values)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "model, datatype, shape",
    [
        ("scalar", "FP32", (1,)),
        ("fixed", "INT32", (2, 3)),
        ("three", "FP32", (3, 2, 5)),
        ("three", "FP32", (1, 2, 0)),
        ("reshape", "FP32", (2, 3, 4)),
        ("reshape_strings", "BYTES", (2, 2)),
        ("one_per_row", "BYTES", (4, 1)),
        ("unknown_rank", "FP32", (7, 2)),
        ("unknown_rank_batch", "FP32", (3, 2)),
        ("says_no_shape", "FP32", (3,)),
        ("says_no_dimensions", "FP32", (7, 2)),
        ("says_no_dimensions_batch", "FP32", (3, 2)),
        ("says_no_dimensions_batch", "FP32", (1, 2)),
    ],
)
def test_shapes_are_those_of_the_configuration(client, platform, model, datatype, shape):
    values = random_tensor(datatype, shape)
    answer = echoed(client, platform, model, values, datatype)
    np.testing.assert_array_equal(answer, values)
    assert answer.shape == shape


def configuration(client, model):
    made = client.as_json("get_model_config", model)
    return made.get("config", made)


def dims_of(tensor):
    return [int(d) for d in tensor["dims"]]


def test_a_configuration_is_completed_with_batches_where_rows_do_not_depend_on_each_other(client):
    made = configuration(client, "completed")
    assert made["max_batch_size"] == 4 and "dynamic_batching" in made
    assert made["platform"] == "tensorflow_savedmodel"
    assert [(i["name"], i["data_type"], dims_of(i)) for i in made["input"]] == [
        ("a", "TYPE_FP32", [4]),
        ("b", "TYPE_FP32", [4]),
    ]
    answer = infer(client, "completed", {"a": ones(3, 4), "b": ones(3, 4)})
    assert answer["sum"].tolist() == [[2] * 4] * 3


@pytest.mark.parametrize("model", ["completed_fixed", "completed_share"])
def test_a_configuration_is_completed_without_batches_elsewhere(client, model):
    made = configuration(client, model)
    assert made.get("max_batch_size", 0) == 0
    assert len(made["input"][0]["dims"]) == 2


def test_no_dimensions_are_completed_as_the_reshape_of_one(client):
    made = configuration(client, "completed_strings")
    assert made["max_batch_size"] == 4 and dims_of(made["input"][0]) == [1]
    words = np.array([[b"some"], [b"words"]], object)
    assert infer(client, "completed_strings", {"x": words}, "BYTES")["y"].tolist() == words.tolist()
    assert infer(client, "completed_scalar", {"x": np.array([5])}, "INT64")["y"].tolist() == [5]


def test_the_bytes_of_the_weights_are_reported_for_each_session(client):
    """Three instances have two sessions, each with a matrix; a variable counts as a constant does."""

    def reported(model):
        (use,) = client.as_json("get_inference_statistics", model)["model_stats"][0]["memory_usage"]
        return int(use["byte_size"])

    matrices = 2 * 4 * 1024 * 1024
    for platform in PLATFORMS:
        assert matrices <= reported(f"{platform}_parameters") < matrices + 200
    assert reported("counter") == 8


def test_what_a_configuration_has_decides_and_the_rest_is_completed(client):
    made = configuration(client, "completed_partly")
    assert made["max_batch_size"] == 4, "the dimensions are those of a batched model"
    assert sorted((i["name"], i["data_type"]) for i in made["input"]) == [("a", "TYPE_FP32"), ("b", "TYPE_FP32")]


def test_a_configuration_without_a_scheduler_gets_the_dynamic_one(client):
    made = configuration(client, "without_scheduler")
    assert made["max_batch_size"] == 8 and "dynamic_batching" in made
    assert [o["name"] for o in made["output"]] == ["sum"]


@pytest.mark.parametrize("number", range(4))
def test_signatures_and_tags_choose_a_graph_of_the_same_file(client, number):
    answer = infer(client, f"sig_tag{number}", {"INPUT": ones(16)})["OUTPUT"]
    np.testing.assert_array_equal(answer, ones(16) * (number + 1))


def test_a_signature_of_another_name_serves_where_there_is_no_default(server, client):
    assert infer(client, "other_signature", {"INPUT": ones(4)})["OUTPUT"].tolist() == [5] * 4
    server.wait_for_log("unable to find serving signature 'serving_default', using signature 'only'")


def test_several_tags_choose_the_graph_that_has_them_all(client):
    assert infer(client, "two_tags", {"INPUT": ones(4)})["OUTPUT"].tolist() == [6] * 4


def test_init_ops_run_once_and_all_instances_share_the_session(server):
    with clients_of(server) as (http, _):
        for model in ("counter", "counter_in_version"):
            counts = [infer(http, model, {"by": np.array([1], np.int32)}, "INT32")["count"].item() for _ in range(10)]
            assert counts == list(range(101, 111))


def test_a_response_has_the_variable_as_of_one_run(server):
    """A variable of TensorFlow 1 is changed where it lies, while the response of an earlier run is sent."""

    def ask(_):
        with clients_of(server) as (http, _):
            counts = [infer(http, "large_counter", {"by": ones(1)})["count"] for _ in range(10)]
        assert all(count.min() == count.max() for count in counts)
        return [count[0] for count in counts]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        seen = sorted(count for counts in pool.map(ask, range(3)) for count in counts)
    assert seen == list(range(1, 31))


@pytest.mark.parametrize("model", COUNTERS_OF_SEQUENCES)
def test_sequences_on_different_instances_do_not_share_variables(server, model):
    with clients_of(server) as (http, _):
        for step in range(4):
            for sequence in (1, 2, 3):
                options = {"sequence_id": sequence, "sequence_start": step == 0, "sequence_end": step == 3}
                answer = infer(http, model, {"by": np.array([sequence], np.int32)}, "INT32", **options)
                assert answer["count"].item() == 100 + sequence * (step + 1)


class clients_of:
    """Both clients, for tests whose models count."""

    def __init__(self, server):
        self._server = server

    def __enter__(self):
        self._clients = [clients.Client(kind, self._server) for kind in ("http", "grpc")]
        return self._clients

    def __exit__(self, *_):
        for client in self._clients:
            client.close()


def test_a_variable_without_init_ops_is_told_in_tensorflows_words(client):
    text = (
        "FAILED_PRECONDITION: Could not find variable v. This could mean that the variable has been deleted. "
        "In TF1, it can also mean the variable is uninitialized."
    )
    with pytest.raises(InferenceServerException) as caught:
        infer(client, "counter_without", {"by": np.array([1], np.int32)}, "INT32")
    assert text in str(caught.value)
    assert "\n" not in caught.value.message()


def test_a_model_that_keeps_its_input_keeps_a_copy(client):
    first = random_tensor("FP32", (1, 32768), seed=5)
    client.infer("keeper", [client.input("x", first, "FP32")], outputs=[client.output("done")])
    for seed in range(6, 12):
        echoed(client, "savedmodel", "echo_FP32", random_tensor("FP32", (1, 32768), seed=seed))
    later = random_tensor("FP32", (1, 32768), seed=12)
    answer = client.infer("keeper", [client.input("x", later, "FP32")], outputs=[client.output("last")])
    np.testing.assert_array_equal(answer.as_numpy("last"), first)


def test_an_optional_input_may_be_absent_where_the_graph_has_a_default(client):
    assert infer(client, "optional", {"z": ones(2)})["y"].tolist() == [8, 9]
    assert infer(client, "optional", {"x": ones(2), "z": ones(2)})["y"].tolist() == [2, 2]


def test_tensors_of_a_graph_may_be_named_with_their_number(client):
    answer = infer(client, "places", {"in_a:0": ones(2) * 3, "in_b": ones(2)})
    assert answer["difference:0"].tolist() == [2, 2]


def test_a_file_of_another_name_is_served(client):
    assert infer(client, "other_name", {"in_x": ones(4)})["out_y"].tolist() == [1] * 4


@pytest.mark.parametrize("platform", PLATFORMS)
def test_parameters_are_accepted(client, platform):
    x, y = names(platform)
    for _ in range(6):
        assert infer(client, f"{platform}_parameters", {x: ones(3, 1024)})[y].tolist() == [[512.0] * 1024] * 3


def test_only_outputs_that_are_wanted_are_returned(client):
    inputs = [client.input(n, ones(2), "FP32") for n in ("a", "b")]
    for wanted in (["sum"], ["difference"], ["difference", "sum"]):
        answer = client.infer("savedmodel_sums_FP32", inputs, outputs=[client.output(n) for n in wanted])
        assert [answer.as_numpy(n) is not None for n in ("sum", "difference")] == [
            n in wanted for n in ("sum", "difference")
        ]


def test_sequences_keep_their_states_apart(client):
    totals = {7: 0, 8: 0, 9: 0}
    for step in range(4):
        for sequence in totals:
            totals[sequence] += sequence * (step + 1)
            options = {"sequence_id": sequence, "sequence_start": step == 0, "sequence_end": step == 3}
            values = ones(1, 1) * sequence * (step + 1)
            assert infer(client, "sequence", {"x": values}, **options)["y"].item() == totals[sequence]


def test_requests_of_different_lengths_share_a_ragged_batch(client):
    values = np.arange(3, dtype=np.float32)[None]
    np.testing.assert_array_equal(infer(client, "ragged", {"x": values})["y"], values + 1)


@pytest.mark.parametrize("model", ["digits_savedmodel", "digits_graphdef"])
@pytest.mark.parametrize("rows", [1, 5])
def test_digits_are_those_of_onnx_runtime(client, model, rows):
    tensor = client.as_json("get_model_metadata", "digits")["inputs"][0]
    images = models.digit_images()
    inputs = {tensor["name"]: images[:rows]}
    first, second = (infer(client, name, inputs) for name in ("digits", model))
    assert sorted(first) == sorted(second)
    for name, expected in first.items():
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(second[name], expected, atol=1e-4)
        else:
            np.testing.assert_array_equal(second[name], expected)


@pytest.mark.parametrize(
    "tensors, datatype, text",
    [
        ({"a": ones(1, 4)}, "FP32", "expected 2 inputs"),
        ({"a": ones(1, 5), "b": ones(1, 5)}, "FP32", "unexpected shape"),
        ({"a": ones(1, 4, 1), "b": ones(1, 4, 1)}, "FP32", "unexpected shape"),
        ({"a": ones(1, 4).astype(np.int32), "b": ones(1, 4).astype(np.int32)}, "INT32", "data-type"),
    ],
)
def test_inputs_of_another_number_shape_or_type_are_refused(client, tensors, datatype, text):
    with pytest.raises(InferenceServerException, match=text):
        infer(client, "completed", tensors, datatype)
