# SPDX-License-Identifier: Apache-2.0
"""Models that a replica loads when they are asked for, up to a limit."""

from __future__ import annotations

import contextlib
import threading
from typing import Callable, Iterator

from nereid._api._errors import TritonError
from nereid._api._server import Server


class LoadedModel:
    """A model that was loaded for the replica. Ray calls `__del__` when the model is to make room, on a thread of its
    own; that returns when the model is gone, after the last of its requests."""

    def __init__(self, server: Server, name: str, after: Callable[[str], None]) -> None:
        self._server = server
        self._name = name
        self._after = after
        self._changed = threading.Condition()
        self._uses = 0
        self._is_unloaded = False

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Keeps the model loaded for the length of a with block."""
        with self._changed:
            self._uses += 1
        try:
            yield
        finally:
            with self._changed:
                self._uses -= 1
                self._changed.notify_all()

    def __del__(self) -> None:
        with self._changed:
            # Ray calls this, and then the interpreter.
            if self._is_unloaded:
                return
            self._is_unloaded = True
            self._changed.wait_for(lambda: self._uses == 0)
        try:
            self._server.unload(self._name, wait_until_unloaded=True, polling_interval=0.01)
        except TritonError:
            pass  # the server has stopped, and with it all models
        self._after(self._name)
