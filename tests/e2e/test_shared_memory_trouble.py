# SPDX-License-Identifier: Apache-2.0
"""Clients that take shared memory away while it is used. Rows S07, S08 and S09 are of the security cases."""

import threading

import numpy as np
import pytest
from harness import server as servers
from harness import trouble
from harness.clients import KINDS
from harness.shared_memory import (  # noqa: F401  fixtures are used by name
    ALLOW,
    PAGE,
    both,
    clean,
    connected,
    every,
    mapped,
    refused,
    region,
    shared_input,
    shared_output,
    shm_server,
    status,
    streaming,
)
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer  # the reference server knows no --allow-client-shm


class Pending:
    """A request on a thread of its own."""

    def __init__(self, kind, server, model, tensors, results, names=("INPUT0", "OUTPUT0")):
        self.error = None
        self.thread = threading.Thread(target=self._run, args=(kind, server, model, tensors, results, names))
        self.thread.start()

    def _run(self, kind, server, model, tensors, results, names):
        with connected(kind, server) as client:
            try:
                client.infer(
                    model,
                    [shared_input(client, names[0], *tensor) for tensor in tensors],
                    outputs=[shared_output(client, names[1], *result) for result in results],
                )
            except InferenceServerException as error:
                self.error = error.message()

    def is_over(self):
        return not self.thread.is_alive()

    def wait(self):
        self.thread.join()
        return self.error


def begin(kind, server, made, elements):
    """A request that uses the region, which was unregistered meanwhile."""
    size = elements * 4
    tensors = [([elements], "FP32", made.name, size)]
    results = [(made.name, size, size)]
    with connected("http", server) as client:
        while True:
            pending = Pending(kind, server, "slow", tensors, results)
            while not pending.is_over():
                client.unregister_system_shared_memory()
                if made.name in status(client):
                    return pending  # it stays, so it is in use
                made.register(client)
            # The request came while the region was not there: once more.
            assert "Unable to find" in (pending.wait() or "Unable to find")
            if made.name not in status(client):
                made.register(client)


@pytest.fixture
def gated(start_server, tmp_path):
    """A server of one model that is in use until its gate is opened, and the folder of its models."""
    trouble.write(tmp_path / "models", "gated")
    return start_server(tmp_path / "models", args=ALLOW), tmp_path / "models"


def commands(made):
    """Writes two commands into the region: at 0 to wait, and 4 bytes later to do nothing."""
    made.set(np.array([trouble.WAIT, trouble.NOTHING], np.int32))


def gated_request(kind, server, made, offset, target):
    tensor = ([1], "INT32", made.name, 4, offset)
    return Pending(kind, server, "gated", [tensor], [(made.name, 4, target)], names=("COMMAND", "DONE"))


@both
@pytest.mark.parametrize("which", ["one", "all"])
def test_s08_a_region_that_is_unregistered_in_use_stays_as_long(kind, which, gated, region):
    server, repository = gated
    made = region(PAGE)
    commands(made)
    with connected(kind, server) as client, connected("http", server) as other:
        made.register(client)
        with trouble.closed_gate(repository, "gated"):
            pending = gated_request(kind, server, made, 0, 64)
            with trouble.waiting_at_gate(repository, "gated"):
                other.unregister_system_shared_memory(made.name if which == "one" else "")
                assert list(status(client)) == [made.name]
                assert mapped(server) == [made.key]
                again = refused(made.register, client)
                assert again == f"shared memory region '{made.name}' already in manager"
        assert pending.wait() is None
        # With the answer the region is gone, and its name is free.
        assert status(client) == {}
        assert mapped(server) == []
        assert made.get(np.int32, [1], 64) == [trouble.WAIT]
        made.register(client)
        assert list(status(client)) == [made.name]


@both
def test_s08_many_requests_keep_a_region(kind, gated, region):
    server, repository = gated
    made = region(PAGE)
    commands(made)
    with connected(kind, server) as client:
        made.register(client)
        with trouble.closed_gate(repository, "gated"):
            first = gated_request(kind, server, made, 0, 64)
            with trouble.waiting_at_gate(repository, "gated"):
                client.unregister_system_shared_memory(made.name)
                others = [gated_request(kind, server, made, 4, 128 + 64 * i) for i in range(3)]
                count = ("nv_inference_pending_request_count", "gated")
                servers.wait_until(lambda: server.scrape()[count] == 3, "three requests wait")
                assert list(status(client)) == [made.name]
        assert first.wait() is None
        assert [other.wait() for other in others] == [None] * 3
        assert status(client) == {}
        for i in range(3):
            assert made.get(np.int32, [1], 128 + 64 * i) == [trouble.NOTHING]


@both
def test_s07_an_object_that_shrinks_after_registration(kind, clean, region):
    made, other = region(4 * PAGE), region(PAGE)
    numbers = np.arange(16, dtype=np.float32)
    with connected(kind, clean) as client:
        made.register(client)
        other.register(client)
        other.set(numbers)

        def ask(source, target, offset=0):
            client.infer(
                "id",
                [shared_input(client, "INPUT0", [16], "FP32", source.name, 64, offset)],
                outputs=[shared_output(client, "OUTPUT0", target.name, 64, 512)],
            )

        ask(other, made)
        made.truncate(PAGE)
        ask(other, made)  # what is still there can be used
        lost = f"shared memory region '{made.name}' has lost its memory"
        assert lost in refused(ask, made, other, 3 * PAGE)
        assert lost in refused(ask, other, made)
        assert lost in refused(ask, made, other)
        ask(other, other)
        np.testing.assert_array_equal(other.get(np.float32, [16], 512), numbers)
        client.unregister_system_shared_memory(made.name)
        made.truncate(4 * PAGE)
        made.register(client)
        ask(other, made, 0)
        np.testing.assert_array_equal(made.get(np.float32, [16], 512), numbers)


@both
def test_s07_an_output_whose_object_shrank(kind, clean, region):
    made, other = region(64 * PAGE), region(64 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        other.register(client)
        made.truncate(0)
        elements = 60 * PAGE // 4
        inputs = [shared_input(client, "INPUT0", [elements], "FP32", other.name, 60 * PAGE)]
        outputs = [shared_output(client, "OUTPUT0", made.name, 60 * PAGE)]
        lost = f"shared memory region '{made.name}' has lost its memory"
        assert lost in refused(client.infer, "id", inputs, outputs=outputs)
        assert lost in refused(client.infer, "id", inputs, outputs=outputs)


@both
def test_s07_strings_whose_object_shrank(kind, clean, region):
    made = region(2 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        made.truncate(0)
        inputs = [shared_input(client, "INPUT0", [4], "BYTES", made.name, 16)]
        assert "has lost its memory" in refused(client.infer, "text", inputs)


@both
def test_s07_an_object_that_shrinks_in_use(kind, clean, region):
    made = region(256 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        elements = 64 * PAGE // 4
        pending = begin(kind, clean, made, elements)
        made.truncate(0)
        # The answer is right when the model was done with the region, and else says what happened.
        error = pending.wait()
        assert error is None or "has lost its memory" in error
        assert status(client) == {}
        assert clean.is_live()


def test_s07_s08_a_storm_of_clients(clean, region):
    """Threads that infer, register, unregister and shrink the same regions, on every protocol."""
    objects = [region(32 * PAGE) for _ in range(2)]
    size = 8 * PAGE
    allowed = ("Unable to find", "has lost its memory", "already in manager", "invalid args")
    unexpected = []
    good = []
    is_over = threading.Event()

    def guarded(call, *args, **kwargs):
        try:
            call(*args, **kwargs)
            return True
        except InferenceServerException as error:
            if not any(text in error.message() for text in allowed):
                unexpected.append(error.message())
            return False

    def infer(kind):
        with connected(kind, clean) as client:
            for turn in range(120):
                source, target = objects[turn % 2], objects[turn // 2 % 2]
                inputs = [shared_input(client, "INPUT0", [size // 4], "FP32", source.name, size)]
                outputs = [shared_output(client, "OUTPUT0", target.name, size, 16 * PAGE)]
                if guarded(client.infer, "id", inputs, outputs=outputs):
                    good.append(kind)

    def stream():
        with connected("grpc", clean) as client, streaming(client) as answers:
            for turn in range(120):
                source = objects[turn % 2]
                inputs = [shared_input(client, "INPUT0", [size // 4], "FP32", source.name, size)]
                client.async_stream_infer("id", inputs)
            for _ in range(120):
                _, error = answers.get(timeout=60)
                if error is not None and not any(text in error.message() for text in allowed):
                    unexpected.append(error.message())

    def register(kind):
        with connected(kind, clean) as client:
            while not is_over.is_set():
                for made in objects:
                    guarded(made.register, client)
                guarded(client.unregister_system_shared_memory, objects[0].name)
                guarded(client.unregister_system_shared_memory)

    def shrink():
        while not is_over.is_set():
            objects[0].truncate(PAGE)
            objects[0].truncate(32 * PAGE)

    workers = [threading.Thread(target=infer, args=(kind,)) for kind in KINDS]
    workers.append(threading.Thread(target=stream))
    others = [threading.Thread(target=register, args=(kind,)) for kind in ("http", "grpc")]
    others.append(threading.Thread(target=shrink))
    for thread in workers + others:
        thread.start()
    for thread in workers:
        thread.join()
    is_over.set()
    for thread in others:
        thread.join()
    assert unexpected == []
    assert clean.is_ready()
    with connected("http", clean) as client:
        client.unregister_system_shared_memory()
        assert status(client) == {}
        assert mapped(clean) == []  # nothing is left behind
        objects[1].register(client)
        inputs = [shared_input(client, "INPUT0", [16], "FP32", objects[1].name, 64)]
        client.infer("id", inputs)


def test_s09e_the_server_has_no_shared_memory_with_a_name(clean):
    assert mapped(clean) == []
