# SPDX-License-Identifier: Apache-2.0
"""The sequence batcher; each test names its sentences in docs/scheduling.md."""

import json
import re
import threading
import time
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

from harness import models, sequences
from harness import server as servers
from harness.sequences import END, START, Stream

pytestmark = pytest.mark.usefixtures("onnx")

OLDEST = "oldest { max_candidate_sequences: 4 }"


@pytest.fixture
def start(start_server, empty_repository):
    """start(waiting, backlog) starts a server that runs nothing before so many wait."""

    def make(waiting=0, backlog=0, exit_timeout_s=1):
        # At its end a server waits for sequences that are in progress; most tests leave some.
        args = [f"--exit-timeout-secs={exit_timeout_s}"]
        env = {"TRITONSERVER_DELAY_SCHEDULER": str(waiting)} if waiting else {}
        if backlog:
            env["TRITONSERVER_BACKLOG_DELAY_SCHEDULER"] = str(backlog)
        return start_server(empty_repository, args=args, env=env)

    return make


@pytest.fixture
def open_stream():
    opened = []

    def make(server):
        opened.append(Stream(server))
        return opened[-1]

    yield make
    for stream in opened:
        stream.close(cancel=True)


@pytest.fixture(scope="module")
def both(require_server, tmp_path_factory):
    """A server with the models direct and oldest, four slots each."""
    repository = tmp_path_factory.mktemp("sequences")
    sequences.write_show(repository, "direct")
    sequences.write_show(repository, "oldest", OLDEST)
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("log")) as server:
        yield server


def require(backend):
    if not servers.has_backend(backend):
        pytest.skip(f"no backend {backend} here")


def ask(client_module, client, model, tensor, **options):
    given = client_module.InferInput("INPUT", list(tensor.shape), "INT32")
    given.set_data_from_numpy(tensor)
    return client.infer(model, [given], **options)


@pytest.fixture(params=["http", "grpc"])
def infer(request, both):
    """infer(model, sequence id, flags): what BATCH says, or the error."""
    module = {"http": http, "grpc": grpc}[request.param]
    client = module.InferenceServerClient(both.http if request.param == "http" else both.grpc)

    def call(model, sequence, flags=0, rows=1, **options):
        try:
            result = ask(module, client, model, np.ones((rows, 1), np.int32), sequence_id=sequence,
                         sequence_start=bool(flags & START), sequence_end=bool(flags & END), **options)
        except Exception as error:  # both clients have their own class
            return error.message()
        return sequences.describe(result.as_numpy("BATCH"))

    yield call
    client.close()


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_what_is_refused(infer, model):
    """S-1, S-2, S-3, S-11"""
    # The identical text, not only part of it: clients compare its beginning.
    assert infer(model, 0, START) == (
        f"inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
    )
    assert infer(model, 77) == (
        f"inference request for sequence 77 to model '{model}' must specify the START flag on the first "
        "request of the sequence"
    )
    assert infer(model, 77, START, rows=2) == (
        f"inference request to model '{model}' must specify batch-size 1 due to requirements of "
        "sequence batcher"
    )
    if servers.REFERENCE:
        return  # that release takes a hash of the text
    assert infer(model, "text", START, request_id="r") == (
        "[request id: r] sequence batching control 'CORRID' data-type is 'BYTES', but model "
        f"'{model}' expects 'INT64'"
    )


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_a_sequence_from_start_to_end(infer, model):
    """S-4, S-7, S-10"""
    assert infer(model, 5, START) == "5s"
    assert infer(model, 5) == "5"
    assert infer(model, 5, END) == "5e"
    assert "must specify the START flag" in infer(model, 5)
    # The place of the first one is given back just after its last answer, so it may still be taken.
    assert infer(model, 6, START | END).removeprefix("- ") == "6se"


def test_controls_are_not_inputs_of_clients(both):
    """S-12"""
    client = http.InferenceServerClient(both.http)
    ones = np.ones((1, 1), np.int32)
    given = [http.InferInput(name, [1, 1], "INT32") for name in ("INPUT", "START")]
    for one in given:
        one.set_data_from_numpy(ones)
    with pytest.raises(Exception, match="START"):
        client.infer("direct", given, sequence_id=9, sequence_start=True)
    assert {i["name"] for i in client.get_model_metadata("direct")["inputs"]} == {"INPUT"}
    client.close()


def test_direct_positions_and_padding(start, empty_repository, open_stream):
    """S-5, S-17, S-18, S-19"""
    sequences.write_show(empty_repository, "m")
    server = start(waiting=6)
    stream = open_stream(server)
    for sequence in (11, 12, 13):
        stream.send("m", sequence, START)
    stream.send("m", 12)
    stream.send("m", 13)
    stream.send("m", 13, END)
    assert stream.batches(6) == ["11s 12s 13s", "- 12 13", "- - 13e"]
    statistics = stream.client.get_inference_statistics("m", as_json=True)["model_stats"][0]
    assert statistics["inference_count"] == "6"
    assert statistics["execution_count"] == "3"
    assert [b["batch_size"] for b in statistics["batch_stats"]] == ["3"]


def test_direct_fills_slots_from_the_backlog(start, empty_repository, open_stream):
    """S-6, S-7, S-22"""
    sequences.write_show(empty_repository, "m", slots=2)
    server = start(waiting=4, backlog=3)
    stream = open_stream(server)
    stream.send("m", 1, START)
    stream.send("m", 1)
    stream.send("m", 2, START)
    stream.send("m", 2, END)
    stream.send("m", 3, START)
    stream.send("m", 3, END)
    stream.send("m", 4, START | END)
    # 3 takes the slot that 2 leaves, and 4 the one that 3 leaves; 1 keeps its own.
    assert stream.batches(7) == ["1s 2s", "1 2e", "- 3s", "- 3e", "- 4se"]


@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
def test_an_answer_that_waits_for_its_turn_holds_no_slot(start, empty_repository, open_stream, strategy):
    """S-7: a stream has its answers in order, here one from the backlog before the END that it waits for."""
    sequences.write_show(empty_repository, "m", strategy.replace("4", "1"), slots=1)
    server = start()
    stream = open_stream(server)
    stream.send("m", 1, START)
    stream.send("m", 2, START | END)
    stream.send("m", 1, END)
    assert stream.batches(3) == ["1s", "2se", "1e"]


def test_start_again_goes_on_in_the_same_slot(start, empty_repository, open_stream):
    """S-8"""
    sequences.write_show(empty_repository, "m")
    server = start()
    stream = open_stream(server)
    seen = []
    for sequence, flags in ((1, START), (2, START), (1, START), (2, 0)):
        stream.send("m", sequence, flags)
        seen += stream.batches(1)
    assert seen == ["1s", "- 2s", "1s", "- 2"]
    server.wait_for_log("has a conflict")


@pytest.mark.skipif(servers.REFERENCE, reason="runs both in one batch")
def test_sequences_of_one_id_never_meet(start, empty_repository, open_stream):
    """S-9, S-29"""
    sequences.write_show(empty_repository, "m")
    server = start(waiting=3)
    stream = open_stream(server)
    stream.send("m", 1, START)
    stream.send("m", 1, END)
    stream.send("m", 1, START | END)
    # The second has the position of the first.
    assert stream.batches(3) == ["1s", "1e", "1se"]


def test_a_client_that_keeps_to_one_id_gives_its_slot_to_others(start, empty_repository, open_stream):
    """S-6, S-9"""
    sequences.write_show(empty_repository, "m", slots=1)
    # Nothing would run if the later sequences of id 1 did not join the backlog.
    server = start(waiting=1, backlog=3)
    stream = open_stream(server)
    for sequence in (1, 1, 2, 1):
        stream.send("m", sequence, START | END)
    assert stream.batches(4) == ["1se", "2se"]


def test_direct_waits_for_slots_to_fill(start, empty_repository, open_stream):
    """S-20"""
    sequences.write_show(
        empty_repository, "m",
        "direct { minimum_slot_utilization: 0.5 max_queue_delay_microseconds: 3000000 }",
    )
    # Longer than a test waits for an answer.
    long = "max_queue_delay_microseconds: 60000000"
    sequences.write_show(empty_repository, "patient", f"direct {{ minimum_slot_utilization: 0.5 {long} }}")
    sequences.write_show(empty_repository, "eager", f"direct {{ {long} }}")
    server = start()
    stream = open_stream(server)
    stream.send("patient", 1, START)
    stream.send("patient", 2, START)
    assert stream.batches(2) == ["1s 2s"]
    stream.send("m", 1, START)
    stream.send("m", 2, START)
    stream.batches(2)
    began = time.monotonic()
    stream.send("m", 2)
    assert stream.batches(1) == ["- 2"]
    assert time.monotonic() - began > 2.9
    stream.send("eager", 1, START)
    assert stream.batches(1) == ["1s"]


def test_direct_keeps_different_shapes_apart(start, empty_repository, open_stream):
    """S-21"""
    sequences.write_show(empty_repository, "m", size=-1)
    server = start(waiting=3)
    stream = open_stream(server)
    stream.send("m", 1, START, values=(1, 2))
    stream.send("m", 2, START, values=(1, 2, 3))
    stream.send("m", 3, START, values=(3, 4))
    assert stream.batches(3) == ["1s - 3s", "- 2s"]


@pytest.mark.skipif(servers.REFERENCE, reason="holds requests of this strategy back for ever")
def test_oldest_has_no_padding_and_takes_the_oldest(start, empty_repository, open_stream):
    """S-23, S-24, S-25"""
    sequences.write_show(empty_repository, "m", "oldest { max_candidate_sequences: 3 }", slots=2)
    server = start(waiting=3)
    stream = open_stream(server)
    stream.send("m", 1, START)
    stream.send("m", 1, END)
    stream.send("m", 2, START | END)
    stream.send("m", 3, START | END)
    assert stream.batches(4) == ["1s 2se", "3se 1e"]


def test_oldest_waits_for_a_preferred_size(start, empty_repository, open_stream):
    """S-25"""
    sequences.write_show(
        empty_repository, "m",
        "oldest { max_candidate_sequences: 4 preferred_batch_size: [ 2 ] "
        "max_queue_delay_microseconds: 3000000 }",
    )
    server = start()
    stream = open_stream(server)
    began = time.monotonic()
    stream.send("m", 1, START)
    assert stream.batches(1) == ["1s"]
    assert time.monotonic() - began > 2.9
    for sequence in (2, 3):
        stream.send("m", sequence, START)
    assert stream.batches(2) == ["2s 3s"]


@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
def test_an_idle_sequence_gives_its_slot_away(start, empty_repository, open_stream, strategy):
    """S-27, S-28, S-30"""
    sequences.write_show(empty_repository, "m", strategy.replace("4", "1"), slots=1, idle_us=400_000)
    server = start()
    stream = open_stream(server)
    began = time.monotonic()
    stream.send("m", 1, START)
    assert stream.batches(1) == ["1s"]
    stream.send("m", 2, START)
    assert stream.batches(1) == ["2s"]
    assert time.monotonic() - began >= 0.4
    stream.send("m", 1)
    assert "must specify the START flag" in stream.receive()


def test_the_backlog_has_timeouts(start, empty_repository, open_stream):
    """S-15"""
    sequences.write_show(empty_repository, "m", slots=1, idle_us=60_000_000)
    server = start()
    stream = open_stream(server)
    stream.send("m", 1, START, timeout=1)  # it has a slot: nothing expires
    assert stream.batches(1) == ["1s"]
    stream.send("m", 2, START)
    stream.send("m", 2, timeout=100_000)
    for _ in range(2):
        assert stream.receive() == "timeout of the corresponding sequence has been expired"
    stream.send("m", 2)
    assert "must specify the START flag" in stream.receive()
    stream.send("m", 1, END)
    assert stream.batches(1) == ["1e"]
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    assert 'nv_inference_request_failure{model="m",reason="REJECTED",version="1"} 2' in text


@pytest.mark.skipif(servers.REFERENCE, reason="sees a cancellation when the request is next in line")
@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
def test_cancelling_one_request_cancels_its_sequence(start, empty_repository, open_stream, strategy):
    """S-14, X-1, X-3"""
    sequences.write_show(empty_repository, "m", strategy)
    server = start(waiting=4)
    client = grpc.InferenceServerClient(server.grpc)
    answers = {}
    calls = []
    done = threading.Semaphore(0)

    def infer(key, flags):
        given = grpc.InferInput("INPUT", [1, 1], "INT32")
        given.set_data_from_numpy(np.ones((1, 1), np.int32))

        def answered(result, error):
            answers[key] = error
            done.release()

        calls.append(client.async_infer("m", [given], answered, sequence_id=1,
                                        sequence_start=bool(flags & START)))
        pending = ("nv_inference_pending_request_count", "m")
        servers.wait_until(lambda: server.scrape().get(pending) == len(calls), "the request to arrive")

    infer("first", START)
    infer("second", 0)
    calls[1].cancel()
    for _ in range(2):
        assert done.acquire(timeout=30)
    assert [answers[key].status() for key in ("first", "second")] == ["StatusCode.CANCELLED"] * 2
    failures = ("nv_inference_request_failure", "m")
    servers.wait_until(lambda: server.scrape().get(failures) == 2, "both to be counted")
    stream = open_stream(server)
    stream.send("m", 1)
    assert "must specify the START flag" in stream.receive()
    client.close()


@pytest.mark.skipif(servers.REFERENCE, reason="cancels what another client has started as well")
@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
def test_who_leaves_takes_nothing_from_who_starts_the_same_id(start, empty_repository, open_stream, strategy):
    """S-14, S-8"""
    sequences.write_show(empty_repository, "m", strategy)
    server = start(waiting=3)

    def wait_for(metric, value):
        servers.wait_until(lambda: server.scrape().get((metric, "m")) == value, f"{metric} to be {value}")

    leaving, staying = Stream(server), open_stream(server)
    leaving.send("m", 1, START)
    wait_for("nv_inference_pending_request_count", 1)
    staying.send("m", 1, START)
    wait_for("nv_inference_pending_request_count", 2)
    leaving.close(cancel=True)
    wait_for("nv_inference_request_failure", 1)
    staying.send("m", 1, END)
    staying.send("m", 2, START | END)
    staying.send("m", 3, START | END)
    answers = [staying.receive() for _ in range(4)]
    assert [answer for answer in answers if isinstance(answer, str)] == []


@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
def test_a_server_that_stops_lets_sequences_end(start, empty_repository, open_stream, strategy):
    """S-16"""
    sequences.write_keep(empty_repository, "m", strategy, idle_us=60_000_000)
    server = start(exit_timeout_s=30)
    stream = open_stream(server)
    stream.send("m", 1, START, values=(1,), datatype="INT64")
    assert not isinstance(stream.receive(), str)
    server.signal()
    servers.wait_until(lambda: not server.is_ready(), "the shutdown to begin")
    # The first request may still be on its way out, and is counted then, too.
    in_flight = re.compile(r"Model 'm' \(version 1\) has [12] in-flight inferences")
    servers.wait_until(lambda: in_flight.search(server.log), "the sequence to be counted")

    def starts():
        stream.send("m", 2, START | END, values=(2,), datatype="INT64")
        answer = stream.receive()
        return answer if isinstance(answer, str) else None

    # Readiness goes first; a sequence may still start until schedulers hear of it.
    refusal = servers.wait_until(starts, "starts to be refused")
    assert refusal == "Server is stopping, scheduler for model has stopped accepting new inference requests"
    stream.send("m", 1, values=(5,), datatype="INT64")
    assert int(stream.receive().as_numpy("OUTPUT")[0][0]) == 1
    stream.send("m", 1, END, values=(5,), datatype="INT64")
    assert int(stream.receive().as_numpy("OUTPUT")[0][0]) == 1
    stream.close()
    assert server.wait(timeout=20) == 0


@pytest.mark.newer
def test_texts_as_ids(start, empty_repository):
    """S-10, S-11"""
    require("dyna_sequence")
    config = (
        'backend: "dyna_sequence"\nmax_batch_size: 4\n'
        'input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        "sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 4 } "
        + sequences.CONTROLS.replace("TYPE_INT64", "TYPE_STRING")
        + " }\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    models.write_model(empty_repository, "m", config)
    server = start()
    for module, url in ((http, server.http), (grpc, server.grpc)):
        client = module.InferenceServerClient(url)
        for value, flags, expected in ((1, START, 1), (2, 0, 3), (3, END, 6 + 42)):
            result = ask(module, client, "m", np.full((1, 1), value, np.int32), sequence_id="42",
                         sequence_start=bool(flags & START), sequence_end=bool(flags & END))
            assert result.as_numpy("OUTPUT").tolist() == [[expected]]
        with pytest.raises(Exception, match="data-type is 'UINT64', but model 'm' expects 'BYTES'"):
            ask(module, client, "m", np.ones((1, 1), np.int32), sequence_id=42, sequence_start=True)
        client.close()


def test_a_model_without_batches(start, empty_repository, open_stream):
    """S-5, S-10: each instance has one slot, and controls have shape [1]."""
    require("sequence")
    config = (
        'backend: "sequence"\nmax_batch_size: 0\n'
        'input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        "sequence_batching { max_sequence_idle_microseconds: 60000000 control_input [ "
        '{ name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] }, '
        '{ name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] } ] }\n'
        "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
    )
    models.write_model(empty_repository, "m", config)
    client = http.InferenceServerClient(start().http)
    given = http.InferInput("INPUT", [1], "INT32")
    sums = {1: 0, 2: 0}
    for turn in range(4):
        for sequence in sums:
            given.set_data_from_numpy(np.array([10 * turn + sequence], np.int32))
            sums[sequence] += 10 * turn + sequence
            result = client.infer("m", [given], sequence_id=sequence, sequence_start=turn == 0,
                                  sequence_end=turn == 3)
            assert result.as_numpy("OUTPUT").tolist() == [sums[sequence]]
    client.close()


def write_iterative(repository, strategy="direct { }", extra="iterative_sequence: true", delay_ms=1):
    config = (
        'backend: "iterative_sequence"\nmax_batch_size: 4\nmodel_transaction_policy { decoupled: true }\n'
        'input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        f"sequence_batching {{ {strategy} {extra} }}\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        f'parameters {{ key: "reschedule_delay_ms" value: {{ string_value: "{delay_ms}" }} }}\n'
    )
    models.write_model(repository, "m", config)


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 4 }"])
def test_iterative_sequences(start, empty_repository, strategy):
    """S-31, S-32, S-33"""
    require("iterative_sequence")
    write_iterative(empty_repository, strategy)
    server = start()
    stream = Stream(server)
    counts = [3, 5, 1, 2, 4, 6]
    for count in counts:
        stream.send("m", 0, values=(count,))
    seen = {str(i): [] for i in range(len(counts))}
    for _ in range(sum(counts)):
        result = stream.receive()
        assert not isinstance(result, str), result
        seen[result.get_response().id].append(int(result.as_numpy("OUTPUT")[0][0]))
    assert list(seen.values()) == [list(reversed(range(count))) for count in counts]
    stream.close()


@pytest.mark.newer
def test_a_request_that_is_given_back_after_its_cancellation(start, empty_repository):
    """S-34"""
    require("iterative_sequence")
    write_iterative(empty_repository, delay_ms=500)
    server = start()
    stream = Stream(server)
    stream.send("m", 0, values=(100,))
    assert not isinstance(stream.receive(), str)
    # The next iteration has begun, and lasts until after the stream is gone.
    stream.client.stop_stream(cancel_requests=True)
    failures = ("nv_inference_request_failure", "m")
    servers.wait_until(lambda: server.scrape().get(failures) == 1, "the request to end")
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    assert 'nv_inference_request_failure{model="m",reason="CANCELED",version="1"} 1' in text


def test_giving_back_without_iterative_sequences(start, empty_repository):
    """S-35"""
    require("iterative_sequence")
    write_iterative(empty_repository, extra="")
    stream = Stream(start())
    stream.send("m", 1, START, values=(3,))
    assert "not configured to handle such a flag" in stream.receive()
    stream.close()


@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
def test_a_request_that_fails_in_the_model(start, empty_repository, open_stream, strategy):
    """S-13"""
    pick = models.onnx_model(
        [models.helper.make_node("Gather", ["choices", "INPUT"], ["OUTPUT"])],
        [("INPUT", models.TensorProto.INT32, ["n", 1])],
        [("OUTPUT", models.TensorProto.INT32, ["n", 1])],
        [models.helper.make_tensor("choices", models.TensorProto.INT32, [3], [10, 20, 30])],
    )
    config = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'
        'input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: 60000000 }}\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    models.write_model(empty_repository, "m", config, {"1": {"model.onnx": pick}})
    stream = open_stream(start())

    def ask_for(index, flags=0):
        stream.send("m", 1, flags, values=(index,))
        answer = stream.receive()
        return answer if isinstance(answer, str) else int(answer.as_numpy("OUTPUT")[0][0])

    assert ask_for(0, START) == 10
    assert "out of" in ask_for(99)
    assert ask_for(1) == 20  # the sequence goes on
    assert "out of" in ask_for(99, END)
    assert "must specify the START flag" in ask_for(2)


def test_oldest_keeps_the_order_of_answers(start_server, empty_repository, tmp_path):
    """S-26. Each answer is on a stream of HTTP/2 of its own, between which a connection promises no
    order: when they left is asked of the server's trace."""
    sequences.write_show(empty_repository, "m", "oldest { max_candidate_sequences: 4 preserve_ordering: true }")
    file = tmp_path / "trace.json"
    trace = [f"triton,file={file}", "level=TIMESTAMPS", "rate=1"]
    server = start_server(empty_repository, args=[f"--trace-config={option}" for option in trace])
    client = grpc.InferenceServerClient(server.grpc)
    sent, failures, done = [], [], threading.Semaphore(0)

    def infer(turn, sequence):
        given = grpc.InferInput("INPUT", [1, 1], "INT32")
        given.set_data_from_numpy(np.ones((1, 1), np.int32))

        def answered(result, error):
            failures.extend([error] if error else [])
            done.release()

        sent.append(f"{turn}: {sequence}")
        client.async_infer("m", [given], answered, sequence_id=sequence, request_id=sent[-1],
                           sequence_start=turn == 0, sequence_end=turn == 19)
        client.is_server_live()  # on the same connection: the request has arrived

    for turn in range(20):
        for sequence in (3, 1, 2):
            infer(turn, sequence)
        for _ in range(3):
            assert done.acquire(timeout=30)
    client.close()
    server.stop()
    assert not failures
    left = {}
    for record in json.loads(file.read_text()):
        trace = left.setdefault(record["id"], {})
        trace.update({stamp["name"]: stamp["ns"] for stamp in record.get("timestamps", [])})
        trace.update({"request": record["request_id"]} if "request_id" in record else {})
    left = sorted(left.values(), key=lambda trace: trace["GRPC_SEND_START"])
    assert [trace["request"] for trace in left] == sent


# What the client of a storm may be told.
EXPECTED = "START flag|timeout of the corresponding sequence"


def storm_client(server, model, number, count, problems):
    """Sends `count` sequences, a few at a time, which end as they like."""
    rng = np.random.default_rng(number)
    stream, tags, left, expected, received, started = Stream(server), {}, {}, {}, 0, 0
    # Who leaves comes back under other ids: what still arrives of the old stream would be taken for its own.
    lives = 0

    def take():
        nonlocal received
        result, error = stream.answers.get(timeout=60)
        received += 1
        if error is not None:
            if not re.search(EXPECTED, error.message()):
                problems.append(error.message())
            return
        tag = expected.pop(result.get_response().id, None)
        got = int(result.as_numpy("OUTPUT")[0][0])
        if got != tag:
            problems.append(f"{got} in an answer to {tag}")

    while started < count:
        slot = int(rng.integers(6))
        flags = 0
        if left.get(slot, 0) == 0:
            flags = START
            started += 1
            tags[slot] = number * 1_000_000 + started
            left[slot] = int(rng.integers(1, 6))
        left[slot] -= 1
        if left[slot] == 0 and rng.random() < 0.75:
            flags |= END
        expected[str(stream.sent)] = tags[slot]
        options = {"timeout": int(rng.integers(1, 20_000))} if rng.random() < 0.1 else {}
        stream.send(model, number * 1000 + lives * 10 + slot + 1, flags, values=(tags[slot],), datatype="INT64",
                    **options)
        while stream.sent - received > 60:
            take()
        if rng.random() < 0.01:
            # The client goes, with everything that it is waiting for.
            stream.close(cancel=True)
            stream, received, lives = Stream(server), 0, lives + 1
            left.clear()
            expected.clear()
    while received < stream.sent:
        take()
    stream.close()
    if not stream.answers.empty():
        problems.append("a request was answered twice")


ENSEMBLE = (
    'platform: "ensemble"\nmax_batch_size: 4\n'
    'input [ { name: "INPUT" data_type: TYPE_INT64 dims: [ 1 ] } ]\n'
    'output [ { name: "OUTPUT" data_type: TYPE_INT64 dims: [ 1 ] } ]\n'
    'ensemble_scheduling { step [ { model_name: "m" model_version: -1 '
    'input_map { key: "INPUT" value: "INPUT" } output_map { key: "OUTPUT" value: "OUTPUT" } } ] }\n'
)


@pytest.mark.parametrize("strategy", ["direct { }", OLDEST])
@pytest.mark.parametrize("kind", ["model", "ensemble"])
def test_a_storm(start, empty_repository, open_stream, strategy, kind):
    """S-4 to S-9, S-14, S-15, S-22, S-28: nobody sees what belongs to another, every request is
    answered, and no slot is lost."""
    sequences.write_keep(empty_repository, "m", strategy, instances=2, idle_us=300_000)
    model = "m"
    if kind == "ensemble":
        model = "e"
        models.write_model(empty_repository, "e", ENSEMBLE)
    server = start()
    problems = []
    clients = [threading.Thread(target=storm_client, args=(server, model, number, 250, problems))
               for number in range(1, 5)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert problems == []
    # What was left without an end holds its slot until it has been idle for long enough; then as many
    # sequences as there are slots start at once.
    stream = open_stream(server)
    expired = "timeout of the corresponding sequence has been expired"

    def all_start():
        """One more than there are slots: it has to wait. What waits expires, and what is idle gives its slot away."""
        for sequence in range(1, 10):
            stream.send("m", sequence, START, values=(sequence,), datatype="INT64", timeout=1_000)
        answers = {sequence: stream.receive() for sequence in range(1, 10)}
        assert {answer for answer in answers.values() if isinstance(answer, str)} <= {expired}
        started = {k: answer for k, answer in answers.items() if not isinstance(answer, str)}
        assert {k: int(answer.as_numpy("OUTPUT")[0][0]) for k, answer in started.items()} == {k: k for k in started}
        for sequence in started:
            stream.send("m", sequence, END, values=(0,), datatype="INT64")
            answer = stream.receive()
            # On a slow machine it has been idle for too long meanwhile.
            assert not isinstance(answer, str) or re.search(EXPECTED, answer), answer
        return len(started) == 8

    servers.wait_until(all_start, "eight sequences of nine to start")
    pending = ("nv_inference_pending_request_count", "m")
    servers.wait_until(lambda: server.scrape()[pending] == 0, "nothing to wait")
