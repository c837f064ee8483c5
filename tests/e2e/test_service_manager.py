# SPDX-License-Identifier: Apache-2.0
"""What the server tells systemd (Type=notify): ready, alive, reloading, stopping."""

import contextlib
import ctypes
import os
import pathlib
import signal

import pytest
from harness import models, python_models
from harness import server as servers
from harness.notify import NotifySocket

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]


@pytest.fixture
def manager(tmp_path):
    return NotifySocket(tmp_path / "notify")


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


def test_ready_comes_when_the_models_are_and_the_end_is_announced(start_server, repository, manager):
    server = start_server(repository, env={"NOTIFY_SOCKET": str(manager.path)}, wait=False)
    assert manager.receive().startswith("READY=1")
    assert server.is_ready()
    server.stop()
    assert manager.receive().startswith("STOPPING=1")
    assert manager.waiting() == []


def test_a_server_that_cannot_start_is_never_ready(repository, manager):
    (repository / "m" / "config.pbtxt").write_text("no configuration")
    run = servers.run_to_end(
        [f"--model-repository={repository}", f"--backend-directory={servers.backends()}", "--http-port=0"]
        + ["--grpc-port=0", "--metrics-port=0"],
        env={"NOTIFY_SOCKET": str(manager.path)},
    )
    assert run.returncode == 1
    assert not [message for message in manager.waiting() if message.startswith("READY")]


def test_it_says_that_it_is_alive_again_and_again(start_server, repository, manager):
    environment = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "300000"}
    start_server(repository, env=environment)
    assert manager.receive().startswith("READY=1")
    assert manager.receive() == "WATCHDOG=1"
    assert manager.receive() == "WATCHDOG=1"


@contextlib.contextmanager
def hanging(thread):
    """Stops one thread of another process, as a debugger does."""
    seize, interrupt, detach = 0x4206, 0x4207, 17
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    if ptrace(seize, thread, None, None) != 0:
        pytest.skip(f"threads cannot be stopped here: {os.strerror(ctypes.get_errno())}")
    assert ptrace(interrupt, thread, None, None) == 0
    os.waitpid(thread, 0x40000000)  # __WALL
    yield
    assert ptrace(detach, thread, None, None) == 0


def test_a_server_whose_event_loop_hangs_is_not_called_alive(start_server, repository, manager):
    environment = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "300000"}
    server = start_server(repository, env=environment)
    assert manager.receive().startswith("READY=1")
    assert manager.receive() == "WATCHDOG=1"
    tasks = pathlib.Path(f"/proc/{server.pid}/task").iterdir()
    loop = next(int(task.name) for task in tasks if (task / "comm").read_text().startswith("nereid-net"))
    complaint = "the server did not answer within"
    with hanging(loop):
        server.wait_for_log(complaint)
        manager.waiting()
        servers.wait_until(lambda: server.log.count(complaint) >= 3, "more checks that fail")
        assert manager.waiting() == []
    assert manager.receive() == "WATCHDOG=1"


def test_opening_the_log_again_is_a_reload(start_server, repository, manager, tmp_path):
    flags = [f"--log-file={tmp_path / 'log'}"]
    server = start_server(repository, args=flags, env={"NOTIFY_SOCKET": str(manager.path)})
    assert manager.receive().startswith("READY=1")
    server.signal(signal.SIGHUP)
    assert manager.receive().startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert manager.receive().startswith("READY=1")


def test_processes_of_python_models_cannot_speak_for_the_server(start_server, empty_repository, manager):
    if not servers.has_backend("python"):
        pytest.skip("the build has no Python backend")
    python_models.write(empty_repository, "m", python_models.IDENTITY)
    manager_variables = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "60000000"}
    server = start_server(empty_repository, env=python_models.ENVIRONMENT | manager_variables)
    (worker,) = python_models.workers(server)
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & set(worker.environ())
