# SPDX-License-Identifier: Apache-2.0
"""Signals and limits that must not end the server, nor the workers of its Python models."""

import resource
import signal

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers

pytestmark = pytest.mark.newer

HARMLESS = [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]


def infer(server, name, size=4):
    client = httpclient.InferenceServerClient(server.http)
    data = np.ones(size, np.float32)
    tensor = httpclient.InferInput("INPUT0", [size], "FP32")
    tensor.set_data_from_numpy(data)
    np.testing.assert_array_equal(client.infer(name, [tensor]).as_numpy("OUTPUT0"), data)


@pytest.mark.parametrize("number", HARMLESS)
def test_the_server_goes_on_after(number, empty_repository, start_server):
    models.write_model(empty_repository, "same", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository)
    for _ in range(3):
        server.signal(number)
        infer(server, "same")


def test_a_worker_goes_on_after_them(empty_repository, start_server):
    python_models.write(empty_repository, "same", python_models.IDENTITY)
    server = python_models.start(start_server, empty_repository)
    (worker,) = python_models.workers(server)
    for number in HARMLESS:
        worker.send_signal(number)
        infer(server, "same")
    assert [other.pid for other in python_models.workers(server)] == [worker.pid]


def test_hup_opens_the_log_file_anew(empty_repository, start_server, tmp_path):
    log, moved = tmp_path / "log", tmp_path / "moved"
    server = start_server(empty_repository, args=[f"--log-file={log}"])
    log.rename(moved)
    server.signal(signal.SIGHUP)
    servers.wait_until(log.exists, "a new log file")
    size = moved.stat().st_size
    server.stop()
    assert "Waiting for in-flight requests" in log.read_text()
    assert moved.stat().st_size == size


def test_hup_goes_on_with_the_old_file_where_a_new_one_cannot_be(empty_repository, start_server, tmp_path):
    log = tmp_path / "logs" / "log"
    log.parent.mkdir()
    server = start_server(empty_repository, args=[f"--log-file={log}"])
    moved = log.parent.rename(tmp_path / "moved") / "log"
    (tmp_path / "logs").write_text("no folder")
    server.signal(signal.SIGHUP)
    servers.wait_until(lambda: "unable to open log file" in moved.read_text(), "the reason in the old file")


@pytest.fixture
def small_files():
    """Processes that are started meanwhile can write no file of more than 64 KiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda server: resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (65536, before[1]))


def test_a_log_that_may_not_grow_does_not_end_the_server(empty_repository, start_server, small_files, tmp_path):
    models.write_model(empty_repository, "same", models.identity_config("FP32", [-1]))
    log = tmp_path / "log"
    server = start_server(empty_repository, args=[f"--log-file={log}", "--log-verbose=2"])
    small_files(server)

    def fill():
        infer(server, "same")
        return "File too large" in server.log

    servers.wait_until(fill, "a log that is full, and the reason on standard error", timeout=120)
    assert log.stat().st_size == 65536
    infer(server, "same")


def test_a_trace_that_may_not_grow_does_not_end_the_server(empty_repository, start_server, small_files, tmp_path):
    models.write_model(empty_repository, "same", models.identity_config("FP32", [-1]))
    trace = tmp_path / "trace.json"
    args = [f"--trace-config=triton,file={trace}", "--trace-config=level=TENSORS", "--trace-config=level=TIMESTAMPS",
            "--trace-config=rate=1", "--trace-config=triton,log-frequency=0"]
    server = start_server(empty_repository, args=args)
    small_files(server)
    for _ in range(20):
        infer(server, "same", 4096)
    server.stop()
    server.wait_for_log("File too large")


def test_worker_memory_that_may_not_be_is_an_error_with_its_reason(empty_repository, start_server, small_files):
    python_models.write(empty_repository, "same", python_models.IDENTITY)
    models.write_model(empty_repository, "plain", models.identity_config("FP32", [-1]))
    args = ["--model-control-mode=explicit", "--load-model=plain"]
    server = python_models.start(start_server, empty_repository, *args)
    small_files(server)
    client = httpclient.InferenceServerClient(server.http)
    with pytest.raises(httpclient.InferenceServerException, match="ulimit -f"):
        client.load_model("same")
    infer(server, "plain")
