# SPDX-License-Identifier: Apache-2.0
"""Which requests belong to a sequence, and which sequences this replica has."""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from typing import Any, NamedTuple, Optional

from nereid._api._errors import InvalidArgumentError, TritonError
from nereid._api._server import Server

_MODEL = re.compile(r"/v2/models/([^/]+)(?:/versions/[^/]+)?(?:/(.*))?")
_INFERENCE = frozenset(("infer", "generate", "generate_stream"))
# A sequence that no request has ended is forgotten after this many younger ones.
_MOST_SEQUENCES = 100_000


class Step(NamedTuple):
    """A request of a sequence.

    Parameters
    ----------
    model : str
    sequence : str
        The correlation id as a text.
    start, end : bool
        Whether it is the first, and the last request of the sequence.
    """

    model: str
    sequence: str
    start: bool
    end: bool


def model_in(path: str) -> tuple[Optional[str], bool]:
    """The model that a path of the API names, if any, and whether the request is one for inference."""
    match = _MODEL.fullmatch(path)
    return (match[1], match[2] in _INFERENCE) if match else (None, False)


class Sequences:
    """The sequences that this replica has, as far as one can know outside the server. Confined to an event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._idle_s: dict[str, Optional[float]] = {}
        self._last_use: OrderedDict[tuple[str, str], float] = OrderedDict()

    def has(self, model: str) -> bool:
        """Whether requests to this model can belong to sequences: its own, or those of a model of its ensemble."""
        if model not in self._idle_s:
            try:
                self._idle_s[model] = self._longest_idle_s(model, set())
            except TritonError:
                return False  # the server says that there is no such model
        return self._idle_s[model] is not None

    def forget(self, model: str) -> None:
        """After a model was unloaded."""
        self._idle_s.pop(model, None)

    def _longest_idle_s(self, model: str, seen: set[str]) -> Optional[float]:
        if model in seen:
            return None
        seen.add(model)
        config = self._server.model(model).config()
        batching = config.get("sequence_batching")
        found = [int(batching.get("max_sequence_idle_microseconds", 0)) / 1e6 or 1.0] if batching is not None else []
        steps = config.get("ensemble_scheduling", {}).get("step", [])
        found += [idle for step in steps if (idle := self._longest_idle_s(step["model_name"], seen)) is not None]
        return max(found, default=None)

    def step_in(self, model: str, fields: dict[bytes, bytes], body: bytes) -> Optional[Step]:
        """What the body of a request for inference says of its sequence; None if it belongs to none.

        Raises InvalidArgumentError if that cannot be read here.
        """
        if not self.has(model):
            return None
        if fields.get(b"content-encoding", b"identity").lower() != b"identity":
            raise InvalidArgumentError(
                f"a compressed request to model '{model}', which has sequences, cannot be read before a replica is "
                "chosen; send it uncompressed"
            )
        size = fields.get(b"inference-header-content-length", b"%d" % len(body))
        if not size.isdigit():
            return None  # the server says what is wrong with it
        try:
            said = json.loads(body[: int(size)])
        except (ValueError, RecursionError):
            return None
        if not isinstance(said, dict):
            return None
        inside = said.get("parameters")
        parameters = {**said, **inside} if isinstance(inside, dict) else said
        return step_of(model, parameters)

    def has_begun(self, step: Step) -> bool:
        """Whether the sequence of the request has begun here, and goes on."""
        last_use = self._last_use.get((step.model, step.sequence))
        # The server forgets sequences that are idle, perhaps a little later.
        limit = (self._idle_s.get(step.model) or 0) + 1
        return last_use is not None and time.monotonic() - last_use <= limit

    def takes(self, step: Step) -> bool:
        """Whether the sequence is here, or begins here. Notes that it goes on, or that it ends."""
        if not step.start and not self.has_begun(step):
            return False
        self.end(step)
        if not step.end:
            self._last_use[step.model, step.sequence] = time.monotonic()
            if len(self._last_use) > _MOST_SEQUENCES:
                self._last_use.popitem(last=False)
        return True

    def end(self, step: Step) -> None:
        """Notes that the sequence of the request is not here."""
        self._last_use.pop((step.model, step.sequence), None)


def step_of(model: str, parameters: dict[str, Any]) -> Optional[Step]:
    """The step that `sequence_id`, `sequence_start` and `sequence_end` make; None without an id."""
    sequence = parameters.get("sequence_id")
    if not isinstance(sequence, (int, str)) or not sequence:
        return None
    return Step(model, str(sequence), parameters.get("sequence_start") is True, parameters.get("sequence_end") is True)
