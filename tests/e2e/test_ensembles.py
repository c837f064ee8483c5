# SPDX-License-Identifier: Apache-2.0
"""Ensembles; each test names its sentences in docs/scheduling.md. Those whose steps have to be busy are in
test_ensembles_in_progress.py."""

import json
import queue
import threading
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from harness import decoupled, models
from harness import server as servers
from harness.clients import Client

FLOATS = {"IN": ("FP32", [-1])}
OUT = {"OUT": ("FP32", [-1])}


def step(model, inputs, outputs, version=-1):
    def entries(kind, pairs):
        return " ".join(f'{kind} {{ key: "{key}" value: "{value}" }}' for key, value in pairs.items())

    return (
        f'step {{ model_name: "{model}" model_version: {version} '
        f"{entries('input_map', inputs)} {entries('output_map', outputs)} }}\n"
    )


def one_to_one(model, source, target):
    return step(model, {"INPUT0": source}, {"OUTPUT0": target})


def write_ensemble(repository, name, steps, inputs=FLOATS, outputs=OUT, batch=0, extra="", optional=(), top=""):
    def tensors(described):
        return ", ".join(
            models.tensor_config(name, kind, dims, "optional: true" if name in optional else "")
            for name, (kind, dims) in described.items()
        )

    config = (
        f'platform: "ensemble"\nmax_batch_size: {batch}\n{top}'
        f"input [ {tensors(inputs)} ]\noutput [ {tensors(outputs)} ]\n"
        f"ensemble_scheduling {{\n{''.join(steps)}{extra} }}\n"
    )
    models.write_model(repository, name, config)


def write_identity(repository, name, dims=(-1,), kind="FP32", **options):
    models.write_model(repository, name, models.identity_config(kind, dims, **options))


def delay(milliseconds):
    return f'parameters {{ key: "execute_delay_ms" value: {{ string_value: "{milliseconds}" }} }}\n'


def at_most(requests):
    """The release of the reference server does not know the field."""
    return "" if servers.REFERENCE else f"max_inflight_requests: {requests}"


def chain(*model_names):
    tensors = ["IN", *[f"t{i}" for i in range(1, len(model_names))], "OUT"]
    return [one_to_one(model, tensors[i], tensors[i + 1]) for i, model in enumerate(model_names)]


def write_good(repository):
    write_identity(repository, "id")
    write_identity(repository, "batching", max_batch_size=8, extra="dynamic_batching { }\n")
    write_identity(repository, "matrix", (-1, -1))
    write_identity(repository, "slow", extra=delay(300))
    write_identity(repository, "four", (4,))
    two = {"LEFT": ("FP32", [-1]), "RIGHT": ("FP32", [-1])}
    write_ensemble(repository, "chain", chain("id", "id", "id"))
    write_ensemble(repository, "chain_batching", chain("batching", "batching", "batching"), batch=8)
    write_ensemble(repository, "mixed", chain("batching", "matrix", "batching"), batch=8)
    write_ensemble(repository, "one_row", chain("id", "batching", "id"))
    write_ensemble(repository, "nested", chain_of(["chain", "id", "chain"]))
    write_ensemble(
        repository,
        "fan",
        [one_to_one("id", "IN", "a"), one_to_one("id", "a", "LEFT"), one_to_one("slow", "a", "RIGHT")],
        outputs=two,
    )
    write_ensemble(repository, "failing", [one_to_one("id", "IN", "a"), one_to_one("four", "a", "OUT")])
    write_ensemble(repository, "limited", chain("slow", "id"), extra=at_most(2))
    if servers.has_backend("onnxruntime"):
        write_onnx(repository)
    if servers.has_backend("repeat"):
        write_repeated(repository)


def chain_of(names):
    """Steps through ensembles (IN to OUT) and identity models (INPUT0 to OUTPUT0)."""
    tensors = ["IN", *[f"t{i}" for i in range(1, len(names))], "OUT"]
    steps = []
    for i, name in enumerate(names):
        keys = ("INPUT0", "OUTPUT0") if name == "id" else ("IN", "OUT")
        steps.append(step(name, {keys[0]: tensors[i]}, {keys[1]: tensors[i + 1]}))
    return steps


def write_onnx(repository):
    pairs = ["INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"]
    tensors = ",\n".join(models.tensor_config(name, "FP32", [4]) for name in pairs[:2])
    outputs = ",\n".join(models.tensor_config(name, "FP32", [4]) for name in pairs[2:])
    models.write_model(
        repository,
        "add_sub",
        f'backend: "onnxruntime"\nmax_batch_size: 8\ninput [ {tensors} ]\noutput [ {outputs} ]\n'
        "instance_group [ { kind: KIND_CPU count: 1 } ]\ndynamic_batching { }\n",
        {"1": {"model.onnx": models.onnx_add_sub("FP32", ["n", 4])}},
    )
    # (a + b) + (a - b) = 2 a, and (a + b) - (a - b) = 2 b.
    write_ensemble(
        repository,
        "diamond",
        [
            step("add_sub", {"INPUT0": "A", "INPUT1": "B"}, {"OUTPUT0": "sum", "OUTPUT1": "difference"}),
            step(
                "add_sub",
                {"INPUT0": "sum", "INPUT1": "difference"},
                {"OUTPUT0": "TWICE_A", "OUTPUT1": "TWICE_B"},
            ),
        ],
        inputs={"A": ("FP32", [4]), "B": ("FP32", [4])},
        outputs={"TWICE_A": ("FP32", [4]), "TWICE_B": ("FP32", [4])},
        batch=8,
    )


def write_repeated(repository):
    decoupled.write_repeat(repository)
    write_identity(repository, "id_int", kind="INT32")
    write_identity(repository, "slow_int", kind="INT32", extra=delay(20))
    inputs = {"VALUES": ("INT32", [-1]), "DELAY": ("UINT32", [-1]), "WAIT": ("UINT32", [1])}
    for name, model, extra in (
        ("repeated", "id_int", ""),
        ("pressed", "slow_int", at_most(2)),
    ):
        write_ensemble(
            repository,
            name,
            [
                step(
                    "repeat",
                    {"IN": "VALUES", "DELAY": "DELAY", "WAIT": "WAIT"},
                    {"OUT": "value", "IDX": "INDEX"},
                ),
                one_to_one(model, "value", "RESULT"),
            ],
            inputs=inputs,
            outputs={"RESULT": ("INT32", [1]), "INDEX": ("UINT32", [1])},
            extra=extra,
        )


@pytest.fixture(scope="module")
def ensembles(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("ensembles")
    write_good(repository)
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("log")) as server:
        yield server


@pytest.fixture(params=["http", "grpc"])
def client(request, ensembles):
    made = Client(request.param, ensembles)
    yield made
    made.close()


def infer(client, model, tensor, names=("OUT",), **options):
    outputs = [client.output(name) for name in names]
    inputs = [client.input("IN", tensor, "FP32")]
    return client.infer(model, inputs, outputs=outputs, **options)


def numbers(*shape):
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    "model, shape",
    [
        ("chain", (5,)),
        ("chain", (300_000,)),
        ("nested", (7,)),
        ("chain_batching", (3, 5)),
        ("mixed", (1, 5)),
        ("mixed", (4, 5)),
        ("one_row", (5,)),
    ],
)
def test_tensors_pass_through_all_steps(client, model, shape):
    """E-1, E-6, E-14: chains, nested ensembles, and models with and without a batch dimension."""
    tensor = numbers(*shape)
    np.testing.assert_array_equal(infer(client, model, tensor).as_numpy("OUT"), tensor)


def test_fans_out_and_in(client, onnx):
    """E-1, E-2: a tensor read twice, and a step of two inputs."""
    a, b = numbers(2, 4), numbers(2, 4) * 10
    result = client.infer("diamond", [client.input("A", a, "FP32"), client.input("B", b, "FP32")])
    np.testing.assert_array_equal(result.as_numpy("TWICE_A"), 2 * a)
    np.testing.assert_array_equal(result.as_numpy("TWICE_B"), 2 * b)


def count(server, model):
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/stats", timeout=10) as reply:
        return json.load(reply)["model_stats"][0]


def test_runs_only_what_the_requested_outputs_need(client, ensembles):
    """E-3"""
    before = count(ensembles, "slow")["inference_count"]
    result = infer(client, "fan", numbers(3), names=["LEFT"])
    np.testing.assert_array_equal(result.as_numpy("LEFT"), numbers(3))
    assert result.as_numpy("RIGHT") is None
    assert count(ensembles, "slow")["inference_count"] == before


def test_answers_name_their_sequence(client):
    """E-7, E-8"""
    result = infer(client, "chain", numbers(2), sequence_id=9, sequence_start=True)
    answer = result.get_response()
    parameters = answer["parameters"] if client.is_http else answer.parameters
    if client.is_http:
        assert parameters == {"sequence_id": 9, "sequence_start": True, "sequence_end": False}
    else:
        assert parameters["sequence_id"].int64_param == 9
        assert parameters["sequence_start"].bool_param is True
        assert parameters["sequence_end"].bool_param is False


def test_a_failing_step_answers_once_with_the_name_of_the_ensemble(client, ensembles):
    """E-9"""
    with pytest.raises(InferenceServerException) as caught:
        infer(client, "failing", numbers(5), request_id="r")
    assert caught.value.message().startswith(
        "in ensemble 'failing', [request id: r] unexpected shape for input 'INPUT0' for model 'four'. "
        "Expected [4], got [5]."
    )
    np.testing.assert_array_equal(infer(client, "failing", numbers(4)).as_numpy("OUT"), numbers(4))


def test_statistics_count_the_ensemble_and_its_steps(client, ensembles):
    """E-16"""
    before, steps = count(ensembles, "chain"), count(ensembles, "id")
    infer(client, "chain", numbers(2))
    after = servers.wait_until(
        lambda: (now := count(ensembles, "chain"))["inference_count"] > before["inference_count"] and now,
        "the count",
    )
    assert after["inference_count"] == before["inference_count"] + 1
    assert after["execution_count"] == before["execution_count"] + 1
    stats, old = after["inference_stats"], before["inference_stats"]
    assert stats["success"]["count"] == old["success"]["count"] + 1
    assert stats["queue"]["ns"] == 0 or servers.REFERENCE
    now = count(ensembles, "id")
    assert now["inference_count"] == steps["inference_count"] + 3
    for part in ("compute_input", "compute_infer", "compute_output"):
        spent = now["inference_stats"][part]["ns"] - steps["inference_stats"][part]["ns"]
        assert stats[part]["ns"] - old[part]["ns"] == spent


def test_metadata_and_configuration(client):
    """E-11, E-15: an ensemble is a model like others."""
    assert client.is_model_ready("chain")
    metadata = client.as_json("get_model_metadata", "chain")
    assert metadata["platform"] == "ensemble"
    config = client.as_json("get_model_config", "chain")
    config = config.get("config", config)
    assert len(config["ensemble_scheduling"]["step"]) == 3
    assert not config["model_transaction_policy"].get("decoupled", False)


@pytest.mark.newer
def test_no_more_requests_of_a_step_than_allowed(ensembles):
    """E-13: everybody is answered, though only two may be in a step."""
    answers = queue.Queue()
    with http.InferenceServerClient(ensembles.http, concurrency=6) as client:

        def one(i):
            made = http.InferInput("IN", [1], "FP32")
            made.set_data_from_numpy(np.array([i], np.float32))
            answers.put((i, client.infer("limited", [made]).as_numpy("OUT")[0]))

        threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        waiting = [
            ensembles.scrape().get(("nv_inference_pending_request_count", "slow"), 0) for _ in range(20)
        ]
        for thread in threads:
            thread.join()
    assert sorted(answers.get() for _ in range(6)) == [(i, float(i)) for i in range(6)]
    # The others are held back by the ensemble; without it up to five would wait here.
    assert max(waiting) <= 2


@pytest.fixture
def repeat(ensembles):
    if not servers.has_backend("repeat"):
        pytest.skip("the build has no repeat backend")
    answers = queue.Queue()
    client = grpc.InferenceServerClient(ensembles.grpc)
    client.start_stream(callback=lambda result, error: answers.put((result, error)))

    def ask(model, values, **options):
        tensors = {
            "VALUES": np.array(values, np.int32),
            "DELAY": np.zeros(len(values), np.uint32),
            "WAIT": np.zeros(1, np.uint32),
        }
        inputs = []
        for name, tensor in tensors.items():
            kind = "INT32" if tensor.dtype == np.int32 else "UINT32"
            inputs.append(grpc.InferInput(name, list(tensor.shape), kind))
            inputs[-1].set_data_from_numpy(tensor)
        client.async_stream_infer(model, inputs, enable_empty_final_response=True, **options)

    yield ask, answers
    client.stop_stream()
    client.close()


def collect(answers):
    """The outputs until the final response."""
    got = []
    while True:
        result, error = answers.get(timeout=30 * servers.SLOWNESS)
        assert error is None, error
        response = result.get_response()
        if response.outputs:
            got.append((int(result.as_numpy("RESULT")[0]), int(result.as_numpy("INDEX")[0])))
        if response.parameters["triton_final_response"].bool_param:
            return got


@pytest.mark.parametrize("model", ["repeated", "pressed"])
@pytest.mark.parametrize("values", [[7], [5, 6, 7, 8], list(range(40))])
def test_each_answer_of_a_decoupled_step_makes_one(repeat, model, values):
    """E-11, E-13: the tensors of one answer stay together."""
    ask, answers = repeat
    ask(model, values)
    assert sorted(collect(answers), key=lambda pair: pair[1]) == [(v, i) for i, v in enumerate(values)]


def test_a_decoupled_step_without_answers_ends_with_the_final_flag(repeat):
    """E-11"""
    ask, answers = repeat
    ask("repeated", [])
    assert collect(answers) == []


def test_an_ensemble_with_a_decoupled_step_is_decoupled(ensembles, repeat):
    """E-11"""
    with urllib.request.urlopen(f"http://{ensembles.http}/v2/models/repeated/config", timeout=10) as reply:
        assert json.load(reply)["model_transaction_policy"]["decoupled"] is True


REASONS = {
    "missing": "ensemble missing contains models that are not available or ambiguous: nowhere",
    "circle_a": "circular dependency between ensembles: circle_a -> ... -> circle_b -> circle_a",
    "circle_b": "circular dependency between ensembles: circle_b -> ... -> circle_a -> circle_b",
    "wrong_shape": "in ensemble wrong_shape, ensemble tensor IN: inconsistent shape: [5] is inferred from "
    "model wrong_shape while [4] is inferred from model four",
    "wrong_type": "in ensemble wrong_type, ensemble tensor IN: inconsistent data type: TYPE_FP32 is inferred "
    "from model wrong_type while TYPE_INT32 is inferred from model integers",
    "large_batch": "ensemble large_batch allows maximum batch size 16, but it contains model batching which "
    "only allows maximum batch size to be 8",
    "no_input": "in ensemble no_input, ensemble tensor IN is mapping to non-existing input NONE in model id",
    "no_output": "in ensemble no_output, ensemble tensor OUT is mapped from non-existing output NONE in model id",
    "version": "ensemble 'version' depends on 'id' whose required version 7 is not loaded.",
    "outside": "ensemble 'outside' depends on 'missing' which is not valid. Model 'missing' failed with error: "
    "ensemble missing contains models that are not available or ambiguous: nowhere",
    "unused": "ensemble tensor 'spare' is unused in ensemble 'unused'",
}


def write_bad(repository):
    write_identity(repository, "id")
    write_identity(repository, "four", (4,))
    write_identity(repository, "integers", kind="INT32")
    write_identity(repository, "batching", max_batch_size=8)
    write_ensemble(repository, "missing", chain("nowhere"))
    write_ensemble(repository, "outside", [step("missing", {"IN": "IN"}, {"OUT": "OUT"})])
    write_ensemble(repository, "circle_a", [step("circle_b", {"IN": "IN"}, {"OUT": "OUT"})])
    write_ensemble(repository, "circle_b", [step("circle_a", {"IN": "IN"}, {"OUT": "OUT"})])
    write_ensemble(repository, "wrong_shape", chain("four"), inputs={"IN": ("FP32", [5])})
    write_ensemble(repository, "wrong_type", chain("integers"))
    write_ensemble(repository, "large_batch", chain("batching"), batch=16)
    write_ensemble(repository, "no_input", [step("id", {"NONE": "IN"}, {"OUTPUT0": "OUT"})])
    write_ensemble(repository, "no_output", [step("id", {"INPUT0": "IN"}, {"NONE": "OUT"})])
    write_ensemble(repository, "version", [step("id", {"INPUT0": "IN"}, {"OUTPUT0": "OUT"}, version=7)])
    write_ensemble(repository, "unused", [*chain("id"), one_to_one("id", "IN", "spare")])


def test_ensembles_that_do_not_fit_are_not_loaded(start_server, empty_repository):
    """E-14, E-15: each with its reason; the models themselves are served."""
    write_bad(empty_repository)
    server = start_server(
        empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"]
    )
    for name, reason in REASONS.items():
        servers.wait_until(lambda reason=reason: reason in server.log, f"{name}: {reason}")
    with http.InferenceServerClient(server.http) as client:
        servers.wait_until(lambda: client.is_model_ready("id"), "the models to be served")
        for name in REASONS:
            assert not client.is_model_ready(name)


def test_an_optional_input_may_be_left_out(start_server, empty_repository):
    """E-5"""
    write_identity(empty_repository, "id")
    tensors = {"IN": ("FP32", [-1]), "MORE": ("FP32", [-1])}
    write_ensemble(
        empty_repository,
        "optional",
        # In this order: Triton drops its first step together with an input that is not needed.
        [one_to_one("id", "MORE", "MORE_OUT"), one_to_one("id", "IN", "OUT")],
        inputs=tensors,
        outputs={"OUT": ("FP32", [-1]), "MORE_OUT": ("FP32", [-1])},
        optional=("MORE",),
    )
    server = start_server(empty_repository)
    client = Client("http", server)
    inputs = [client.input("IN", numbers(2), "FP32")]
    # The step of the missing input is not needed for the first output, and refused by its model else.
    result = client.infer("optional", inputs, outputs=[client.output("OUT")])
    np.testing.assert_array_equal(result.as_numpy("OUT"), numbers(2))
    with pytest.raises(InferenceServerException) as caught:
        client.infer("optional", inputs)
    assert "in ensemble 'optional', " in caught.value.message()
    assert "missing required input(s) ['INPUT0']" in caught.value.message()
    client.close()


def test_a_step_runs_the_latest_version(start_server, empty_repository):
    """E-4"""
    config = models.identity_config("FP32", (-1,), extra="version_policy { all { } }\n")
    models.write_model(empty_repository, "versions", config, {"1": {}, "3": {}})
    write_ensemble(empty_repository, "latest", chain("versions"))
    write_ensemble(
        empty_repository, "first", [step("versions", {"INPUT0": "IN"}, {"OUTPUT0": "OUT"}, version=1)]
    )
    server = start_server(empty_repository)
    client = Client("http", server)
    infer(client, "latest", numbers(2))
    infer(client, "latest", numbers(2))
    infer(client, "first", numbers(2))

    def counts():
        with urllib.request.urlopen(f"http://{server.http}/v2/models/versions/stats", timeout=10) as reply:
            return {row["version"]: row["inference_count"] for row in json.load(reply)["model_stats"]}

    servers.wait_until(lambda: counts() == {"1": 1, "3": 2}, "the counts")
    client.close()


def test_outputs_have_the_labels_of_the_model_that_makes_them(start_server, empty_repository):
    """E-17"""
    config = models.identity_config("FP32", (3,)).replace(
        'output [\n  { name: "OUTPUT0"', 'output [\n  { name: "OUTPUT0" label_filename: "labels.txt"'
    )
    folder = models.write_model(empty_repository, "labelled", config)
    (folder / "labels.txt").write_text("zero\none\ntwo\n")
    write_ensemble(empty_repository, "classes", chain("labelled"))
    server = start_server(empty_repository)
    client = Client("http", server)
    tensor = np.array([1, 5, 3], np.float32)
    inputs = [client.input("IN", tensor, "FP32")]
    result = client.infer("classes", inputs, outputs=[client.output("OUT", class_count=2)])
    assert [value.decode() for value in result.as_numpy("OUT")] == ["5.000000:1:one", "3.000000:2:two"]
    client.close()


def test_steps_must_not_join_different_decoupled_models(start_server, empty_repository):
    """E-12"""
    if not servers.has_backend("repeat"):
        pytest.skip("the build has no repeat backend")
    decoupled.write_repeat(empty_repository)
    inputs = {"VALUES": ("INT32", [-1]), "DELAY": ("UINT32", [-1]), "WAIT": ("UINT32", [1])}
    sources = {"IN": "VALUES", "DELAY": "DELAY", "WAIT": "WAIT"}
    write_ensemble(
        empty_repository,
        "joined",
        [step("repeat", sources, {"OUT": "LEFT"}), step("repeat", sources, {"OUT": "RIGHT"})],
        inputs=inputs,
        outputs={"LEFT": ("INT32", [1]), "RIGHT": ("INT32", [1])},
    )
    server = start_server(
        empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"]
    )
    reason = "in ensemble joined, step of model 'joined' receives inputs originated from different decoupled models"
    servers.wait_until(lambda: reason in server.log, reason)
