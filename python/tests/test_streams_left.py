# SPDX-License-Identifier: Apache-2.0
"""Streams that nobody reads to the end: the server gives the request up, and its instance is free again."""

import asyncio
import contextlib
import gc
import os
import threading
import time
import typing

import numpy as np
import pytest

import nereid


class Ends:
    """Tells how many generators have been closed."""

    def __init__(self):
        self._changed = threading.Condition()
        self._count = 0

    def note(self):
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_for(self, count):
        with self._changed:
            return self._changed.wait_for(lambda: self._count >= count, 30)


ends = Ends()


@nereid.model
def forever(n: int) -> typing.Iterator[int]:
    try:
        while True:
            yield n
            time.sleep(0.001)  # leaves Python's lock to others, should it not end
    finally:
        ends.note()


@nereid.model
async def forever_async(n: int) -> typing.AsyncIterator[int]:
    try:
        while True:
            yield n
            await asyncio.sleep(0.001)
    finally:
        ends.note()


@nereid.model
def some(n: int) -> typing.Iterator[int]:
    yield from range(n)
    ends.note()


opened = threading.Event()


@nereid.model
class Gate:
    """How often it was called, each time until the gate is open."""

    def __init__(self):
        self.calls = 0

    def __call__(self, n: int) -> int:
        opened.wait(30)
        self.calls += 1
        return self.calls


@pytest.fixture(scope="module")
def server():
    off = {"http_port": None, "grpc_port": None, "metrics_port": None}
    with nereid.serve(forever, forever_async, some, Gate, block=False, **off) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh():
    ends.__init__()


@pytest.fixture(params=[forever, forever_async], ids=["generator", "async generator"])
def endless(request):
    return request.param


ONE = {"n": np.array([1])}


def test_a_stream_that_is_left_ends_its_generator(server, endless):
    for value in server.stream(endless, n=1):
        break
    assert value == 1 and ends.wait_for(1)
    stream = server.stream(endless, n=1)
    next(stream)
    stream.close()
    assert ends.wait_for(2)


def test_a_stream_that_fails_on_the_way_ends_its_generator(server, endless):
    with pytest.raises(ZeroDivisionError):
        for value in server.stream(endless, n=0):
            1 // value
    assert ends.wait_for(1)


def test_infer_that_is_interrupted_ends_the_generator(server, endless, monkeypatch):
    # As Ctrl-C does while it waits.
    def interrupted(self):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return next_of(self)

    calls, next_of = iter(range(9)), nereid.ResponseIterator.__next__
    monkeypatch.setattr(nereid.ResponseIterator, "__next__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.infer(endless, n=1)
    assert ends.wait_for(1)


def test_responses_that_are_closed_end_the_request(server, endless):
    with contextlib.closing(server.model(endless.name).infer(inputs=ONE)) as responses:
        next(responses)
    assert ends.wait_for(1)
    assert list(responses) == []
    responses.close()

    async def leave():
        async with contextlib.aclosing(server.model(endless.name).async_infer(inputs=ONE)) as responses:
            await anext(responses)
        assert [response async for response in responses] == []
        await responses.aclose()

    asyncio.run(leave())
    assert ends.wait_for(2)


def test_responses_that_were_read_and_dropped_end_the_request(server, endless):
    for _ in server.model(endless.name).infer(inputs=ONE):
        break
    assert ends.wait_for(1)

    async def leave():
        async for _ in server.model(endless.name).async_infer(inputs=ONE):
            break

    asyncio.run(leave())
    assert ends.wait_for(2)


def test_a_task_that_is_cancelled_ends_its_request(server, endless):
    async def read(began):
        async for _ in server.model(endless.name).async_infer(inputs=ONE):
            began.set()

    async def cancel():
        began = asyncio.Event()
        reading = asyncio.ensure_future(read(began))
        await began.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(cancel())
    assert ends.wait_for(1)


def test_a_task_that_is_cancelled_before_the_first_response_ends_its_request(server):
    async def cancel():
        inputs, model = {"n": np.array([1])}, server.model("Gate")
        first = model.async_infer(inputs=inputs)
        # One at a time: this one has not begun.
        waiting = asyncio.ensure_future(anext(model.async_infer(inputs=inputs)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0)  # until then the loop keeps the exception, and with it the iterator
        opened.set()
        assert len([response async for response in first]) == 1

    opened.clear()
    asyncio.run(cancel())
    # Runs after whatever came before it.
    assert server.infer(Gate, n=5) == 2


def test_a_request_whose_responses_nobody_reads_runs_to_its_end(server):
    for _ in range(3):
        server.model("some").infer(inputs={"n": np.array([3])})
    gc.collect()
    assert ends.wait_for(3)


def test_a_task_that_waits_is_told_when_another_one_closes_the_responses(server):
    async def close():
        responses = server.model("forever_async").async_infer(inputs={"n": np.array([1])})
        await anext(responses)

        async def read():
            with contextlib.suppress(nereid.CancelledError):
                while True:
                    await anext(responses)

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(0)
        await responses.aclose()
        with contextlib.suppress(StopAsyncIteration, RuntimeError):
            await asyncio.wait_for(reading, 60)

    asyncio.run(close())
    assert ends.wait_for(1)


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer's locks do not survive a fork")
def test_a_forked_process_gives_up_nothing(server):
    stream = server.stream(forever, n=1)
    next(stream)
    child = os.fork()
    if child == 0:
        stream.close()
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert [next(stream) for _ in range(100)] == [1] * 100
    stream.close()
    assert ends.wait_for(1)
