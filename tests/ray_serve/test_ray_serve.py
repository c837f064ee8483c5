# SPDX-License-Identifier: Apache-2.0
"""nereid.ray in a real Ray Serve: its proxy with Triton's client, its handles, its scaling, and a replica that is
killed."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import cluster as clusters  # noqa: E402
from harness import models  # noqa: E402
from harness import server as servers  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.skipif(servers.REFERENCE, reason="about this server's package")]

STEPS = 5


def write_models(folder):
    for name in ("simple", "simple_string", "identity"):
        models.copy_example(folder / "models", name)
    for name in "abc":
        models.write_model(folder / "many", name, models.identity_config("INT32", [-1]))
    shutil.copyfile(models.EXAMPLES / "digits" / "1" / "model.onnx", folder / "digits.onnx")


@pytest.fixture(scope="module")
def cluster(require_server):
    if reason := clusters.missing():
        pytest.skip(f"nereid.ray is NOT tested: {reason}")
    running = clusters.Cluster(write_models)
    try:
        running.ask("run", app="main")
        yield running
    finally:
        running.stop()


@pytest.fixture
def client(cluster):
    with tritonclient.http.InferenceServerClient(cluster.url("main"), concurrency=8) as made:
        yield made


def tensor(name, values, datatype="INT64", binary=True):
    values = np.asarray(values)
    made = tritonclient.http.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values, binary_data=binary)
    return made


def ask(client, model, value, shape=(1,), **options):
    """The two numbers that `number` and `sum` answer with."""
    values = np.full(shape, value, np.int64)
    return client.infer(model, [tensor("value", values)], **options).as_numpy("output").ravel().tolist()


def replicas(client, count):
    """Asks until so many replicas answer, and no others."""

    def answering():
        found = {ask(client, "number", 1)[1] for _ in range(10 * count)}
        return found if len(found) == count else None

    return servers.wait_until(answering, f"{count} replicas", timeout=120)


@pytest.fixture
def two(cluster, client):
    """The two replicas that there are from the first test on that needs them."""
    cluster.scale(2)
    return replicas(client, 2)


# --- Over HTTP --------------------------------------------------------------------------------------


def test_tritonclient_finds_the_server_behind_the_proxy(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("simple")
    assert not client.is_model_ready("nowhere")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    assert [one["name"] for one in client.get_model_metadata("simple")["inputs"]] == ["INPUT0", "INPUT1"]
    assert client.get_model_config("simple")["name"] == "simple"


@pytest.mark.parametrize("binary", [True, False])
def test_tensors_in_json_and_in_binary_form(client, binary):
    a, b = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)
    inputs = [tensor("INPUT0", a, "INT32", binary), tensor("INPUT1", b, "INT32", binary)]
    outputs = [tritonclient.http.InferRequestedOutput(name, binary_data=binary) for name in ("OUTPUT0", "OUTPUT1")]
    result = client.infer("simple", inputs, outputs=outputs, request_id="seven")
    assert result.get_response()["id"] == "seven"
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)


def test_large_and_compressed_bodies_arrive_whole(client):
    values = np.random.default_rng(1).integers(0, 9, (1, 100_000)).astype(np.float32)
    for options in ({}, {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"}):
        result = client.infer("identity", [tensor("INPUT0", values, "FP32")], **options)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), values)


def test_errors_are_those_of_the_server(client):
    with pytest.raises(InferenceServerException, match="expected 2 inputs but got 1") as raised:
        client.infer("simple", [tensor("INPUT0", np.ones((1, 16), np.int32), "INT32")])
    assert raised.value.status() == "400"
    with pytest.raises(InferenceServerException, match="unknown model: 'nowhere'"):
        client.get_model_metadata("nowhere")


def test_requests_of_one_replica_run_together(client):
    waiting = [client.async_infer("together", [tensor("value", np.full((1, 1), n))]) for n in range(4)]
    assert [one.get_result().as_numpy("output").tolist() for one in waiting] == [[[4]]] * 4


def test_a_model_file(client):
    assert client.get_model_metadata("digits")["platform"] == "onnxruntime_onnx"
    result = client.infer("digits", [tensor("pixels", np.zeros((2, 64), np.float32), "FP32")])
    assert result.as_numpy("label").shape[0] == 2


# --- Streams ----------------------------------------------------------------------------------------


def post(cluster, app, path, body, **headers):
    request = urllib.request.Request(f"http://{cluster.url(app)}{path}", json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=60)


def test_responses_of_a_stream_come_one_by_one(cluster):
    with post(cluster, "main", "/v2/models/count/generate_stream", {"n": 4}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line[6:]) for line in response if line.startswith(b"data: ")]
    assert [event["output"] for event in events] == [0, 1, 2, 3]


def test_a_stream_ends_when_its_client_goes_away(cluster, tmp_path):
    ended = tmp_path / "ended"
    with post(cluster, "main", "/v2/models/endless/generate_stream", {"ended": str(ended)}) as response:
        assert b'"output":0' in response.readline()
        response.fp.raw._sock.shutdown(socket.SHUT_RDWR)
    servers.wait_until(ended.exists, "the generator to be closed")


# --- Handles ----------------------------------------------------------------------------------------


def test_a_handle_takes_and_gives_arrays(cluster):
    inputs = {"INPUT0": ["int32", [[1] * 16]], "INPUT1": ["int32", [[2] * 16]]}
    outputs = cluster.ask("infer", app="main", model="simple", inputs=inputs)
    assert outputs["OUTPUT0"] == ["ndarray", "int32", [[3] * 16]]
    only = cluster.ask("infer", app="main", model="simple", inputs=inputs, requested_outputs=["OUTPUT1"])
    assert list(only) == ["OUTPUT1"]
    texts = {name: ["object", [["4"] * 16]] for name in inputs}
    assert cluster.ask("infer", app="main", model="simple_string", inputs=texts)["OUTPUT0"][2] == [["8"] * 16]
    streamed = cluster.ask("stream", app="main", model="count", inputs={"n": ["int64", [3]]})
    assert [response["output"] for response in streamed] == [[0], [1], [2]]


def test_a_handle_raises_the_errors_of_the_package(cluster):
    missing = cluster.ask("infer", app="main", model="nowhere", inputs={})
    assert "NotFoundError" in missing["raised"]
    unnamed = cluster.ask("infer", app="main", inputs={})
    assert "InvalidArgumentError" in unnamed["raised"] and "say which model" in unnamed["text"]


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "infer"])
def test_a_handle_that_is_cancelled_ends_its_request(cluster, tmp_path, streams):
    ended, begun = tmp_path / "ended", tmp_path / "begun"
    inputs = {"ended": ["object", [str(ended)]], "begun": ["object", [str(begun)]]}
    cluster.ask("leave", app="main", model="endless", inputs=inputs, streams=streams)
    servers.wait_until(ended.exists, "the generator to be closed")


def test_nothing_is_reported_about_its_use(cluster):
    assert cluster.ask("reports_its_use") is False


# --- Multiplexed models -----------------------------------------------------------------------------


def test_models_are_loaded_on_demand_up_to_a_limit(cluster):
    cluster.ask("run", app="many")
    values = {"INPUT0": ["int32", [1, 2]]}
    with tritonclient.http.InferenceServerClient(cluster.url("many")) as client:
        assert cluster.ask("models", app="many") == []
        for model, loaded in (("a", ["a"]), ("b", ["a", "b"]), ("a", ["a", "b"]), ("c", ["a", "c"])):
            found = client.infer(
                model, [tensor("INPUT0", np.array([1, 2], np.int32), "INT32")],
                headers={"serve_multiplexed_model_id": model}).as_numpy("OUTPUT0")  # fmt: skip
            assert found.tolist() == [1, 2]
            assert cluster.ask("models", app="many") == loaded
        # The name in the path will do.
        assert client.get_model_metadata("b")["name"] == "b"
        assert cluster.ask("models", app="many") == ["b", "c"]
        with pytest.raises(InferenceServerException, match="for model 'b', and its header for 'c'"):
            client.infer("b", [tensor("INPUT0", np.array([1], np.int32), "INT32")], headers={"serve_multiplexed_model_id": "c"})
        # A model that there is not takes the place of none.
        for _ in range(3):
            with pytest.raises(InferenceServerException, match="Request for unknown model: 'nowhere' is not found") as raised:
                client.get_model_metadata("nowhere")
            assert raised.value.status() == "404"
        assert "NotFoundError" in cluster.ask("infer", app="many", inputs=values, multiplexed="nowhere")["raised"]
        assert cluster.ask("models", app="many") == ["b", "c"]
        # One that came later is found.
        models.write_model(cluster.folder / "many", "later", models.identity_config("INT32", [-1]))
        servers.wait_until(lambda: is_known(client, "later"), "the model")
        assert cluster.ask("models", app="many") == ["b", "later"]
    assert cluster.ask("infer", app="many", inputs=values, multiplexed="a")["OUTPUT0"] == ["ndarray", "int32", [1, 2]]
    assert cluster.ask("models", app="many") == ["a", "later"]
    cluster.ask("delete", app="many")


def is_known(client, model):
    with contextlib.suppress(InferenceServerException):
        return client.get_model_metadata(model)["name"] == model
    return False


# --- Sequences --------------------------------------------------------------------------------------


class Sequence:
    """A sequence of the model `sum`, and the replica that has it."""

    def __init__(self, client, sequence, headers=None):
        self.client, self.sequence, self.headers = client, sequence, headers
        self.total, self.replica = 0, None

    def go_on(self, value, start=False, end=False):
        self.total += value
        total, replica = ask(
            self.client, "sum", value, (1, 1), sequence_id=self.sequence, sequence_start=start, sequence_end=end,
            headers=self.headers)  # fmt: skip
        self.replica = self.replica or replica
        assert (total, replica) == (self.total, self.replica)


@pytest.mark.parametrize("has_header", [False, True])
def test_each_sequence_stays_with_one_replica(client, two, has_header):
    ids = range(100, 112) if has_header else range(200, 212)
    sequences = [Sequence(client, n, {"x-session-id": str(n)} if has_header else None) for n in ids]
    for step in range(STEPS):
        for sequence in sequences:
            sequence.go_on(step + 1, step == 0, step == STEPS - 1)
    assert len({sequence.replica for sequence in sequences}) == 2


def test_sequences_of_handles(cluster, two):
    for sequence in (77, "text"):
        for step in range(STEPS):
            outputs = cluster.ask(
                "infer", app="main", model="sum", inputs={"value": ["int64", [[1]]]}, sequence_id=sequence,
                sequence_start=step == 0, sequence_end=step == STEPS - 1)  # fmt: skip
            assert outputs["output"][2][0][0] == step + 1


def test_errors_of_sequences_are_those_of_the_package(cluster, two):
    # Some of them are handed on.
    for sequence in range(600, 606):
        answer = cluster.ask(
            "infer", app="main", model="sum", inputs={"value": ["float32", [[1]]]}, sequence_id=sequence, sequence_start=True)
        assert "InvalidArgumentError" in answer["raised"]


def test_a_sequence_that_no_replica_has_is_an_error(client, two):
    with pytest.raises(InferenceServerException, match="must specify the START flag"):
        ask(client, "sum", 1, (1, 1), sequence_id=987)
    with pytest.raises(InferenceServerException, match="compressed request to model 'sum'.*send it uncompressed"):
        ask(client, "sum", 1, (1, 1), sequence_id=988, sequence_start=True, request_compression_algorithm="gzip")


def test_sequences_go_on_when_a_replica_is_added(cluster, client, two):
    sequences = [Sequence(client, n, {"x-session-id": str(n)} if n % 2 else None) for n in range(300, 324)]
    left = [Sequence(client, n) for n in range(500, 524)]
    for sequence in sequences + left:
        sequence.go_on(1, start=True)
    cluster.scale(3)
    assert replicas(client, 3) > two
    for sequence in sequences:
        sequence.go_on(2)
        sequence.go_on(3, end=True)
    # Clients may begin sequences anew without having ended them, and some are now the new replica's.
    left = [Sequence(client, sequence.sequence) for sequence in left]
    for step in range(STEPS):
        for sequence in left:
            sequence.go_on(10, start=step == 0, end=step == STEPS - 1)
    # New ones use the new replica, too.
    found = set()
    numbers = itertools.count(400)

    def begin_one():
        one = Sequence(client, next(numbers))
        one.go_on(1, start=True, end=True)
        found.add(one.replica)
        return len(found) == 3

    servers.wait_until(begin_one, "a sequence on each replica")


# --- Replicas that end ------------------------------------------------------------------------------


class Caller(threading.Thread):
    """Asks one request after the other until told to end; every answer is checked."""

    def __init__(self, url, first, end):
        super().__init__(daemon=True)
        self.client = tritonclient.http.InferenceServerClient(url)
        self.values = itertools.count(first)
        self.end, self.answered, self.failures, self.wrong = end, [], [], []

    def run(self):
        while not self.end.is_set():
            value = next(self.values)
            try:
                answer, replica = ask(self.client, "number", value)
                (self.answered if answer == value else self.wrong).append((value, answer, replica))
            except InferenceServerException as error:
                self.failures.append(str(error))
        self.client.close()


def test_a_killed_replica_costs_only_the_requests_that_it_had(cluster, client):
    known = replicas(client, 3)
    killed = min(known)
    end = threading.Event()
    callers = [Caller(cluster.url("main"), 1_000_000 * n, end) for n in range(4)]
    for caller in callers:
        caller.start()

    def answers_of(replica):
        return sum(1 for caller in callers for answer in list(caller.answered) if answer[2] == replica)

    def new_ones():
        return {answer[2] for caller in callers for answer in list(caller.answered)} - known

    servers.wait_until(lambda: min(map(answers_of, known)) > 20, "answers of all")
    os.kill(killed, signal.SIGKILL)
    servers.wait_until(lambda: any(answers_of(replica) > 20 for replica in new_ones()), "a new replica", timeout=120)
    end.set()
    for caller in callers:
        caller.join(60)
    assert [caller.wrong for caller in callers] == [[]] * 4
    # Each caller had at most one request there.
    assert all(len(caller.failures) <= 1 for caller in callers), [caller.failures for caller in callers]


def test_a_replica_whose_server_has_ended_is_replaced(client):
    known = replicas(client, 3)
    client.infer("end_server", [tensor("value", [1])])
    found = set()

    def has_another():
        # Until Ray has noticed, some requests reach the replica, which cannot answer.
        with contextlib.suppress(InferenceServerException):
            found.add(ask(client, "number", 1)[1])
        return found - known

    servers.wait_until(has_another, "another replica", timeout=120)


@pytest.mark.parametrize(
    ("lost", "said"),
    [(0, "[['a', 'b'], ['a', 'b']] 1"), (2, "[['a', 'b'], ['a', 'b']] 3"),
     (100, "[\"no replica of 'models' answers\", \"no replica of 'models' answers\"] 12")],
)  # fmt: skip
def test_a_call_that_ray_loses_holds_no_sequence_up(lost, said):
    if reason := clusters.missing():
        pytest.skip(reason)
    environment = {**os.environ, "PYTHONPATH": str(servers.build_folder() / "python")}
    command = [clusters.PYTHON, clusters.HERE / "lost_call.py", str(lost)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == said, run.stderr


def test_what_is_in_progress_is_answered_when_an_application_ends(cluster, tmp_path):
    began, opened = tmp_path / "began", tmp_path / "opened"
    answers = []

    def wait():
        body = {"began": str(began), "opened": str(opened)}
        with post(cluster, "main", "/v2/models/gate/generate", body) as response:
            answers.append(json.load(response)["output"])

    waiting = threading.Thread(target=wait)
    waiting.start()
    servers.wait_until(began.exists, "the request to run")
    cluster.ask("delete", app="main")
    assert answers == []
    opened.touch()
    waiting.join(60)
    assert len(answers) == 1
