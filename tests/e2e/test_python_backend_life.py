# SPDX-License-Identifier: Apache-2.0
"""Workers of the Python backend: how they begin, die, come back and end."""

import os
import queue
import re
import signal
import threading
import time

import numpy as np
import psutil
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

# Sleeps as many seconds as its input says and tells which process it is. One that starts after a sleep waits until
# it may go on.
SLEEPS = """
class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.dirname(__file__)
        while os.path.exists(os.path.join(folder, "busy")) and not os.path.exists(os.path.join(folder, "go")):
            time.sleep(0.01)

    def execute(self, requests):
        responses = []
        for request in requests:
            seconds = request.inputs()[0].as_numpy()
            if seconds[0] > 0:
                open(os.path.join(os.path.dirname(__file__), "busy"), "w").close()
                time.sleep(float(seconds[0]))
            if seconds[0] == -1:
                os.abort()
            out = np.array([os.getpid()], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", out)]))
        return responses
"""

READY = """
class TritonPythonModel:
    def is_ready(self):
        what = open(os.path.join(os.path.dirname(__file__), "ready")).read()
        if what == "raise":
            raise ValueError("no idea")
        return {"yes": True, "no": False}.get(what, what)
""" + python_models.IDENTITY.split(":\n", 1)[1]

STARTS = """
class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.dirname(__file__)
        if os.path.exists(os.path.join(folder, "broken")):
            raise RuntimeError("cannot start")
        if os.path.exists(os.path.join(folder, "exits")):
            os._exit(3)
""" + python_models.IDENTITY.split(":\n", 1)[1]


HOLDS = """
class TritonPythonModel:
    def initialize(self, args):
        self.weights = np.ones(8 << 20)
""" + python_models.IDENTITY.split(":\n", 1)[1]


def infer(client, model, values, name="INPUT0"):
    value = np.array(values, np.float32)
    tensor = httpclient.InferInput(name, list(value.shape), "FP32")
    tensor.set_data_from_numpy(value)
    return client.infer(model, [tensor]).as_numpy("OUTPUT0")


def shared_memory_names():
    return set(os.listdir("/dev/shm"))


def expect_no_more_shared_memory(before):
    """Others on this machine have some for a while; what a server leaves behind would stay."""
    servers.wait_until(lambda: shared_memory_names() <= before, "no new names in /dev/shm")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def test_a_worker_killed_in_a_batch_fails_it_at_once_and_comes_back(start_server, folder):
    before = shared_memory_names()
    model = python_models.write(folder, "sleeps", SLEEPS)
    server = python_models.start(start_server, folder)
    (worker,) = python_models.workers(server)
    tensor = grpcclient.InferInput("INPUT0", [1], "FP32")
    tensor.set_data_from_numpy(np.array([3600], np.float32))
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.async_infer("sleeps", [tensor], lambda result, error: answers.put(error))
        servers.wait_until(lambda: (model / "1" / "busy").exists(), "the model to be busy")
        assert client.is_model_ready("sleeps") and server.is_ready()
        worker.kill()
        # Off while there is none, on again with the next.
        servers.wait_until(lambda: not client.is_model_ready("sleeps"), "readiness to turn off")
        error = answers.get(timeout=60)  # long before the model would have responded
        assert re.match(
            r"Failed to process the request\(s\) for model instance 'sleeps_0(_0)?', message: Stub "
            r"process 'sleeps_0(_0)?' is not healthy: it was killed by signal 9 \(Killed\)",
            error.message())
        (model / "1" / "go").touch()
        tensor.set_data_from_numpy(np.zeros(1, np.float32))
        client.infer("sleeps", [tensor])
        assert client.is_model_ready("sleeps")
        (successor,) = python_models.workers(server)
        assert successor.pid != worker.pid
    expect_no_more_shared_memory(before)
    server.stop()
    expect_no_more_shared_memory(before)


def test_a_worker_that_dies_again_and_again_comes_back_each_time(start_server, folder):
    python_models.write(folder, "sleeps", SLEEPS)
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        for _ in range(4):
            with pytest.raises(InferenceServerException, match=r"signal 6 \(Aborted\)"):
                infer(client, "sleeps", [-1])
            assert infer(client, "sleeps", [0])[0] > 0


def test_a_model_that_no_longer_starts_says_why(start_server, folder):
    model = python_models.write(folder, "starts", STARTS)
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http) as client:
        infer(client, "starts", [1])
        (model / "1" / "broken").touch()
        python_models.workers(server)[0].kill()

        def fails():
            try:
                infer(client, "starts", [1])
                return False
            except InferenceServerException as error:
                return "RuntimeError: cannot start" in error.message()

        servers.wait_until(fails, "requests to be told the reason")
        assert not client.is_model_ready("starts")
        (model / "1" / "broken").unlink()
        servers.wait_until(lambda: client.is_model_ready("starts"), "the model to recover")
        infer(client, "starts", [1])


def test_readiness_is_what_the_model_says(start_server, folder):
    model = python_models.write(folder, "ready", READY)
    says = model / "1" / "ready"
    says.write_text("yes")
    server = python_models.start(start_server, folder, "--strict-readiness=false")
    with httpclient.InferenceServerClient(server.http) as client:
        for what, expected in (("yes", True), ("no", False), ("raise", False), ("odd", False),
                               ("yes", True)):
            says.write_text(what)
            assert client.is_model_ready("ready") is expected, what
        assert infer(client, "ready", [1])[0] == 1


@pytest.mark.parametrize("what, expected", [
    ("broken", "RuntimeError: cannot start\n\nAt:\n"),
    ("exits", "Stub process 'starts_0(_0)?' is not healthy: it exited with status 3"),
])
def test_a_model_that_fails_to_initialize_is_not_loaded(start_server, folder, what, expected):
    model = python_models.write(folder, "starts", STARTS)
    (model / "1" / what).touch()
    server = python_models.start(start_server, folder, "--exit-on-error=false", "--strict-readiness=false")
    with httpclient.InferenceServerClient(server.http) as client:
        (entry,) = client.get_model_repository_index()
    assert entry["state"] == "UNAVAILABLE"
    assert re.search(expected, entry["reason"])
    assert python_models.workers(server) == []


def test_a_missing_file_a_syntax_error_and_a_missing_class_are_told(start_server, folder):
    (python_models.write(folder, "missing", "") / "1" / "model.py").unlink()
    python_models.write(folder, "syntax", "class class\n")
    python_models.write(folder, "nothing", "x = 1\n")
    server = python_models.start(start_server, folder, "--exit-on-error=false", "--strict-readiness=false")
    with httpclient.InferenceServerClient(server.http) as client:
        reasons = {e["name"]: e["reason"] for e in client.get_model_repository_index()}
    assert ("Failed to preinitialize Python stub: Python model file not found in "
            f"'{folder}/missing/1/model.py'") in reasons["missing"]
    assert "SyntaxError: invalid syntax" in reasons["syntax"]
    assert "AttributeError: module '1.model' has no attribute 'TritonPythonModel'" in reasons["nothing"]


def test_workers_end_with_their_server_however_it_ends(start_server, folder):
    for name in ("one", "two"):
        python_models.write(folder, name, SLEEPS)
    server = python_models.start(start_server, folder)
    workers = python_models.workers(server)
    assert len(workers) == 2
    server.signal(signal.SIGKILL)
    assert server.wait() == -signal.SIGKILL
    assert psutil.wait_procs(workers, timeout=60)[1] == []


# Returns once as many have begun as there are instances.
MEETS = """
class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.dirname(__file__)
        open(os.path.join(folder, "met-%d" % os.getpid()), "w").close()
        deadline = time.monotonic() + 60
        while sum(name.startswith("met-") for name in os.listdir(folder)) < 3:
            assert time.monotonic() < deadline, "the others do not begin"
            time.sleep(0.02)
""" + python_models.IDENTITY.split(":\n", 1)[1]


def test_instances_are_processes_of_their_own_and_start_side_by_side(start_server, folder):
    model = python_models.write(folder, "three", MEETS)
    config = (model / "config.pbtxt").read_text()
    (model / "config.pbtxt").write_text(config.replace("count: 1", "count: 3"))
    server = python_models.start(start_server, folder)
    assert len(python_models.workers(server)) == 3


# S14: no part of a name reaches a shell. S09: nothing that has a name is shared.
def test_names_that_a_shell_would_read_are_refused_and_odd_ones_are_names(start_server, folder, tmp_path):
    victim = tmp_path / "victim"
    refused = [f"$(touch {victim.name})", "a;touch victim", "b|touch victim", "c`touch victim`",
               "d & touch victim", "e'f\"g", "h>victim", "i\\j"]
    odd = ["with space", "-m", "--help", "é", "a=b", "%s%n", "new\nline"]
    before = shared_memory_names()
    for name in refused + odd:
        python_models.write(folder, name, python_models.IDENTITY)
    server = python_models.start(start_server, folder, "--exit-on-error=false", "--strict-readiness=false")
    with grpcclient.InferenceServerClient(server.grpc) as client:
        index = {m.name: m.reason for m in client.get_model_repository_index().models}
        for name in refused:
            assert "Invalid stub name: contains invalid characters" in index[name]
        for name in odd:
            tensor = grpcclient.InferInput("INPUT0", [1], "FP32")
            tensor.set_data_from_numpy(np.ones(1, np.float32))
            assert client.infer(name, [tensor]).as_numpy("OUTPUT0")[0] == 1, name
    assert not victim.exists() and not os.path.exists("victim")
    expect_no_more_shared_memory(before)


# S09 (d): a worker that writes nonsense where the server reads loses its life, not the server's.
HOSTILE = """
import struct
class TritonPythonModel:
    def execute(self, requests):
        from nereid_python import native
        from nereid_python.session import session
        memory = session.memory
        what = int(requests[0].inputs()[0].as_numpy()[0])
        if what == 1:  # an answer far outside
            struct.pack_into("<IIQQ", memory.bytes, 136, 0, memory.words[16], memory.size - 64, 1 << 60)
            native.signal(128, 132)
        elif what == 2:  # a call far outside
            native.append(1 << 62)
        elif what == 3:  # a ring that is fuller than full
            struct.pack_into("<I", memory.bytes, 320, 1 << 30)
            native.signal(324, 328)
        elif what == 4:  # a response with tensors outside
            from nereid_python import protocol as p
            text = struct.pack("<IIII", 1, 1, 1, 0) + struct.pack("<IIIIQQ", 11, 1, 1, 0, 1 << 50, 4)
            text += struct.pack("<q", 1) + p.padded(b"X")
            offset = memory.put(text)
            struct.pack_into("<IIQQ", memory.bytes, 136, 0, memory.words[16], offset, len(text))
            native.signal(128, 132)
        elif what == 5:  # random bytes everywhere
            noise = np.random.default_rng(5).integers(0, 256, 16384 - 64, np.uint8).tobytes()
            memory.bytes[64:16384] = noise
            native.signal(324, 4096)
            native.signal(128, 4096)
        elif what == 6:  # an unknown call
            memory.post(99, memory.put(b""), 0)
        elif what == 7:  # the memory cannot be taken away
            import ctypes, glob
            for path in glob.glob("/proc/self/fd/*"):
                try:
                    if "nereid-python" in os.readlink(path):
                        os.truncate(path, 4096)
                except OSError:
                    pass
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", r.inputs()[0].as_numpy())])
                    for r in requests]
        elif what == 0:
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", r.inputs()[0].as_numpy())])
                    for r in requests]
        time.sleep(60)
"""


def test_a_hostile_worker_is_replaced(start_server, folder):
    python_models.write(folder, "hostile", HOSTILE)
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        for what in (1, 2, 3, 4, 6):
            with pytest.raises(InferenceServerException, match="is not healthy"):
                infer(client, "hostile", [what])
            assert infer(client, "hostile", [0])[0] == 0
        assert infer(client, "hostile", [7])[0] == 7
        # What random bytes do is not told beforehand, but that nothing else suffers.
        thread = threading.Thread(target=lambda: _ignore_errors(server, 5))
        thread.start()
        time.sleep(0.2)
        for worker in python_models.workers(server):
            worker.kill()
        thread.join()
        servers.wait_until(lambda: client.is_model_ready("hostile"), "the model to come back")
        assert infer(client, "hostile", [0])[0] == 0


def _ignore_errors(server, what):
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        with pytest.raises(InferenceServerException):
            infer(client, "hostile", [what])


def test_a_model_needs_no_configuration_at_all(start_server, folder):
    model = python_models.write(folder, "bare", python_models.IDENTITY)
    (model / "config.pbtxt").unlink()
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http) as client:
        config = client.get_model_config("bare")
        assert config["backend"] == "python"
        assert config["input"] == config["output"] == []


def test_the_memory_of_the_workers_is_reported(start_server, folder):
    python_models.write(folder, "holds", HOLDS, extra="instance_group [ { count: 2 } ]")
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http) as client:
        (use,) = client.get_inference_statistics("holds")["model_stats"][0]["memory_usage"]
    weights = 2 * 8 * (8 << 20)
    assert (use["type"], use["id"]) == ("CPU", 0)
    assert weights < use["byte_size"] < weights + 2 * (100 << 20), "with two interpreters"
    assert server.scrape()["nereid_model_memory_bytes", "holds"] == use["byte_size"]
