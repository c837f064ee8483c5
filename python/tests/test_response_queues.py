# SPDX-License-Identifier: Apache-2.0
"""Queues that get responses besides the iterator: what they may be, and what happens where they fail."""

import asyncio
import multiprocessing
import queue

import numpy as np
import pytest

import nereid
from nereid._api import _response

ONE = {"IN": np.array([1], dtype=np.int32)}
THREE = {"IN": np.array([3], dtype=np.int32)}


def outputs(responses):
    return [response.outputs["OUT"].to_list() for response in responses if response.outputs]


@pytest.mark.parametrize("make", [list, queue.Queue, asyncio.Queue, multiprocessing.SimpleQueue, dict, object])
def test_a_queue_of_another_kind_is_refused_before_the_request_is_sent(server, make):
    model = server.model("square")
    before = model.statistics()["model_stats"][0]["inference_count"]
    with pytest.raises(nereid.InvalidArgumentError, match="queue.SimpleQueue must be used for response iterator"):
        model.infer(inputs=ONE, response_queue=make())
    assert model.statistics()["model_stats"][0]["inference_count"] == before
    # Other requests have the same thread.
    working = queue.SimpleQueue()
    assert outputs(model.infer(inputs=ONE, response_queue=working)) == [[1]]
    assert outputs([working.get(timeout=30)]) == [[1]]


@pytest.mark.parametrize("make", [list, queue.Queue, queue.SimpleQueue, object])
def test_a_queue_of_another_kind_is_refused_in_asyncio(server, make):
    async def ask():
        model = server.model("square")
        with pytest.raises(nereid.InvalidArgumentError, match="asyncio.Queue must be used for async response iterator"):
            model.async_infer(inputs=ONE, response_queue=make())

    asyncio.run(asyncio.wait_for(ask(), 30))


class Full(queue.SimpleQueue):
    def put(self, item):
        raise queue.Full("no room")


def test_a_queue_that_takes_nothing_is_logged_and_the_iterator_answers(server, caplog):
    model = server.model("square")
    assert outputs(model.infer(inputs=THREE, response_queue=Full())) == [[3]] * 3
    working = queue.SimpleQueue()
    assert outputs(model.infer(inputs=ONE, response_queue=working)) == [[1]]
    assert outputs([working.get(timeout=30)]) == [[1]]
    assert "could not be put into the queue" in caplog.text and "no room" in caplog.text


class FullForTasks(asyncio.Queue):
    async def put(self, item):
        raise asyncio.QueueFull("no room")


def test_a_queue_that_takes_nothing_is_logged_in_asyncio(server, caplog):
    async def ask():
        iterator = server.model("square").async_infer(inputs=THREE, response_queue=FullForTasks())
        return [response async for response in iterator]

    assert outputs(asyncio.run(asyncio.wait_for(ask(), 30))) == [[3]] * 3
    assert "could not be put into the queue" in caplog.text and "no room" in caplog.text


def test_a_response_that_cannot_be_made_is_an_error_of_its_request_alone(server, monkeypatch):
    def fail(parts, request):
        if request.request_id == "odd":
            raise MemoryError("no room")
        return make(parts, request)

    make = _response._make_response
    monkeypatch.setattr(_response, "_make_response", fail)
    model = server.model("square")
    odd = model.infer(inputs=ONE, request_id="odd", response_queue=queue.SimpleQueue())
    with pytest.raises(MemoryError, match="no room"):
        next(odd)
    assert list(odd) == []
    assert outputs(model.infer(inputs=ONE, response_queue=queue.SimpleQueue())) == [[1]]

    async def ask():
        odd = model.async_infer(inputs=ONE, request_id="odd", response_queue=asyncio.Queue())
        with pytest.raises(MemoryError, match="no room"):
            await anext(odd)
        assert [response async for response in odd] == []

    asyncio.run(asyncio.wait_for(ask(), 30))


def test_a_queue_gets_everything_though_the_iterator_is_dropped(server):
    responses = queue.SimpleQueue()
    next(server.model("square").infer(inputs=THREE, response_queue=responses))
    found = []
    while not (found and found[-1].final):
        found.append(responses.get(timeout=30))
    assert outputs(found) == [[3]] * 3 and found[-1].error is None
