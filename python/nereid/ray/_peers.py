# SPDX-License-Identifier: Apache-2.0
"""The other replicas of a deployment, as one of them asks them about sequences."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import Any, AsyncIterator, Iterator, NamedTuple

from ray import serve
from ray.exceptions import RayTaskError

from nereid._api._errors import TritonError, UnavailableError
from nereid.ray._ranking import alive_replicas, ranked
from nereid.ray._sequences import Step

# The header by which Ray's proxy sends requests to the same replica.
_SESSION_HEADER = os.environ.get("RAY_SERVE_SESSION_ID_HEADER_KEY", "x-session-id")

# Of a call that takes milliseconds, on a machine that is busy.
_PATIENCE_S = 5
_MOST_TRIES = 6

_logger = logging.getLogger("ray.serve")


def is_session_header(name: bytes) -> bool:
    """As Ray's proxy compares: some proxies in front of it change hyphens."""
    return name.decode("latin-1").lower().replace("-", "_") == _SESSION_HEADER.lower().replace("-", "_")


class Reply(NamedTuple):
    """What a replica says that was asked to take a request over.

    Parameters
    ----------
    is_taken : bool
        Whether it has the sequence, and has executed the request.
    answer : Any
        As the method that was called gives it; of one over HTTP its status, fields and body.
    """

    is_taken: bool
    answer: Any = None


class Peers:
    """The replicas of the deployment that this process is one of. Confined to an event loop.

    Whoever hands a request on waits for a turn at another replica, of which each has `max_ongoing_requests`. If all of
    them were taken by requests that wait for each other, none would go on, so that only half of them may wait.
    """

    def __init__(self, context: Any) -> None:
        self._deployment = (context.deployment, context.app_name)
        ongoing = getattr(getattr(context, "_deployment_config", None), "max_ongoing_requests", 2)
        self._most_waiting = ongoing // 2
        self._waiting = 0
        self._handle: Any = None
        self._preparing = asyncio.Lock()

    async def ranked(self, sequence: str) -> list[str]:
        """The tags of the replicas that are alive, this one among them, the one first where the sequence begins."""
        async with self._preparing:
            if self._handle is None:
                handle = await asyncio.to_thread(serve.get_deployment_handle, *self._deployment)
                await self._begin(handle)
                self._handle = handle
        return ranked(sequence, alive_replicas(*self._deployment))

    async def _begin(self, handle: Any) -> None:
        """Calls the handle, which from its first call on is told of every replica that comes or goes. All sequences wait
        for it, so that a call that Ray loses is made again."""
        for _ in range(_MOST_TRIES):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(handle.models.remote(), _PATIENCE_S)
                return
            _logger.warning("no replica has answered within %d s, and is asked again", _PATIENCE_S)
        raise UnavailableError(f"no replica of '{self._deployment[0]}' answers")

    async def hand_on(self, step: Step, replica: str, method: str, call: tuple) -> tuple[Reply, AsyncIterator]:
        """What a replica says, and what it yields after that. `ranked` must have been called.

        Raises UnavailableError if too many requests wait already, the error of the package that the replica raises,
        and what Ray raises for a replica that ends.
        """
        with self._turn(step):
            handle = self._handle.options(stream=True, session_id=step.sequence)
            parts = handle.take_over.remote(step, method, call, to=replica)
            try:
                return Reply(*await parts.__anext__()), parts
            except RayTaskError as error:
                raise error.cause if isinstance(error.cause, TritonError) else error

    @contextlib.contextmanager
    def _turn(self, step: Step) -> Iterator[None]:
        if self._waiting >= self._most_waiting:
            raise UnavailableError(
                f"{self._waiting} requests of sequences wait for other replicas, which is half of max_ongoing_requests; "
                f"with the header '{_SESSION_HEADER}: {step.sequence}' they reach the right one at once"
            )
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
