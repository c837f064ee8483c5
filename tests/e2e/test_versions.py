# SPDX-License-Identifier: Apache-2.0
"""Labels of versions, canaries and shadows (docs/versions.md), with the published clients."""

import collections
import json
import threading
import urllib.request

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import KINDS, Client
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer  # ours

ALL_VERSIONS = "version_policy { all { } }\n"
EXPLICIT = "--model-control-mode=explicit"


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def write(folder, name, versions=(1, 2), extra="", **options):
    config = models.identity_config("FP32", [2], **options) + ALL_VERSIONS + extra
    models.write_model(folder, name, config, {str(version): {} for version in versions})


def adder(number):
    """OUTPUT0 = INPUT0 + number."""
    return models.onnx_model(
        [helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", TensorProto.FLOAT, [2])],
        [("OUTPUT0", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array([number], dtype=np.float32), "number")],
    )


def traffic(server, model, change=None):
    """The rules of a model, after the change."""
    reply = change_reply(server, model, change)
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def change_reply(server, model, change=None):
    path = f"/v2/repository/models/{model}/traffic"
    if change is None:
        return wire.request(server, "GET", path)
    return wire.request(server, "POST", path, change if isinstance(change, str) else json.dumps(change))


def metrics(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as page:
        return page.read().decode()


def ask(client, model, version="", **options):
    """The version that answers."""
    tensor = client.input("INPUT0", np.zeros(2, dtype=np.float32), "FP32")
    result = client.infer(model, [tensor], model_version=version, **options).get_response()
    return int(result["model_version"] if client.is_http else result.model_version)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    write(folder, "plain")
    write(folder, "labelled", extra=parameter("version_labels", "stable=1,next=2"))
    write(folder, "moved")
    write(folder, "divided")
    write(folder, "sticky")
    write(folder, "refused")
    write(folder, "seen", versions=(1, 2, 3))
    write(folder, "slow", versions=(1,), extra=parameter("execute_delay_ms", 400))
    models.write_model(folder, "narrow", models.identity_config("FP32", [1]))
    batching = "sequence_batching { direct { } max_sequence_idle_microseconds: 60000000 }\n"
    write(folder, "sequence", max_batch_size=4, extra=batching)
    # Sequences that tests leave open need not be waited for.
    with servers.running(folder, args=["--exit-timeout-secs=2"]) as running:
        yield running


@pytest.fixture(params=KINDS)
def client(request, server):
    client = Client(request.param, server)
    yield client
    client.close()


# --- Labels ---


def test_a_label_stands_for_its_version_in_every_request_that_names_one(server, client):
    assert ask(client, "labelled", "stable") == 1
    assert ask(client, "labelled", "next") == 2
    assert ask(client, "labelled", "1") == 1
    assert ask(client, "labelled") == 2
    assert client.is_model_ready("labelled", "stable")
    assert client.as_json("get_model_metadata", "labelled", "stable")["versions"] == ["1"]
    assert client.as_json("get_model_config", "labelled", "stable")
    statistics = client.as_json("get_inference_statistics", "labelled", "next")
    assert [one["version"] for one in statistics["model_stats"]] == ["2"]


def test_an_unknown_label_gets_an_error_with_the_known_ones(server, client):
    with pytest.raises(InferenceServerException) as refused:
        ask(client, "labelled", "stabel")
    assert refused.value.message() == "model 'labelled' has no version label 'stabel'; labels: 'next', 'stable'"


def test_a_model_without_labels_says_what_triton_says(server):
    client = Client("grpc", server)
    with pytest.raises(InferenceServerException) as refused:
        ask(client, "plain", "stable")
    assert "failed to get model version from specified version string 'stable'" in refused.value.message()
    client.close()
    reply = wire.request(server, "GET", "/v2/models/plain/versions/stable")
    assert (reply.status, reply.error) == (404, "Not Found")


def test_labels_are_shown_where_they_disturb_no_client(server):
    metadata = json.loads(wire.request(server, "GET", "/v2/models/labelled").body)
    assert metadata["version_labels"] == {"next": 2, "stable": 1}
    assert "version_labels" not in json.loads(wire.request(server, "GET", "/v2/models/plain").body)
    index = json.loads(wire.request(server, "POST", "/v2/repository/index").body)
    labels = {(one["name"], one["version"]): one.get("labels") for one in index if one["name"] in ("labelled", "plain")}
    assert labels == {
        ("labelled", "1"): ["stable"],
        ("labelled", "2"): ["next"],
        ("plain", "1"): None,
        ("plain", "2"): None,
    }
    page = metrics(server)
    assert 'nereid_version_label{label="stable",model="labelled",version="1"} 1' in page


@pytest.mark.parametrize("label", ["1", "2", "-1", "", "a b", "a/b", "1st", "x" * 65])
def test_what_is_no_label_cannot_become_one(server, label):
    reply = change_reply(server, "refused", {"labels": {label: 1}})
    assert reply.status == 400
    assert "cannot be a version label" in reply.error
    assert traffic(server, "refused")["labels"] == {}


class Load:
    """Requests without a pause; which version answered, by the step at which the request was sent."""

    def __init__(self, server, model, version="", kinds=("http", "grpc", "http", "grpc")):
        self.step = 0
        self.answers = collections.Counter()
        self.lock = threading.Lock()
        self.failures = []
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(server, kind, model, version)) for kind in kinds]

    def work(self, server, kind, model, version):
        client = Client(kind, server)
        counts = collections.Counter()
        while not self.is_over.is_set():
            step = self.step
            try:
                counts[step, ask(client, model, version)] += 1
            except Exception as error:
                self.failures.append(str(error))
            if counts.total() >= 50:
                with self.lock:
                    self.answers.update(counts)
                counts.clear()
        client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        assert self.failures == []

    def count(self, step):
        with self.lock:
            return sum(count for (of, _), count in self.answers.items() if of == step)

    def finish_step(self, count):
        """Waits until so many answers of this step are known, and begins the next one."""
        servers.wait_until(lambda: self.count(self.step) >= count, "answers", timeout=60)
        self.step += 1
        return self.step - 1

    def share(self, step, version):
        """The share of that version, in percent."""
        return 100 * self.answers[step, version] / self.count(step)


def test_labels_move_under_load_without_a_failed_request(server):
    client = Client("grpc", server)
    traffic(server, "moved", {"labels": {"stable": 1, "next": 2}})
    with Load(server, "moved", "stable") as load:
        for turn in range(30):
            new, old = (2, 1) if turn % 2 == 0 else (1, 2)
            traffic(server, "moved", {"labels": {"stable": new, "next": old}})
            assert (ask(client, "moved", "stable"), ask(client, "moved", "next")) == (new, old)
            load.finish_step(1)
    client.close()


# --- The canary ---


def test_a_canary_goes_from_0_to_100_and_back_under_load(server):
    steps = [0, 1, 12.5, 50, 100, 50, 0.5, 0]
    client = Client("http", server)
    traffic(server, "divided", {"canary": {"version": 2, "percent": 0}})
    with Load(server, "divided") as load:
        for percent in steps:
            traffic(server, "divided", {"canary": {"percent": percent}})
            load.step += 1
            load.finish_step(1000)
            # Whoever names a version gets it.
            assert [ask(client, "divided", version) for version in ("1", "2")] == [1, 2]
    for i, percent in enumerate(steps):
        assert load.share(2 * i + 1, 2) == pytest.approx(percent, abs=1), f"step {i}: {percent} %"
    assert traffic(server, "divided", {"canary": None}) == {"labels": {}, "as_configured": True}
    assert ask(client, "divided") == 2  # the highest, as ever
    client.close()


def test_clients_with_a_key_stay_and_a_larger_share_only_adds(server):
    keys = [f"user-{i}" for i in range(400)]
    clients = {kind: Client(kind, server) for kind in ("http", "grpc")}

    def places(kind):
        return {key: ask(clients[kind], "sticky", headers={"x-user": key}) for key in keys}

    before = None
    for percent in (10, 40, 100):
        traffic(server, "sticky", {"canary": {"version": 2, "percent": percent, "header": "X-User"}})
        now = places("http")
        assert places("grpc") == now
        assert 100 * sum(version == 2 for version in now.values()) / len(keys) == pytest.approx(percent, abs=6)
        assert before is None or all(now[key] == 2 for key in keys if before[key] == 2)
        before = now
    for one in clients.values():
        one.close()


def test_requests_that_name_a_label_are_divided_if_the_canary_says_so(server, client):
    change = {"labels": {"stable": 1}, "default_label": "stable", "canary": {"version": 2, "percent": 100}}
    traffic(server, "seen", {**change, "canary": {**change["canary"], "label": None}})
    assert (ask(client, "seen"), ask(client, "seen", "stable")) == (2, 1)
    traffic(server, "seen", {"canary": {"label": "stable"}})
    assert (ask(client, "seen"), ask(client, "seen", "stable")) == (2, 2)
    traffic(server, "seen", {"canary": None})
    assert (ask(client, "seen"), ask(client, "seen", "stable")) == (1, 1)
    traffic(server, "seen", {"default_label": None, "labels": {"stable": None}})
    assert ask(client, "seen") == 3


def test_sequences_stay_where_they_began(server):
    client = Client("grpc", server)
    tensor = client.input("INPUT0", np.zeros((1, 2), dtype=np.float32), "FP32")

    def send(sequence, **flags):
        result = client.infer("sequence", [tensor], sequence_id=sequence, **flags)
        return int(result.get_response().model_version)

    traffic(server, "sequence", {"canary": {"version": 2, "percent": 0}})
    assert [send(i, sequence_start=True) for i in (1, 2)] == [1, 1]
    traffic(server, "sequence", {"canary": {"percent": 100}})
    assert [send(i) for i in (1, 2)] == [1, 1]
    assert [send(f"text {i}", sequence_start=True) for i in (1, 2)] == [2, 2]
    traffic(server, "sequence", {"canary": {"percent": 0}})
    assert [send(f"text {i}") for i in (1, 2)] == [2, 2]
    assert send(3, sequence_start=True) == 1
    assert send(1, sequence_end=True) == 1
    # The rules are gone, and all versions still have their sequences.
    traffic(server, "sequence", {"canary": None})
    assert send(2, sequence_end=True) == 1
    assert send("text 1", sequence_end=True) == 2
    assert send(1, sequence_start=True, sequence_end=True) == 2
    client.close()


# --- The shadow ---


def results(server, model):
    return traffic(server, model)["shadow"]["results"]


def wait_for_results(server, model, **expected):
    expected = {"equal": 0, "different": 0, "failed": 0, "dropped": 0, **expected}
    servers.wait_until(lambda: results(server, model) == expected, f"results {expected}")


@pytest.fixture
def shadowed(start_server, empty_repository, onnx):
    config = ALL_VERSIONS + (
        'platform: "onnxruntime_onnx"\n'
        f"input [ {models.tensor_config('INPUT0', 'FP32', [2])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [2])} ]\n"
    )
    numbers = {1: 1, 2: 1.000001, 3: 1.5}
    files = {str(version): {"model.onnx": adder(number)} for version, number in numbers.items()}
    models.write_model(empty_repository, "m", config + parameter("version_labels", "stable=1"), files)
    models.write_model(empty_repository, "narrow", models.identity_config("FP32", [1]))
    slow = models.identity_config("FP32", [2]) + parameter("execute_delay_ms", 300)
    models.write_model(empty_repository, "slow", slow)
    return start_server(empty_repository)


def test_the_answers_of_a_shadow_are_compared_and_never_returned(shadowed):
    clients = [Client(kind, shadowed) for kind in ("http", "grpc")]
    rest = {"default_label": "stable", "shadow": {"version": 2, "percent": 100}}
    traffic(shadowed, "m", rest)
    for _ in range(5):
        assert [ask(client, "m") for client in clients] == [1, 1]
    wait_for_results(shadowed, "m", equal=10)
    traffic(shadowed, "m", {"shadow": {"tolerance": 0}})
    assert [ask(client, "m") for client in clients] == [1, 1]
    wait_for_results(shadowed, "m", equal=10, different=2)
    traffic(shadowed, "m", {"shadow": {"version": 3, "percent": 50, "tolerance": 0.1}})
    for _ in range(20):
        assert ask(clients[0], "m") == 1
    wait_for_results(shadowed, "m", different=10)
    # Requests that name a number are not copied.
    assert ask(clients[0], "m", "1") == 1
    page = metrics(shadowed)
    line = 'nereid_shadow_requests_total{model="m",result="different",shadow_model="m",shadow_version="3"} 10'
    assert line in page
    for client in clients:
        client.close()


def test_a_shadow_that_fails_disturbs_nobody(shadowed):
    client = Client("http", shadowed)
    traffic(shadowed, "m", {"shadow": {"model": "narrow", "version": 1}})
    assert [ask(client, "m") for _ in range(4)] == [3] * 4
    wait_for_results(shadowed, "m", failed=4)
    client.close()


def test_a_slow_shadow_drops_what_it_cannot_take(shadowed):
    client = Client("grpc", shadowed)
    traffic(shadowed, "m", {"shadow": {"model": "slow", "in_flight": 2}})
    assert [ask(client, "m") for _ in range(10)] == [3] * 10
    servers.wait_until(lambda: sum(results(shadowed, "m").values()) == 10, "all results")
    found = results(shadowed, "m")
    # The shadow returns its input, to which the first one has added something.
    assert found["dropped"] >= 1 and found["different"] >= 2
    assert found["dropped"] + found["different"] == 10
    client.close()


def test_a_server_ends_while_its_shadow_is_busy(shadowed):
    client = Client("http", shadowed)
    traffic(shadowed, "m", {"shadow": {"model": "slow", "in_flight": 50}})
    for _ in range(5):
        ask(client, "m")
    client.close()
    shadowed.stop()


# --- Control ---


@pytest.mark.parametrize(
    "change, error",
    [
        ("", "JSON"),
        ("[]", "the traffic is no JSON object"),
        ({"canery": {}}, "'canery' is no member of the traffic"),
        ({"canary": {"percent": 5}}, "the canary has no version"),
        ({"canary": {"version": 9}}, "the version of the canary is 9, which is not at ready state"),
        ({"canary": {"version": 2, "percent": 100.01}}, "expected a number from 0 to 100"),
        ({"canary": {"version": 2, "percent": -1}}, "expected a number from 0 to 100"),
        ('{"canary": {"version": 2, "percent": NaN}}', "expected a number from 0 to 100"),
        ({"canary": {"version": 2, "percent": "5"}}, "'canary.percent' of the traffic: expected a number"),
        ({"canary": {"version": 2, "header": "a\r\nb"}}, "expected the name of a header"),
        ({"canary": {"version": 2, "label": "x"}}, "which is no label of the model; labels: none"),
        ({"labels": {"a": 9}}, "the version of label 'a' is 9, which is not at ready state; versions that are: 1, 2"),
        ({"labels": {"a": "1"}}, "'labels.a' of the traffic: expected a whole number"),
        ({"labels": {f"l{i}": 1 for i in range(65)}}, "65 version labels; expected 64 at most"),
        ({"default_label": "x"}, "the default label is 'x', which is no label of the model"),
        ({"shadow": {}}, "the shadow has neither a model nor a version"),
        ({"shadow": {"model": "none"}}, "the shadow: Request for unknown model: 'none' is not found"),
        ({"shadow": {"version": 1, "in_flight": 0}}, "expected a number from 1 to 4096"),
        ({"shadow": {"version": 1, "tolerance": -1}}, "expected a number from 0 on"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(server, change, error):
    reply = change_reply(server, "refused", change)
    assert reply.status in (400, 404, 503)
    assert error in reply.error
    assert traffic(server, "refused") == {"labels": {}, "as_configured": True}


def test_the_rules_of_a_model_that_is_unknown_are_not_there(server):
    assert change_reply(server, "nobody").status == 404
    assert change_reply(server, "nobody", {}).status == 404


def test_a_configuration_that_makes_no_sense_is_not_loaded(start_server, empty_repository):
    write(empty_repository, "bad", extra=parameter("canary_version", 2) + parameter("canary_percent", "5%"))
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    index = wire.request(server, "POST", "/v2/repository/index").body.decode()
    assert "model 'bad': parameter 'canary_percent' is '5%'; expected a number" in index


def test_what_survives_a_reload(start_server, empty_repository):
    """A change by a control call does, unless the configuration has other rules now; an unload forgets it."""
    labels = parameter("version_labels", "stable=1")
    write(empty_repository, "m", extra=labels)
    server = start_server(empty_repository, args=[EXPLICIT, "--load-model=m"])
    client = Client("http", server)
    configured = {"labels": {"stable": 1}, "as_configured": True}
    assert traffic(server, "m") == configured
    assert traffic(server, "m", {"labels": {"stable": 2}}) == {"labels": {"stable": 2}, "as_configured": False}
    write(empty_repository, "m", versions=(1, 2, 3), extra=labels)
    client.load_model("m")
    assert ask(client, "m") == 3
    assert ask(client, "m", "stable") == 2
    write(empty_repository, "m", extra=parameter("version_labels", "stable=3"))
    client.load_model("m")
    assert traffic(server, "m") == {"labels": {"stable": 3}, "as_configured": True}
    traffic(server, "m", {"labels": {"stable": 1}})
    client.unload_model("m")
    client.load_model("m")
    assert ask(client, "m", "stable") == 3
    client.close()


def test_a_version_that_a_rule_names_may_go(start_server, empty_repository):
    """Requests without a version then go to the others; the label says why it does not work."""
    rules = parameter("version_labels", "next=2") + parameter("canary_version", 2) + parameter("canary_percent", 100)
    write(empty_repository, "m", extra=rules)
    server = start_server(empty_repository, args=[EXPLICIT, "--load-model=m"])
    client = Client("grpc", server)
    assert ask(client, "m") == 2
    (empty_repository / "m" / "2").rmdir()
    client.load_model("m")
    assert ask(client, "m") == 1
    with pytest.raises(InferenceServerException) as refused:
        ask(client, "m", "next")
    text = "label 'next' of model 'm' stands for version 2, which is not at ready state"
    assert refused.value.message() == text
    client.close()
