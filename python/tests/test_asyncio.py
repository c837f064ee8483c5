# SPDX-License-Identifier: Apache-2.0
"""Requests from asyncio."""

import asyncio
import threading

import numpy as np
import pytest

import nereid

ONES = np.ones((1, 16), dtype=np.int32)


async def first_sum(model, a):
    async for response in model.async_infer(inputs={"INPUT0": a, "INPUT1": ONES}):
        return int(np.from_dlpack(response.outputs["OUTPUT0"])[0, 0])


def test_a_hundred_requests_at_once(server):
    async def all_of_them():
        model = server.model("simple")
        return await asyncio.gather(*(first_sum(model, ONES * i) for i in range(100)))

    for _ in range(5):
        assert asyncio.run(all_of_them()) == list(range(1, 101))


def test_loops_in_several_threads(server):
    sums = []

    def run():
        async def some():
            return await asyncio.gather(*(first_sum(server.model("simple"), ONES) for _ in range(50)))

        sums.extend(asyncio.run(some()))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [2] * 200


def test_decoupled_responses_one_by_one(server):
    async def stream():
        inputs = {
            "IN": np.arange(5, dtype=np.int32),
            "DELAY": np.full(5, 5, dtype=np.uint32),
            "WAIT": np.zeros(1, dtype=np.uint32),
        }
        return [response async for response in server.model("repeat").async_infer(inputs=inputs)]

    responses = asyncio.run(stream())
    assert [r.outputs["OUT"].to_list()[0] for r in responses if r.outputs] == [0, 1, 2, 3, 4]
    assert responses[-1].final


def test_the_loop_runs_while_a_request_does(server):
    async def together():
        ticks = 0
        request = asyncio.ensure_future(
            anext(server.model("slow").async_infer(inputs={"INPUT0": np.array([1], dtype=np.int32)}))
        )
        while not request.done():
            ticks += 1
            await asyncio.sleep(0.01)
        return ticks, await request

    ticks, response = asyncio.run(together())
    assert ticks > 3 and response.outputs["OUTPUT0"].to_list() == [1]


def test_a_cancelled_wait_loses_no_response(server):
    async def impatient():
        responses = server.model("slow").async_infer(inputs={"INPUT0": np.array([8], dtype=np.int32)})
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(responses), 0.02)
        return [response async for response in responses]

    (response,) = asyncio.run(impatient())
    assert response.outputs["OUTPUT0"].to_list() == [8]


def test_only_one_task_may_wait_for_the_responses_of_a_request(server):
    async def two():
        responses = server.model("slow").async_infer(inputs={"INPUT0": np.array([8], dtype=np.int32)})
        first = asyncio.ensure_future(anext(responses))
        await asyncio.sleep(0)
        with pytest.raises(nereid.AlreadyExistsError):
            await anext(responses)
        return await first

    assert asyncio.run(two()).final


def test_cancelling_ends_a_request_that_waits(server):
    async def cancel():
        model = server.model("slow")
        inputs = {"INPUT0": np.array([1], dtype=np.int32)}
        first = model.async_infer(inputs=inputs)
        second = model.async_infer(inputs=inputs)
        second.cancel()
        with pytest.raises(nereid.CancelledError):
            await anext(second)
        return [response async for response in first]

    assert len(asyncio.run(cancel())) == 1


def test_errors(server):
    async def errors():
        with pytest.raises(nereid.NotFoundError):
            server.model("nothing").async_infer()
        with pytest.raises(nereid.InvalidArgumentError):
            server.model("simple").async_infer(inputs={"INPUT0": ONES})

    asyncio.run(errors())


@pytest.mark.parametrize("room", [0, 1])
def test_a_queue_gets_responses_besides_the_iterator(server, room):
    async def both():
        responses = asyncio.Queue(room)
        model = server.model("square")
        iterators = [
            model.async_infer(inputs={"IN": np.array([3], dtype=np.int32)}, response_queue=responses) for _ in range(2)
        ]
        finals = 0
        while finals < 2:
            finals += (await responses.get()).final
        for iterator in iterators:
            assert len([response async for response in iterator if response.outputs]) == 3
        assert responses.empty()

    asyncio.run(both())
