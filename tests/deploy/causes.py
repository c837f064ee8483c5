# SPDX-License-Identifier: Apache-2.0
"""What makes the alerts fire, on real servers. A cause is a context manager: at its end, the cause is gone.

CAUSES says which alerts each one makes. Those of PLAIN can be made at the same time; BLINDING ones take from
Prometheus what the others need.
"""

import contextlib
import json
import os
import resource
import socket
import threading

import scene
from harness import certificates, cuda, models, trouble, wire
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
def a_server_is_restarted(s):
    seen = "process_start_time_seconds{instance='gpu'}"
    servers.wait_until(lambda: s.prometheus.query(seen), "a server that was seen before its restart")
    s.restart("gpu")
    yield


@contextlib.contextmanager
def a_server_is_stopped(s):
    s.servers["spare"].stop()
    yield
    s.restart("spare")


@contextlib.contextmanager
def the_load_balancer_is_gone(s):
    s.balancer.stop()
    yield
    s.balancer.start()


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
def connections_use_up_the_descriptors(s):
    """The limit of the process is lowered to what these connections nearly reach; where 64 descriptors are left, the
    server closes idle ones."""
    server = s.servers["gpu"]
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")) + 700, before[1]))
    with contextlib.ExitStack() as stack:
        for _ in range(620):
            stack.enter_context(wire.Connection(server))
        yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def clients_send_bodies_without_an_end(s):
    """What has arrived of them stays in memory, and more arrives all the time."""
    server, piece, size = s.servers["gpu"], bytes(1 << 20), 48 << 20
    with contextlib.ExitStack() as stack:
        connections = []

        def send_more():
            if not connections or connections[-1][1] + len(piece) >= size:
                connection = stack.enter_context(wire.Connection(server))
                connection.send(wire.encode("POST", "/v2/models/copy/infer", b"", {"Content-Length": str(size)}))
                connections.append([connection, 0])
            connections[-1][0].send(piece)
            connections[-1][1] += len(piece)

        with repeated(send_more, s.hour() / 20):
            yield


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
def a_model_cannot_be_loaded(s):
    models.write_model(s.folder / "main", "broken", scene.identity().replace('"identity"', '"nobody"'))
    assert post(s.servers["main"], "/v2/repository/models/broken/load", b"{}").status != 200
    yield
    assert post(s.servers["main"], "/v2/repository/models/broken/unload", b"{}").status == 200


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
def a_key_cannot_be_used(s):
    """The server looks at its files when somebody connects."""
    server, key = s.servers["troubled"], s.troubled_certificate.key
    host, port = server.grpc.rsplit(":", 1)

    def files_are_good():
        socket.create_connection((host, int(port)), timeout=10).close()
        return server.scrape()[("nereid_tls_files_good", "")] == 1

    before = key.read_text()
    key.write_text("no key")
    servers.wait_until(lambda: not files_are_good(), "a server that cannot use its key")
    yield
    key.write_text(before)
    servers.wait_until(files_are_good, "a server that uses its key")


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
    a_server_is_restarted: {"NereidRestarted"},
    a_server_is_stopped: {"NereidDown"},
    the_load_balancer_is_gone: {"NereidUnreachable"},
    a_gpu_is_lost: {"NereidNotLive"},
    connections_use_up_the_descriptors: {"NereidDescriptorsNearlyUsed"},
    clients_send_bodies_without_an_end: {"NereidMemoryRising"},
    a_model_crashes: {"NereidBackendFailures", "NereidProcessDied"},
    a_model_is_slow: {"NereidSlow", "NereidQueueLong"},
    deadlines_are_too_short: {"NereidOverload", "NereidErrors"},
    a_model_cannot_be_loaded: {"NereidLoadFailed", "NereidNotReady"},
    a_model_is_unloaded: {"NereidModelGone"},
    a_model_is_loaded_again_and_again: {"NereidModelReloads"},
    the_file_of_keys_is_faulty: {"NereidKeyFileBad"},
    somebody_asks_for_what_is_denied: {"NereidAccessDenied"},
    a_certificate_is_old: {"NereidCertificateExpires"},
    a_key_cannot_be_used: {"NereidCertificateBad"},
    the_machine_has_no_memory_left: {"NereidMemoryNearlyUsed"},
    an_execution_does_not_end: {
        "NereidStuck", "NereidNotReady", "NereidModelNotReady", "NereidQueueStalled", "NereidBudgetNearlyUsed",
        "NereidBudgetRefuses",
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
