# SPDX-License-Identifier: Apache-2.0
"""Async functions, which share one thread: none waits for what another one's client or step is slow at."""

import asyncio
import typing

import numpy as np
from harness import slow_stream

import nereid

sent = 0


@nereid.model(outputs={"frame": np.int64})
async def frames(n: int) -> typing.AsyncIterator[dict]:
    global sent
    for i in range(n):
        frame = np.zeros(1 << 17, np.int64)
        frame[:2] = i, sent
        yield {"frame": frame}
        if n > 1:
            sent += 1


def test_a_client_that_does_not_read_holds_up_no_other_coroutine():
    with nereid.serve(
        frames, block=False, http_port=None, grpc_port=0, metrics_port=None, max_stream_backlog=1 << 20
    ) as server:
        slow_stream.assert_holds_up_no_other(f"127.0.0.1:{server.grpc_port}", "frames", "n", "frame", 100)


@nereid.model
async def count(x: int) -> typing.AsyncIterator[int]:
    for i in range(x):
        yield i


@nereid.model
async def twice(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x


ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_INT64 dims: [ 1 ] } ]
ensemble_scheduling {
  max_inflight_requests: 1
  step [ { model_name: "count" model_version: -1
           input_map { key: "x" value: "x" } output_map { key: "output" value: "one" } },
         { model_name: "twice" model_version: -1
           input_map { key: "x" value: "one" } output_map { key: "output" value: "y" } } ]
}
"""


def test_a_coroutine_does_not_wait_on_the_thread_that_the_next_step_needs(tmp_path):
    (tmp_path / "both" / "1").mkdir(parents=True)
    (tmp_path / "both" / "config.pbtxt").write_text(ENSEMBLE)
    off = {"http_port": None, "grpc_port": None, "metrics_port": None}
    with nereid.serve(count, twice, tmp_path, block=False, **off) as server:
        found = [response["y"].tolist() for response in server.stream("both", x=[100])]
    assert found == [[2 * i] for i in range(100)]
