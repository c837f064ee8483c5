# SPDX-License-Identifier: Apache-2.0
"""The response cache: what is answered from it, what never is, and what happens when it is in trouble."""

import concurrent.futures
import json
import os
import queue
import signal
import time

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.utils
from harness import models, wire
from harness import server as servers
from harness.clients import Client
from harness.response_caches import Redis, cache_args
from onnx import TensorProto, helper, numpy_helper

CACHE = "response_cache { enable: true }\n"
KEEP_ORDER = "dynamic_batching { preserve_ordering: true }\n"


def delay(ms):
    return f'parameters {{ key: "execute_delay_ms" value: {{ string_value: "{ms}" }} }}\n'


def write_repository(path):
    models.write_model(path, "id", models.identity_config("FP32", [-1, -1], extra=CACHE))
    models.write_model(path, "text", models.identity_config("BYTES", [-1], extra=CACHE))
    models.write_model(path, "pair", models.identity_config("FP32", [-1], count=2, extra=CACHE))
    models.write_model(path, "other", models.identity_config("FP32", [-1, -1], extra=CACHE))
    models.write_model(path, "plain", models.identity_config("FP32", [-1, -1]))
    batching = models.identity_config("FP32", [-1], max_batch_size=8, extra=CACHE + KEEP_ORDER + delay(300))
    models.write_model(path, "ordered", batching)
    return path


@pytest.fixture
def repository(empty_repository):
    return write_repository(empty_repository)


@pytest.fixture
def local(start_server, repository):
    return start_server(repository, args=cache_args("local,size=1048576"))


OPEN_CLIENTS = []


@pytest.fixture(autouse=True)
def close_clients(start_server):
    """Before the servers end, which wait for their clients."""
    yield
    while OPEN_CLIENTS:
        OPEN_CLIENTS.pop().close()


def connect(kind, server):
    OPEN_CLIENTS.append(Client(kind, server))
    return OPEN_CLIENTS[-1]


class Asker:
    """Asks models over one connection and looks at what their statistics say."""

    def __init__(self, server, kind="grpc"):
        self.server = server
        self.client = connect(kind, server)

    def ask(self, tensor, model="id", datatype="FP32", outputs=None, **options):
        """The answer, after checking that it is right."""
        tensor = np.asarray(tensor, dtype=models.TYPES[datatype][1])
        inputs = [self.client.input("INPUT0", tensor, datatype)]
        if outputs is not None:
            options["outputs"] = [self.client.output(name) for name in outputs]
        result = self.client.infer(model, inputs, **options)
        answer = result.as_numpy("OUTPUT0")
        assert answer.shape == tensor.shape
        assert np.array_equal(answer, tensor)
        return result

    def counts(self, model="id"):
        """(hits, misses)"""
        stats = self.client.as_json("get_inference_statistics", model)["model_stats"][0]["inference_stats"]
        return tuple(int(stats[what].get("count", 0)) for what in ("cache_hit", "cache_miss"))

    def statistics(self, model="id"):
        return self.client.as_json("get_inference_statistics", model)["model_stats"][0]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_what_was_asked_before_is_answered_without_the_model(local, kind):
    """C-1"""
    asker = Asker(local, kind)
    for _ in range(4):
        asker.ask([[1, 2], [3, 4]])
    assert asker.counts() == (3, 1)
    statistics = asker.statistics()
    assert int(statistics["inference_stats"]["success"]["count"]) == 4
    assert int(statistics["inference_count"]) == int(statistics["execution_count"]) == 1
    assert int(statistics["inference_stats"]["queue"]["count"]) == 4
    assert int(statistics["inference_stats"]["cache_hit"]["ns"]) > 0
    assert int(statistics["inference_stats"]["cache_miss"]["ns"]) > 0


def test_protocols_share_answers(local):
    Asker(local, "http").ask([[5.0]])
    asker = Asker(local, "grpc")
    result = asker.ask([[5.0]], request_id="mine")
    assert result.get_response().id == "mine"
    assert asker.counts() == (1, 1)


def test_texts_are_kept_whole(local):
    asker = Asker(local)
    texts = [b"", b"one", b"\0\xff" * 50, b"x" * 5000]
    for _ in range(2):
        asker.ask(texts, model="text", datatype="BYTES")
    assert asker.counts("text") == (1, 1)


@pytest.mark.newer
def test_different_questions_never_share_an_answer(local):
    """C-2"""
    asker = Asker(local)
    values = np.arange(12, dtype=np.float32)
    # The same bytes every time.
    questions = [values.reshape(shape) for shape in ((1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1))]
    questions += [values.reshape(3, 4) + 1, values[:6].reshape(1, 6), np.zeros((0, 4)), np.zeros((4, 0))]
    for _ in range(2):
        for question in questions:
            asker.ask(question)
    assert asker.counts() == (len(questions), len(questions))
    asker.ask(values.reshape(3, 4), model="other")
    assert asker.counts("other") == (0, 1)


@pytest.mark.newer
def test_the_outputs_asked_for_are_part_of_the_question(local):
    client = connect("grpc", local)
    tensors = [np.full(4, value, np.float32) for value in (1, 2)]

    def ask(outputs):
        inputs = [client.input(f"INPUT{i}", tensor, "FP32") for i, tensor in enumerate(tensors)]
        asked = [client.output(name) for name in outputs] or None
        result = client.infer("pair", inputs, outputs=asked)
        for i, tensor in enumerate(tensors):
            answer = result.as_numpy(f"OUTPUT{i}")
            if outputs and f"OUTPUT{i}" not in outputs:
                assert answer is None
            else:
                assert np.array_equal(answer, tensor)

    asker = Asker(local)
    for _ in range(2):
        for outputs in ([], ["OUTPUT0"], ["OUTPUT1"], ["OUTPUT0", "OUTPUT1"], ["OUTPUT1", "OUTPUT0"]):
            ask(outputs)
    # All of them, in whatever order or by not saying anything, is one question.
    assert asker.counts("pair") == (7, 3)


@pytest.mark.newer
def test_parameters_are_part_of_the_question(local):
    asker = Asker(local)
    for parameters in ({"t": 1}, {"t": 2}, {"t": "1"}, {"u": 1}, {"t": 1}):
        asker.ask([[1.0]], parameters=parameters)
    assert asker.counts() == (1, 4)


def test_models_that_do_not_ask_for_it_are_left_alone(local):
    asker = Asker(local)
    for _ in range(3):
        asker.ask([[1.0]], model="plain")
    assert asker.counts("plain") == (0, 0)
    assert int(asker.statistics("plain")["execution_count"]) == 3


def test_without_a_cache_the_setting_of_the_model_does_nothing(start_server, repository):
    server = start_server(repository)
    asker = Asker(server)
    for _ in range(3):
        asker.ask([[1.0]])
    assert asker.counts() == (0, 0)
    assert not any("nv_cache" in name for name, _ in server.scrape())


def test_metrics_tell_hits_and_misses_of_the_models_that_cache(local):
    """C-3"""
    asker = Asker(local)
    for value in (1, 1, 1, 2):
        asker.ask([[value]])
    metrics = local.scrape()
    assert metrics[("nv_cache_num_hits_per_model", "id")] == 2
    assert metrics[("nv_cache_num_misses_per_model", "id")] == 2
    assert metrics[("nv_cache_num_hits_per_model", "other")] == 0
    assert ("nv_cache_hit_duration_per_model", "id") in metrics
    assert ("nv_cache_miss_duration_per_model", "id") in metrics
    assert ("nv_cache_num_hits_per_model", "plain") not in metrics


def test_the_local_cache_forgets_what_was_not_used_for_longest(start_server, repository):
    # Room for three answers of 10 kB.
    server = start_server(repository, args=cache_args("local,size=35000"))
    asker = Asker(server)

    def question(value):
        return np.full((1, 2500), value, np.float32)

    for value in (0, 1, 2):
        asker.ask(question(value))
    asker.ask(question(0))  # used again
    assert asker.counts() == (1, 3)
    asker.ask(question(3))  # takes the place of 1
    for value in (0, 2, 3):
        asker.ask(question(value))
    assert asker.counts() == (4, 4)
    asker.ask(question(1))
    assert asker.counts() == (4, 5)


@pytest.mark.skipif(servers.is_sanitized(), reason="a sanitizer keeps freed memory for a while")
def test_the_local_cache_stays_within_its_size(start_server, repository):
    server = start_server(repository, args=cache_args("local,size=4000000"))
    asker = Asker(server)
    tensor = np.zeros((1, 100_000), np.float32)
    for value in range(20):
        tensor[0, 0] = value
        asker.ask(tensor)
    before = server.resident_bytes()
    for value in range(20, 200):
        tensor[0, 0] = value
        asker.ask(tensor)
    assert asker.counts() == (0, 200)
    # 72 MB went through it.
    assert server.resident_bytes() - before < 30_000_000


def test_what_is_larger_than_the_cache_is_answered_and_not_kept(start_server, repository):
    server = start_server(repository, args=cache_args("local,size=2000"))
    asker = Asker(server)
    for _ in range(2):
        asker.ask(np.zeros((1, 1000)))
    assert asker.counts() == (0, 2)
    servers.wait_until(lambda: "Failed to insert key" in server.log, "the line in the log")


def test_a_failed_request_is_asked_again(local):
    client = connect("http", local)
    wrong = [client.input("INPUT0", np.zeros((2, 2, 2), np.float32), "FP32")]
    for _ in range(2):
        with pytest.raises(tritonclient.utils.InferenceServerException, match="unexpected shape"):
            client.infer("id", wrong)
    assert Asker(local).counts() == (0, 0)


@pytest.mark.parametrize("kind", ["local", pytest.param("redis", marks=pytest.mark.newer)])
def test_answers_from_the_cache_take_their_turn_where_order_is_kept(kind, start_server, repository, request):
    """C-5"""
    caching = cache_args("local,size=1048576") if kind == "local" else request.getfixturevalue("redis").args()
    server = start_server(repository, args=caching)
    asker = Asker(server)
    asker.ask([[1.0]], model="ordered")
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        for number, value in enumerate((2, 1, 3, 1)):  # slow, known, slow, known
            tensor = asker.client.input("INPUT0", np.full((1, 1), value, np.float32), "FP32")
            client.async_stream_infer("ordered", [tensor], request_id=str(number))
        order = [answers.get(timeout=30).get_response().id for _ in range(4)]
        client.stop_stream()
    assert order == ["0", "1", "2", "3"]
    assert asker.counts("ordered") == (2, 3)


def test_many_clients_at_once_get_right_answers(local):
    clients = [tritonclient.grpc.InferenceServerClient(local.grpc) for _ in range(4)]
    asker = Asker(local)
    OPEN_CLIENTS.extend(clients)
    done = queue.Queue()
    sent = 0
    for round_ in range(50):
        for client in clients:
            value = float((round_ * 7) % 20)
            tensor = np.full((3, 3), value, np.float32)
            client.async_infer(
                "id",
                [asker.client.input("INPUT0", tensor, "FP32")],
                lambda result, error, value=value: done.put((result, error, value)),
            )
            sent += 1
    for _ in range(sent):
        result, error, value = done.get(timeout=60)
        assert error is None
        assert np.array_equal(result.as_numpy("OUTPUT0"), np.full((3, 3), value, np.float32))
    hits, misses = asker.counts()
    # A miss whose answer another request had inserted meanwhile is neither.
    assert 20 <= misses and hits + misses <= sent
    assert hits > 0


def test_an_ensemble_is_answered_without_its_steps(start_server, empty_repository):
    models.write_model(empty_repository, "step", models.identity_config("FP32", [-1, -1]))
    models.write_model(
        empty_repository,
        "ensemble",
        'platform: "ensemble"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('INPUT0', 'FP32', [-1, -1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1, -1])} ]\n"
        "ensemble_scheduling { step [ {\n"
        '  model_name: "step" model_version: -1\n'
        '  input_map { key: "INPUT0" value: "INPUT0" }\n'
        '  output_map { key: "OUTPUT0" value: "OUTPUT0" }\n'
        "} ] }\n" + CACHE,
    )
    asker = Asker(start_server(empty_repository, args=cache_args("local,size=100000")))
    for _ in range(3):
        asker.ask([[1, 2]], model="ensemble")
    assert asker.counts("ensemble") == (2, 1)
    assert int(asker.statistics("step")["execution_count"]) == 1


# --- Models that change -----------------------------------------------------------------------


def adder(number):
    """OUTPUT0 = INPUT0 + number."""
    return models.onnx_model(
        [helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", TensorProto.FLOAT, [2])],
        [("OUTPUT0", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array([number], dtype=np.float32), "number")],
    )


def added(client, model):
    tensor = client.input("INPUT0", np.zeros(2, dtype=np.float32), "FP32")
    return int(client.infer(model, [tensor]).as_numpy("OUTPUT0")[0])


@pytest.mark.newer
def test_another_configuration_in_a_load_request_has_other_answers(start_server, empty_repository):
    config = {"backend": "onnxruntime", "default_model_filename": "one.onnx",
              "response_cache": {"enable": True}}
    text = 'backend: "onnxruntime"\ndefault_model_filename: "one.onnx"\n' + CACHE
    files = {"one.onnx": adder(1), "two.onnx": adder(2)}
    models.write_model(empty_repository, "adder", text, {"1": files})
    args = ["--model-control-mode=explicit", "--load-model=adder", *cache_args("local,size=100000")]
    asker = Asker(start_server(empty_repository, args=args))
    assert [added(asker.client, "adder") for _ in range(2)] == [1, 1]
    assert asker.counts("adder") == (1, 1)
    asker.client.load_model("adder", config=json.dumps(config | {"default_model_filename": "two.onnx"}))
    assert [added(asker.client, "adder") for _ in range(2)] == [2, 2]
    asker.client.load_model("adder", config=json.dumps(config))
    assert added(asker.client, "adder") == 1


@pytest.mark.newer
def test_an_ensemble_follows_the_labels_of_its_steps(start_server, empty_repository):
    step = 'backend: "onnxruntime"\nversion_policy: { all { } }\n'
    models.write_model(empty_repository, "step", step,
                       {"1": {"model.onnx": adder(1)}, "2": {"model.onnx": adder(2)}})
    models.write_model(
        empty_repository,
        "ensemble",
        'platform: "ensemble"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('INPUT0', 'FP32', [2])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [2])} ]\n"
        "ensemble_scheduling { step [ {\n"
        '  model_name: "step" model_version: -1\n'
        '  input_map { key: "INPUT0" value: "INPUT0" }\n'
        '  output_map { key: "OUTPUT0" value: "OUTPUT0" }\n'
        "} ] }\n" + CACHE,
    )
    server = start_server(empty_repository, args=cache_args("local,size=100000"))
    asker = Asker(server)
    for version in (2, 1, 2, 1):
        change = {"labels": {"stable": version}, "default_label": "stable"}
        reply = wire.request(server, "POST", "/v2/repository/models/step/traffic", json.dumps(change))
        assert reply.status == 200, reply.body
        assert [added(asker.client, "ensemble") for _ in range(2)] == [version, version]
    assert asker.counts("ensemble") == (4, 4)


# --- Starting -------------------------------------------------------------------------------


def start_error(repository, *args):
    run = servers.run_to_end([f"--model-repository={repository}", f"--backend-directory={servers.backends()}", *args])
    assert run.returncode == 1, run.stdout
    return run.stdout


@pytest.mark.parametrize(
    "settings, expected",
    [
        (["local,size=1", "redis,key=value"], "multiple cache configurations"),
        (["absent,size=1"], "unable to find 'libtritoncache_absent.so' for cache. Searched: "),
        (["local,other=1"], "config didn't contain a valid 'size' field"),
        (["local,size=many"], "Failed to initialize LocalCache"),
        (["local"], "--cache-config option format is"),
        ([",size=1"], "No cache specified. --cache-config option format is"),
        (["local,size"], "--cache-config option format is"),
        (["local,size="], "--cache-config option format is"),
    ],
)
def test_a_wrong_setting_ends_the_start(repository, settings, expected):
    ports = [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), servers.free_ports(3))]
    assert expected in start_error(repository, *ports, *cache_args(*settings))


def test_the_old_flag_still_works_alone(start_server, repository):
    ports = servers.free_ports(1)
    output = start_error(
        repository, "--response-cache-byte-size=9", *cache_args("local,size=9"), f"--http-port={ports[0]}"
    )
    assert "incompatible flags" in output.lower()
    asker = Asker(start_server(repository, args=[*cache_args(), "--response-cache-byte-size=100000"]))
    for _ in range(2):
        asker.ask([[1.0]])
    assert asker.counts() == (1, 1)


@pytest.mark.parametrize(
    "extra, expected",
    [
        ("model_transaction_policy { decoupled: true }\n", "with 'decoupled' transaction policy"),
        ("sequence_batching { }\n", "with sequence batching scheduler"),
    ],
)
def test_models_that_cannot_be_cached_do_not_load(empty_repository, extra, expected):
    """C-6"""
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1], 1, 1, extra=CACHE + extra))
    ports = [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), servers.free_ports(3))]
    output = start_error(empty_repository, *ports, *cache_args("local,size=100000"))
    assert f"Response Cache does not currently support model m {expected}" in output


# --- Redis ----------------------------------------------------------------------------------


@pytest.fixture
def start_redis(tmp_path):
    started = []

    def start(*options):
        started.append(Redis(tmp_path, *options))
        return started[-1]

    yield start
    for redis in started:
        redis.stop()


@pytest.fixture
def redis(start_redis):
    return start_redis()


@pytest.mark.newer
def test_redis_keeps_answers_across_servers(start_server, repository, redis):
    first = start_server(repository, args=redis.args("pool_size=4"))
    asker = Asker(first)
    asker.ask([[1, 2], [3, 4]])
    asker.ask([[1, 2], [3, 4]])
    assert asker.counts() == (1, 1)
    assert len(redis.keys()) == 1
    first.stop()
    second = Asker(start_server(repository, args=redis.args()))
    second.ask([[1, 2], [3, 4]])
    second.ask(np.arange(250_000).reshape(500, 500))
    second.ask(np.arange(250_000).reshape(500, 500))
    assert second.counts() == (2, 1)


@pytest.mark.newer
def test_servers_beside_each_other_share_their_answers(start_server, repository, redis, tmp_path):
    """Replicas behind a balancer: what one has computed, the other need not."""
    askers = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        askers.append(Asker(start_server(repository, args=redis.args(), log_dir=tmp_path / name)))
    first, second = askers
    first.ask([[1, 2], [3, 4]])
    second.ask([[1, 2], [3, 4]])
    second.ask([[5, 6], [7, 8]])
    first.ask([[5, 6], [7, 8]])
    assert first.counts() == second.counts() == (1, 1)
    assert len(redis.keys()) == 2


@pytest.mark.newer
def test_a_changed_model_does_not_give_the_answers_of_its_predecessor(start_server, repository, redis):
    server = start_server(repository, args=redis.args())
    Asker(server).ask([[1.0]])
    server.stop()
    later = time.time() + 5
    os.utime(repository / "id" / "config.pbtxt", (later, later))
    asker = Asker(start_server(repository, args=redis.args()))
    asker.ask([[1.0]])
    assert asker.counts() == (0, 1)


@pytest.mark.newer
def test_a_damaged_entry_is_a_miss_and_is_replaced(start_server, repository, redis):
    server = start_server(repository, args=redis.args())
    asker = Asker(server)
    asker.ask([[1, 2, 3]])
    (key,) = redis.keys()
    size = int(redis.cli("STRLEN", key))
    damages = [
        ("SETRANGE", key, "0", "xxxx"),
        ("SETRANGE", key, "40", "x"),
        ("SETRANGE", key, str(size - 5), "y"),
        ("APPEND", key, "tail"),
        ("SET", key, ""),
        ("SET", key, "something else"),
    ]
    for number, damage in enumerate(damages):
        redis.cli(*damage)
        asker.ask([[1, 2, 3]])
        assert asker.counts() == (number, number + 2), damage
        asker.ask([[1, 2, 3]])
        assert asker.counts() == (number + 1, number + 2), damage
    # A value of another kind cannot be replaced by SET's rules, but it can be answered around.
    redis.cli("DEL", key)
    redis.cli("LPUSH", key, "x")
    asker.ask([[1, 2, 3]])
    server.wait_for_log("is not used: the entry is damaged")


@pytest.mark.newer
def test_without_redis_requests_are_answered_all_the_same(start_server, repository, redis):
    """C-4"""
    server = start_server(repository, args=redis.args())
    asker = Asker(server)
    asker.ask([[1.0]])
    asker.ask([[1.0]])
    assert asker.counts() == (1, 1)
    redis.stop()
    for value in range(30):
        asker.ask([[value]])
    servers.wait_until(lambda: "response cache: Redis cannot be reached" in server.log, "the line in the log")
    assert asker.counts()[0] == 1
    redis.start()

    def hits_again():
        asker.ask([[1.0]])
        return asker.counts()[0] > 1

    servers.wait_until(hits_again, "hits after Redis returned")
    servers.wait_until(lambda: "response cache: Redis can be reached again" in server.log, "the line in the log")
    assert server.log.count("response cache: Redis cannot be reached") == 1


@pytest.mark.newer
def test_a_redis_that_hangs_holds_up_few_requests(start_server, repository, redis):
    server = start_server(repository, args=redis.args("socket_timeout=300"))
    asker = Asker(server)
    asker.ask([[1.0]])
    redis.process.send_signal(signal.SIGSTOP)
    start = time.monotonic()
    for value in range(100):
        asker.ask([[value]])
    # One try a second of 300 ms each; every request by itself would take a minute.
    assert time.monotonic() - start < 20 * servers.SLOWNESS
    redis.process.send_signal(signal.SIGCONT)


def hang(redis):
    """Redis says nothing at all until the returned function is called."""
    redis.process.send_signal(signal.SIGSTOP)
    return lambda: redis.process.send_signal(signal.SIGCONT)


def hang_with_writes(redis):
    redis.cli("CLIENT", "PAUSE", "3600000", "WRITE")
    return lambda: redis.cli("CLIENT", "UNPAUSE")


@pytest.mark.newer
@pytest.mark.parametrize("kind", ["http", "grpc"])
@pytest.mark.parametrize("begin", [hang, hang_with_writes], ids=["everything", "writes"])
def test_while_redis_hangs_only_requests_that_need_it_wait(start_server, repository, redis, begin, kind):
    """C-7"""
    server = start_server(repository, args=redis.args("socket_timeout=0", "pool_size=4"))
    # The models are known to be fast, so that they would run on the thread that receives the requests.
    others = [Asker(server, kind) for _ in range(4)]
    for value in range(50):
        others[0].ask([[value]], model="plain")
        others[0].ask([[value]])
    end = begin(redis)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        try:
            waiting = [pool.submit(Asker(server, kind).ask, [[100.0 + i]]) for i in range(8)]
            in_flight = ("nereid_model_requests_in_flight", "id")
            servers.wait_until(lambda: server.scrape()[in_flight] == 8, "requests that wait for Redis")
            for value in range(20):
                for asker in others:
                    asker.ask([[value]], model="plain")
                    assert asker.client.is_server_ready()
            assert not any(request.done() for request in waiting)
        finally:
            end()
        for request in waiting:
            request.result()
    others[0].ask([[100.0]])
    assert others[0].counts() == (1, 58)


@pytest.mark.newer
def test_a_restarted_redis_is_used_at_once(start_server, repository, redis):
    asker = Asker(start_server(repository, args=redis.args()))
    asker.ask([[1.0]])
    redis.stop()
    redis.start()
    asker.ask([[1.0]])  # the old connection is gone, a new one takes its place
    asker.ask([[1.0]])
    assert asker.counts() == (1, 2)


@pytest.mark.newer
def test_redis_must_be_there_at_the_start(repository, redis):
    ports = [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), servers.free_ports(3))]

    def error(*settings):
        return start_error(repository, *ports, *cache_args(*(f"redis,{s}" for s in settings)))

    assert "Must at a minimum specify 'host' and 'port'" in error("port=1")
    assert "failed to connect to Redis (localhost:0): Connection refused" in error("host=localhost", "port=none")
    redis.stop()
    address = ("host=127.0.0.1", f"port={redis.port}")
    assert f"failed to connect to Redis (127.0.0.1:{redis.port}): Connection refused" in error(*address)


@pytest.mark.newer
def test_redis_asks_for_a_password(start_server, repository, start_redis):
    redis = start_redis("--requirepass", "se cret!")
    ports = [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), servers.free_ports(3))]
    assert "NOAUTH Authentication required" in start_error(repository, *ports, *redis.args())
    assert "WRONGPASS" in start_error(repository, *ports, *redis.args("password=wrong"))
    by_flag = start_server(repository, args=redis.args("password=se cret!", "user=default", "db=3"))
    asker = Asker(by_flag)
    asker.ask([[1.0]])
    asker.ask([[1.0]])
    assert asker.counts() == (1, 1)
    assert redis.cli("-n", "3", "DBSIZE") == "1"
    assert "se cret!" not in by_flag.log
    by_environment = start_server(
        repository, args=redis.args("db=3"), env={"TRITONCACHE_REDIS_PASSWORD": "se cret!"}
    )
    asker = Asker(by_environment)
    asker.ask([[1.0]])
    assert asker.counts() == (1, 0)
