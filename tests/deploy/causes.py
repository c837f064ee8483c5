# SPDX-License-Identifier: Apache-2.0
"""What makes the alerts fire, on real servers. A cause is a context manager: at its end, the cause is gone.

CAUSES says which alerts each one makes. Those of PLAIN can be made at the same time; BLINDING ones take from
Prometheus what the others need.
"""

import contextlib
import json
import threading

import scene
from harness import certificates, cuda, trouble, wire
from harness import server as servers


@contextlib.contextmanager
def repeated(action, pause_s):
    """Does something again and again on a thread of its own until the end of the block."""
    end, errors = threading.Event(), []

    def run():
        try:
            while not end.is_set():
                action()
                end.wait(pause_s)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(60)
    assert not errors, errors


def post(server, path, body=b"", headers=()):
    return wire.request(server, "POST", path, body, headers)


@contextlib.contextmanager
def a_server_is_stopped(s):
    s.servers["spare"].stop()
    yield
    s.restart("spare")


@contextlib.contextmanager
def a_gpu_is_lost(s):
    server = s.servers["gpu"]
    for call in ("copy", "synchronize", "memory_info"):
        s.control.fail(call, cuda.DEVICE_LOST)
    tensor = {"name": "INPUT", "datatype": "UINT8", "shape": [3], "data": [1, 2, 3]}
    assert post(server, "/v2/models/copy/infer", json.dumps({"inputs": [tensor]})).status != 200
    yield
    for call in ("copy", "synchronize", "memory_info"):
        s.control.fail(call, 0)
    s.restart("gpu")


@contextlib.contextmanager
def an_execution_does_not_end(s):
    """Requests wait behind it, first a few and then many more than the server's connections."""
    server, repository = s.servers["troubled"], s.folder / "troubled"
    with contextlib.ExitStack() as stack:

        def send(count, command):
            for _ in range(count):
                connection = stack.enter_context(wire.Connection(server))
                connection.send(wire.encode("POST", "/v2/models/stuck/infer", trouble.body(command)))

        send(1, trouble.WAIT)
        with trouble.waiting_at_gate(repository, "stuck"):
            send(3, trouble.NOTHING)
            earlier = f"nv_inference_pending_request_count{{model='stuck'}} offset {s.duration(10)} > 0"
            servers.wait_until(lambda: s.prometheus.query(earlier), "a queue that is as old as the rule asks", timeout=60)
            send(scene.CONNECTIONS + 5, trouble.NOTHING)
            yield
    servers.wait_until(server.is_ready, "a server that is ready again")


@contextlib.contextmanager
def a_model_crashes(s):
    """One that runs in a process of its own. A process that has executed something is replaced at once."""

    def crash():
        for what in ("hello", "crash"):
            tensor = {"name": "WHAT", "datatype": "BYTES", "shape": [1], "data": [what]}
            post(s.servers["main"], "/v2/models/crashing/infer", json.dumps({"inputs": [tensor]}))

    with repeated(crash, 0.2):
        yield


@contextlib.contextmanager
def a_model_is_slow(s):
    """Each of its clients waits for the executions of all others."""
    load = scene.Load(s.servers["main"], [("slow", scene.BODY)] * 15, pause_s=0)
    yield
    load.stop()
    assert not load.failures, load.failures


@contextlib.contextmanager
def deadlines_are_too_short(s):
    headers = {"Request-Timeout": "1us"}
    with repeated(lambda: post(s.servers["main"], "/v2/models/refusing/infer", scene.BODY, headers), 0.1):
        yield


@contextlib.contextmanager
def a_model_is_unloaded(s):
    model = "/v2/repository/models/comes_and_goes"
    earlier = f"nv_model_load_duration_secs{{model='comes_and_goes'}} offset {s.duration(10)}"
    servers.wait_until(lambda: s.prometheus.query(earlier), "a model that was there as long as the rule asks", timeout=60)
    assert post(s.servers["main"], model + "/unload", b"{}").status == 200
    yield
    assert post(s.servers["main"], model + "/load", b"{}").status == 200


@contextlib.contextmanager
def a_model_is_loaded_again_and_again(s):
    def load():
        for what in ("unload", "load"):
            assert post(s.servers["main"], f"/v2/repository/models/reloaded/{what}", b"{}").status == 200

    # Each load is seen by a scrape of its own.
    with repeated(load, 1.5 * s.interval):
        yield


@contextlib.contextmanager
def the_machine_has_no_memory_left(s):
    s.machine.use(0.95)
    yield
    s.machine.use(0.3)


@contextlib.contextmanager
def the_file_of_keys_is_faulty(s):
    s.write_keys("{")
    yield
    s.write_keys()


@contextlib.contextmanager
def somebody_asks_for_what_is_denied(s):
    def ask():
        assert wire.request(s.servers["main"], "GET", "/v2/logging").status in (401, 403)

    with repeated(ask, 0.1):
        yield


@contextlib.contextmanager
def a_certificate_is_old(s):
    s.use_certificate(days=5)
    yield
    s.use_certificate(days=100)


@contextlib.contextmanager
def no_server_is_known(s):
    s.prometheus.set_targets("nereid", [])
    yield
    s.set_targets()


@contextlib.contextmanager
def the_exporter_is_stopped(s):
    s.exporter.stop()
    yield
    s.start_exporter()


PLAIN = {
    a_server_is_stopped: {"NereidDown"},
    a_gpu_is_lost: {"NereidGpuFailed", "NereidNotLive"},
    a_model_crashes: {"NereidBackendFailures"},
    a_model_is_slow: {"NereidSlow", "NereidQueueLong"},
    deadlines_are_too_short: {"NereidOverload", "NereidErrors"},
    a_model_is_unloaded: {"NereidModelGone"},
    a_model_is_loaded_again_and_again: {"NereidModelReloads"},
    the_file_of_keys_is_faulty: {"NereidKeyFileBad"},
    somebody_asks_for_what_is_denied: {"NereidAccessDenied"},
    a_certificate_is_old: {"NereidCertificateExpires"},
    the_machine_has_no_memory_left: {"NereidMemoryNearlyUsed", "NereidMemoryRising"},
    an_execution_does_not_end: {
        "NereidStuck", "NereidWatchdogAlarms", "NereidNotReady", "NereidModelNotReady", "NereidQueueGrowing",
        "NereidQueueStalled", "NereidBudgetNearlyUsed", "NereidBudgetRefuses",
    },
}  # fmt: skip
BLINDING = {
    no_server_is_known: {"NereidMissing"},
    the_exporter_is_stopped: {"NereidNotProbed"},
}


def possible(s):
    """Those of PLAIN that this machine lets tests make."""
    return {
        cause: alerts
        for cause, alerts in PLAIN.items()
        if s.machine.is_possible or cause is not the_machine_has_no_memory_left
    }
