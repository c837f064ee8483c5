# SPDX-License-Identifier: Apache-2.0
"""The event loop in which a model's coroutines run."""

import os
import threading


class EventLoop:
    """Runs on a thread of its own, which starts with the first coroutine. Thread-safe."""

    def __init__(self, report):
        self._report = report  # called with what a task raised to end the loop
        self._lock = threading.Lock()
        self._loop = None
        self._is_over = False

    def start(self, coroutine):
        """Starts a coroutine; returns its future."""
        import asyncio  # most models do not need it

        # The model may be asked whether it is ready while it executes.
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, name="asyncio", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _run(self):
        """Runs the loop until stop(). Where a task calls sys.exit(), and where the model stops the loop,
        asyncio returns; but other coroutines still wait for it."""
        while not self._is_over:
            try:
                self._loop.run_forever()
            except Exception as error:
                # The loop itself is broken. Nobody waits for ever for a worker that ends.
                self._report(error)
                os._exit(1)
            except BaseException as error:
                self._report(error)

    def stop(self):
        self._is_over = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
