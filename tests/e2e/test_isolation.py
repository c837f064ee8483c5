# SPDX-License-Identifier: Apache-2.0
"""Models in processes of their own: what they do wrong stays theirs, and what they do right is the same.

NEREID_ISOLATION_ROUNDS says how often a model gets into trouble while another one is served; 1,000 rounds
take about ten minutes.
"""

import contextlib
import errno
import json
import os
import pathlib
import random
import signal
import socket
import threading

import numpy as np
import psutil
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from harness import models, stateful, wire
from harness import server as servers
from harness.decoupled import write_iterative, write_repeat, write_square
from harness.isolation import ISOLATED, landlock, parameter, processes

pytestmark = pytest.mark.newer

ROUNDS = int(os.environ.get("NEREID_ISOLATION_ROUNDS", "6"))


def write_trouble(repository, name="trouble", extra=ISOLATED):
    """A model that does what it is told; see tests/backends/mischief.cc."""
    library = servers.build_folder() / "tests" / "backends" / "libtriton_mischief.so"
    if not library.exists():
        pytest.skip("the tests' backend is not built")
    config = (
        'backend: "mischief"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('WHAT', 'BYTES', [1])} ]\n"
        f"output [ {models.tensor_config('SAID', 'BYTES', [1])} ]\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    folder = models.write_model(repository, name, config + extra)
    (folder / "libtriton_mischief.so").symlink_to(library)
    return folder


class Teller:
    def __init__(self, server):
        self.client = httpclient.InferenceServerClient(server.http, network_timeout=120, concurrency=2)

    def tell(self, what, model="trouble"):
        tensor = httpclient.InferInput("WHAT", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([what.encode()], np.object_))
        return self.client.infer(model, [tensor]).as_numpy("SAID")[0].decode()

    def fails(self, what, match, model="trouble"):
        with pytest.raises(InferenceServerException, match=match):
            self.tell(what, model)


@pytest.fixture
def told(start_server, empty_repository):
    """A server with a model for trouble, and how to tell it what to do."""

    def start(extra="", *args, **more):
        write_trouble(empty_repository, extra=ISOLATED + extra)
        server = start_server(empty_repository, args=args, **more)
        return server, Teller(server)

    return start


def test_a_model_runs_in_a_process_of_its_own(told):
    server, teller = told()
    (process,) = processes(server)
    assert teller.tell("hello") == f"{process.pid} hello"


@pytest.mark.parametrize(
    "what, reason",
    [
        ("crash", r"it was killed by signal 11 \(Segmentation fault\)"),
        ("abort", r"it was killed by signal 6 \(Aborted\)"),
        ("smash", r"it was killed by signal"),
        ("exit", "it exited with status 3"),
    ],
)
def test_a_model_that_ends_its_process_fails_its_request_and_comes_back(told, what, reason):
    server, teller = told()
    before = teller.tell("hello")
    if servers.is_sanitized():
        reason = "it (was killed|exited)"  # a sanitizer makes an exit of some signals
    teller.fails(
        what,
        r"Failed to process the request\(s\) for model instance 'trouble_0(_0)?', message: Isolated "
        r"process 'trouble_0(_0)?' is not healthy: " + reason,
    )
    assert teller.tell("hello") != before
    assert len(processes(server)) == 1


def test_a_model_that_hangs_fails_its_request_and_comes_back(told):
    _, teller = told(parameter("isolation_timeout_secs", "2.5"))
    teller.fails("hang", "it did not respond within isolation_timeout_secs, which is 2.5")
    assert teller.tell("hello").endswith(" hello")


def test_a_model_that_takes_too_much_memory_fails_its_request_and_comes_back(told):
    if servers.is_sanitized():
        pytest.skip("a sanitizer reserves terabytes")
    _, teller = told(parameter("isolation_memory_mb", "300"))
    teller.fails("leak", r"it used \d+ MiB of memory, and isolation_memory_mb is 300")
    assert teller.tell("hello").endswith(" hello")


def test_responses_of_other_threads_arrive(told):
    _, teller = told()
    for _ in range(20):
        assert teller.tell("threads").endswith(" threads")


def test_trouble_again_and_again_is_nothing_to_other_models(told, empty_repository):
    models.write_model(empty_repository, "id", models.identity_config("INT32", [-1]))
    limits = parameter("isolation_timeout_secs", str(5 * servers.SLOWNESS))
    troubles = ["crash", "abort", "exit", "smash", "hang"]
    if not servers.is_sanitized():  # which reserves terabytes
        limits += parameter("isolation_memory_mb", "200")
        troubles.append("leak")
    server, teller = told(limits)
    rng = random.Random(7)
    wrong, served, is_over = [], 0, threading.Event()

    def serve():
        nonlocal served
        with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
            while not is_over.is_set():
                values = np.arange(served, served + 16, dtype=np.int32)
                tensor = httpclient.InferInput("INPUT0", [16], "INT32")
                tensor.set_data_from_numpy(values)
                if not (client.infer("id", [tensor]).as_numpy("OUTPUT0") == values).all():
                    wrong.append(served)
                served += 1

    other = threading.Thread(target=serve)
    other.start()
    try:
        for i in range(ROUNDS):
            teller.fails(rng.choice(troubles), "Isolated process 'trouble_0(_0)?' is not healthy")
            assert teller.tell(f"round {i}").endswith(f" round {i}")
    finally:
        is_over.set()
        other.join()
    assert not wrong and served > 0
    assert len(processes(server)) == 1


def test_a_process_that_is_killed_at_any_moment_loses_and_mixes_up_nothing(start_server, empty_repository):
    """Most of the time it is being given a batch, because the tensors are large."""
    batching = "dynamic_batching { max_queue_delay_microseconds: 1000 }\n"
    models.write_model(empty_repository, "id", models.identity_config("INT32", [-1], max_batch_size=4) + batching + ISOLATED)
    server = start_server(empty_repository)
    rng = random.Random(11)
    problems, is_over = [], threading.Event()
    answered, failed = [0] * 4, [0] * 4

    def serve(number):
        with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
            while not is_over.is_set():
                key = f"{number}-{answered[number]}"
                values = np.full((1, 300_000), 1000 * number + answered[number] % 1000, np.int32)
                tensor = httpclient.InferInput("INPUT0", list(values.shape), "INT32")
                tensor.set_data_from_numpy(values)
                try:
                    answer = client.infer("id", [tensor], request_id=key)
                    if answer.get_response()["id"] != key or (answer.as_numpy("OUTPUT0") != values).any():
                        problems.append(f"the answer of {key} is another's")
                    answered[number] += 1
                except InferenceServerException as error:
                    failed[number] += 1
                    if "Isolated process 'id_0" not in error.message():
                        problems.append(error.message())

    clients = [threading.Thread(target=serve, args=(number,)) for number in range(len(answered))]
    for client in clients:
        client.start()
    try:
        for _ in range(8 * ROUNDS):
            before = sum(answered)
            servers.wait_until(lambda before=before: sum(answered) > before + 4, "answers", timeout=60)
            is_over.wait(rng.uniform(0, 0.01))
            for process in processes(server):
                with contextlib.suppress(psutil.Error):
                    process.kill()
    finally:
        is_over.set()
        for client in clients:
            client.join()
    assert not problems and sum(failed) > 0, (problems[:3], failed)
    assert server.is_live()


def test_a_model_that_dies_before_it_has_served_rests_and_comes_back(told):
    server, teller = told()
    # ThreadSanitizer ends a process with a status of its own if that leaves threads.
    reason = "exited with status" if servers.is_sanitized() else "exited with status 3"
    for _ in range(4):
        teller.fails("exit", reason)
    assert teller.tell("hello").endswith(" hello")
    assert server.is_ready()


@pytest.mark.parametrize("extra, text", [("the model fails", "the model fails"),
                                         ("the instance fails", "the instance fails")])
def test_a_model_that_does_not_load_says_why_in_the_same_words(start_server, tmp_path, extra, text):
    for name, isolation in (("plain", ""), ("isolated", ISOLATED)):
        (tmp_path / name).mkdir()
        write_trouble(tmp_path / name, extra=isolation + parameter("why", extra))
    errors = []
    for name in ("plain", "isolated"):
        server = start_server(tmp_path / name, args=["--exit-on-error=false", "--strict-readiness=false"])
        with httpclient.InferenceServerClient(server.http) as client:
            (entry,) = client.get_model_repository_index()
            errors.append((entry["state"], entry["reason"]))
        assert not processes(server)
    assert errors[0] == errors[1]
    assert text in errors[0][1]


def test_unloads_and_reloads_leave_no_process_behind(start_server, empty_repository):
    write_trouble(empty_repository)
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    before = set(os.listdir("/dev/shm"))
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for _ in range(3):
            client.load_model("trouble")
            (process,) = processes(server)
            client.load_model("trouble")
            assert Teller(server).tell("hello").endswith(" hello")
            client.unload_model("trouble")
            servers.wait_until(lambda: not processes(server), "the processes to end")
            servers.wait_until(lambda: not process.is_running(), "the server to see that it ended")
    # Others on this machine have objects there for a while; what a server leaves behind would stay.
    servers.wait_until(lambda: set(os.listdir("/dev/shm")) <= before, "no new names in /dev/shm")


def test_processes_that_died_are_counted(told):
    server, teller = told()
    for count in range(3):
        assert teller.tell("hello").endswith(" hello")
        assert server.scrape()[("nereid_model_process_deaths_total", "trouble")] == count
        teller.fails("abort", r"it was killed by signal 6")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_server(told, number):
    server, teller = told()
    teller.tell("hello")
    found = processes(server)
    assert found
    server.signal(number)
    server.wait()
    _, alive = psutil.wait_procs(found, timeout=60)
    assert not alive


def test_processes_end_with_a_server_that_stops_in_an_execution(told):
    server, teller = told("", "--exit-timeout-secs=1")
    folder = pathlib.Path(teller.tell("temporary"))

    def ask():
        with contextlib.suppress(Exception):
            Teller(server).tell("hang")

    asked = threading.Thread(target=ask)
    asked.start()
    servers.wait_until((folder / "hangs").exists, "the model to hang")
    (process,) = processes(server)
    server.signal()
    server.wait()
    asked.join()
    assert psutil.wait_procs([process], timeout=60)[1] == []


# --- What a process may do ---


def errno_of(name):
    return str(getattr(errno, name))


@landlock
def test_a_model_reads_its_own_folder_and_the_system_and_writes_temporary_files(told, empty_repository, tmp_path):
    (tmp_path / "secret").write_text("secret")
    models.write_model(empty_repository, "id", models.identity_config("INT32", [-1]))
    _, teller = told()
    denied = errno_of("EACCES")
    assert teller.tell(f"open {tmp_path}/secret") == denied
    assert teller.tell(f"open {empty_repository}/id/config.pbtxt") == denied
    assert teller.tell(f"open {empty_repository}/trouble/config.pbtxt") == "0"
    assert teller.tell(f"write {empty_repository}/trouble/config.pbtxt") == denied
    assert teller.tell("open /etc/ld.so.cache") == "0"
    assert teller.tell(f"write {tmp_path}/new") == denied
    folder = teller.tell("temporary")
    assert folder and teller.tell(f"write {folder}/new") == "0"


@landlock
def test_a_model_may_be_given_more_files(told, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "file").write_text("x")
    (tmp_path / "out").mkdir()
    _, teller = told(parameter("isolation_read_paths", f"{tmp_path}/given")
                     + parameter("isolation_write_paths", f"{tmp_path}/out")
                     + parameter("isolation_strict", "true"))
    assert teller.tell(f"open {tmp_path}/given/file") == "0"
    assert teller.tell(f"write {tmp_path}/given/file") == errno_of("EACCES")
    assert teller.tell(f"write {tmp_path}/out/new") == "0"


@landlock
def test_a_model_may_be_given_all_files(told, tmp_path):
    _, teller = told(parameter("isolation_files", "all"))
    assert teller.tell(f"write {tmp_path}/new") == "0"


@pytest.mark.parametrize("may", [False, True])
def test_a_model_has_no_network_unless_it_is_allowed(told, may):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _, teller = told(parameter("isolation_network", "true") if may else "")
        said = teller.tell(f"connect {listener.getsockname()[1]}")
        assert said == ("0" if may else errno_of("EPERM"))


def test_a_model_cannot_signal_the_server(told):
    server, teller = told()
    assert teller.tell(f"signal {server.pid}") == errno_of("EPERM")
    (process,) = processes(server)
    assert teller.tell(f"signal {process.pid}") == "0"


@pytest.mark.parametrize("key, value, text", [
    ("isolation", "thread", "must be 'process' or 'none', not 'thread'"),
    ("isolation_timeout_secs", "soon", "must be a number above 0, not 'soon'"),
    ("isolation_memory_mb", "-1", "must be a number above 0, not '-1'"),
    ("isolation_files", "some", "must be 'model' or 'all', not 'some'"),
    ("isolation_network", "perhaps", "must be true or false, not 'perhaps'"),
    ("isolation_read_paths", "here", "must list absolute paths, not 'here'"),
])
def test_a_parameter_with_a_mistake_is_refused(start_server, empty_repository, key, value, text):
    extra = parameter(key, value) + ("" if key == "isolation" else ISOLATED)
    write_trouble(empty_repository, extra=extra)
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    with httpclient.InferenceServerClient(server.http) as client:
        (entry,) = client.get_model_repository_index()
        assert text in entry["reason"]


# --- The same answers ---


@pytest.fixture(scope="module")
def pair(require_server, tmp_path_factory):
    """Two servers of the same models, one of which isolates them all."""
    repository = tmp_path_factory.mktemp("same")
    for datatype in models.TYPES:
        models.write_model(repository, f"id_{datatype}", models.identity_config(datatype, [-1, -1]))
        models.write_model(repository, f"idb_{datatype}",
                           models.identity_config(datatype, [-1], max_batch_size=8))
    scalar = models.identity_config("FP32", [1], max_batch_size=4, tensor_extra="reshape { shape: [ ] }")
    models.write_model(repository, "id_scalar", scalar)
    write_repeat(repository)
    write_square(repository)
    write_square(repository, "mixed", CUSTOM_FAIL_COUNT=2, CUSTOM_EMPTY_COUNT=1)
    write_iterative(repository)
    if servers.has_backend("onnxruntime"):
        models.copy_example(repository, "digits")
        models.copy_example(repository, "simple_string")
        stateful.write(repository, "accumulate", stateful.onnx_accumulate("INT32", True, True),
                       controls=[stateful.START], state=stateful.state_config("INT32", [1]), shows_state=[1])
        stateful.write(repository, "collect", stateful.onnx_collect(True),
                       state=stateful.state_config("INT32", [-1]))
        stateful.write(repository, "remember", stateful.onnx_remember(), datatype="BYTES",
                       state=stateful.state_config("BYTES", [1]))
    log = tmp_path_factory.mktemp("log")
    with servers.running(repository, log_dir=log) as plain, servers.running(
            repository, log_dir=log, args=["--backend-config=isolation=process"]) as isolated:
        yield plain, isolated


def infer_both(pair, model, inputs, **options):
    """The answers of both servers; `inputs` are (name, values, type)."""
    answers = []
    for server in pair:
        with grpcclient.InferenceServerClient(server.grpc) as client:
            given = []
            for name, values, datatype in inputs:
                given.append(grpcclient.InferInput(name, list(values.shape), datatype))
                given[-1].set_data_from_numpy(values)
            try:
                answers.append(client.infer(model, given, **options).get_response())
            except InferenceServerException as error:
                answers.append((error.status(), error.message()))
    return answers


@pytest.mark.parametrize("datatype", models.TYPES)
def test_identity_of_every_type_is_the_same(pair, datatype):
    rng = np.random.default_rng(3)
    for shape in ((3, 5), (1, 1), (2, 0), (64, 4096)):
        for model in (f"id_{datatype}", f"idb_{datatype}"):
            if model.startswith("idb") and shape[0] > 8:
                continue
            values = models.random_tensor(rng, datatype, shape)
            plain, isolated = infer_both(pair, model, [("INPUT0", values, datatype)], request_id="seven")
            assert plain == isolated, (model, shape)


def test_a_reshaped_tensor_is_the_same(pair):
    values = np.ones((2, 1), np.float32)
    plain, isolated = infer_both(pair, "id_scalar", [("INPUT0", values, "FP32")])
    assert plain == isolated


def test_digits_are_the_same(pair, onnx):
    rng = np.random.default_rng(5)
    with grpcclient.InferenceServerClient(pair[0].grpc) as client:
        config = client.get_model_config("digits", as_json=True)["config"]
        with grpcclient.InferenceServerClient(pair[1].grpc) as other:
            assert other.get_model_config("digits", as_json=True)["config"] == config
    (tensor,) = config["input"]
    shape = [3] + [int(dim) for dim in tensor["dims"]]
    values = rng.standard_normal(shape).astype(np.float32)
    plain, isolated = infer_both(pair, "digits", [(tensor["name"], values, "FP32")])
    assert plain == isolated


@pytest.mark.parametrize("model", ["accumulate", "collect", "remember"])
def test_states_are_the_same(pair, onnx, model):
    datatype = "BYTES" if model == "remember" else "INT32"
    for correlation in (11, 12):
        for i in range(6):
            values = np.array([[i + correlation]], np.int32)
            if datatype == "BYTES":
                values = np.array([[b"text %d" % i]], np.object_)
            plain, isolated = infer_both(
                pair, model, [("INPUT", values, datatype)], sequence_id=correlation,
                sequence_start=i == 0, sequence_end=i == 5)
            assert plain == isolated, i


def stream_both(pair, model, **inputs):
    """The responses of a decoupled model of both servers."""
    answers = []
    for server in pair:
        seen, is_final = [], threading.Event()

        def take(result, error):
            if error is not None:
                seen.append(error.message())
                return
            response = result.get_response()
            if response.outputs:
                seen.append(response.raw_output_contents)
            if response.parameters["triton_final_response"].bool_param:
                is_final.set()

        with grpcclient.InferenceServerClient(server.grpc) as client:
            client.start_stream(callback=take)
            given = []
            for name, (values, datatype) in inputs.items():
                tensor = np.array(values, models.TYPES[datatype][1])
                given.append(grpcclient.InferInput(name, list(tensor.shape), datatype))
                given[-1].set_data_from_numpy(tensor)
            client.async_stream_infer(model, given, enable_empty_final_response=True)
            assert is_final.wait(30 * servers.SLOWNESS)
        answers.append(seen)
    return answers


def test_many_responses_are_the_same(pair):
    plain, isolated = stream_both(pair, "square", IN=([7], "INT32"))
    assert plain == isolated and len(plain) == 7
    plain, isolated = stream_both(pair, "mixed", IN=([7], "INT32"))
    assert plain == isolated
    plain, isolated = stream_both(pair, "repeat", IN=([4, 5, 6], "INT32"), DELAY=([1, 1, 1], "UINT32"),
                                  WAIT=([1], "UINT32"))
    assert plain == isolated and len(plain) == 3


def test_statistics_count_the_same(pair):
    counts = []
    for server in pair:
        with httpclient.InferenceServerClient(server.http) as client:
            before = client.get_inference_statistics("idb_INT32")["model_stats"][0]
            for rows in (1, 2, 2):
                tensor = httpclient.InferInput("INPUT0", [rows, 4], "INT32")
                tensor.set_data_from_numpy(np.ones((rows, 4), np.int32))
                client.infer("idb_INT32", [tensor])
            after = client.get_inference_statistics("idb_INT32")["model_stats"][0]
            counts.append((after["inference_count"] - before["inference_count"],
                           after["execution_count"] - before["execution_count"],
                           after["inference_stats"]["success"]["count"]
                           - before["inference_stats"]["success"]["count"]))
            assert after["inference_stats"]["compute_infer"]["ns"] > 0
    assert counts[0] == counts[1] == (5, 3, 3)


@pytest.mark.parametrize("delays, counted", [([0, 0], (1, 1, 1, 0)), ([0], (0, 0, 0, 1))], ids=["succeeds", "fails"])
def test_statistics_of_many_responses_count_the_same(pair, delays, counted):
    """The backend says whether an execution has failed, not its responses."""
    counts = []
    for server in pair:
        with httpclient.InferenceServerClient(server.http) as client:

            def count():
                found = client.get_inference_statistics("repeat")["model_stats"][0]
                stats = found["inference_stats"]
                return np.array([found["inference_count"], found["execution_count"], stats["success"]["count"],
                                 stats["fail"]["count"]])

            before = count()
            body = json.dumps({"IN": [1, 2], "DELAY": delays, "WAIT": [0]})
            wire.request(server, "POST", "/v2/models/repeat/generate_stream", body)
            servers.wait_until(lambda: (count() - before).sum() == sum(counted), f"{counted} in its statistics")
            counts.append(tuple(count() - before))
    assert counts == [counted, counted]


def test_a_cancelled_request_is_known_to_the_model(pair):
    """The model ends its responses soon after its client has gone."""
    _, server = pair
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: None)
        tensor = grpcclient.InferInput("IN", [1], "INT32")
        tensor.set_data_from_numpy(np.array([3], np.int32))
        client.async_stream_infer("square", [tensor])
        client.stop_stream(cancel_requests=True)
    plain, isolated = stream_both(pair, "square", IN=([3], "INT32"))
    assert plain == isolated
