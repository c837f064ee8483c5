# SPDX-License-Identifier: Apache-2.0
"""Runs with Ray's Python: a replica's first call of its handle is lost by Ray, as often as the argument says."""

import asyncio
import sys
import types

import nereid.ray._peers as peers

lost = int(sys.argv[1])
calls = []


async def call():
    calls.append(len(calls))
    if len(calls) <= lost:
        await asyncio.Event().wait()


handle = types.SimpleNamespace(models=types.SimpleNamespace(remote=call))
peers.serve = types.SimpleNamespace(get_deployment_handle=lambda *_: handle)
peers.alive_replicas = lambda *_: ("a", "b")
peers._PATIENCE_S = 0.01


async def main():
    context = types.SimpleNamespace(deployment="models", app_name="app")
    one = peers.Peers(context)
    # Two requests at the same time; both are told.
    answers = await asyncio.gather(one.ranked("7"), one.ranked("7"), return_exceptions=True)
    print([sorted(answer) if isinstance(answer, list) else str(answer) for answer in answers], len(calls))


asyncio.run(main())
