# SPDX-License-Identifier: Apache-2.0
"""What clients saw, what it must have been, and which errors are explained by what was done to the server."""

import collections
import contextlib
import threading
import time

# How long after a trouble its errors may still be seen: a killed worker has to start again, on a busy machine.
AFTERMATH_SECONDS = 30

# What clients are told while models come and go. Each text is matched as a part of an error.
MODELS_GO = (
    "has no available versions",
    "is not at ready state",
    "models that are not available or ambiguous",
    "must specify the START flag",  # the sequence began before its model was loaded again
    "the load was given up, because the model was unloaded meanwhile",  # by another trouble at the same time
)
WORKERS_DIE = (
    "is not healthy",
    "The stream is no longer in valid state",
    "failed to load",
)
# What they are told once the server has been asked to end.
SERVER_ENDS = (
    "Connection refused",
    "Connection reset",
    "onnection closed",
    "Socket closed",
    "GOAWAY",
    "shutting down",
    "Server is stopping",
    "not ready",
    "RemoteDisconnected",
    "closed connection without response",
    "Broken pipe",
    "EOF occurred",
    "failed to connect",
    "No such file or directory",  # of a Unix socket
)


class Generations:
    """The numbers that the model `changing` adds: it is replaced by one with the next number again and again."""

    def __init__(self):
        self._mutex = threading.Lock()
        self.loaded, self.begun = 0, 0

    def begin(self):
        with self._mutex:
            self.begun += 1
            return self.begun

    def end(self, number):
        with self._mutex:
            self.loaded = max(self.loaded, number)

    def oldest(self):
        """The oldest that may answer a request that is sent now."""
        with self._mutex:
            return self.loaded

    def newest(self):
        """The newest that may have answered a request whose response came just now."""
        with self._mutex:
            return self.begun


class Shares:
    """Which versions of the model `canary` may answer a request that names none."""

    def __init__(self, versions):
        self._mutex = threading.Lock()
        self._history = [frozenset(versions)]

    def begin(self, versions):
        """These may answer as well as those before them, until the change to them has worked."""
        with self._mutex:
            self._history.append(self._history[-1] | frozenset(versions))

    def end(self, versions):
        with self._mutex:
            self._history.append(frozenset(versions))

    def mark(self):
        with self._mutex:
            return len(self._history) - 1

    def since(self, mark):
        """Those that may have answered a request that was sent at the mark."""
        with self._mutex:
            return frozenset().union(*self._history[mark:])


class Oracle:
    """Judges responses and errors, and counts them. Thread-safe."""

    def __init__(self):
        self._mutex = threading.Lock()
        self._explained = {}  # text → how many troubles explain it now, and until when it is explained after them
        self._latencies = []
        self.generations = Generations()
        self.shares = Shares({"1"})
        self.seen = collections.Counter()
        self.problems = []

    def count(self, what, number=1):
        with self._mutex:
            self.seen[what] += number

    def problem(self, text, is_cause=False):
        """A cause comes first: the problems that were noticed before it follow from it."""
        with self._mutex:
            self.problems.insert(0 if is_cause else len(self.problems), f"{time.strftime('%H:%M:%S')} {text}")

    def response(self, is_right, otherwise, began):
        """A response, to a request that began then (time.monotonic); `otherwise` says what is wrong with it."""
        if not is_right:
            return self.problem(otherwise)
        with self._mutex:
            self.seen["right responses"] += 1
            self._latencies.append(time.monotonic() - began)

    def take_latencies(self):
        """How long the responses since the last call took."""
        with self._mutex:
            taken, self._latencies = self._latencies, []
        return taken

    @contextlib.contextmanager
    def explains(self, texts, aftermath=AFTERMATH_SECONDS):
        """Errors with one of these texts are explained in the block, and for a while after it."""
        with self._mutex:
            for text in texts:
                depth, until = self._explained.get(text, (0, 0))
                self._explained[text] = (depth + 1, until)
        try:
            yield
        finally:
            end = time.monotonic() + aftermath
            with self._mutex:
                for text in texts:
                    depth, until = self._explained[text]
                    self._explained[text] = (depth - 1, max(until, end))

    def error(self, where, error):
        """Counts an error that something explains; any other is a problem."""
        text = str(error)
        now = time.monotonic()
        with self._mutex:
            is_explained = any(part in text and (depth > 0 or now < until)
                               for part, (depth, until) in self._explained.items())
        if is_explained:
            self.count("explained errors")
            # What failed a moment ago still does; asking again at once would only be load of another kind.
            time.sleep(0.02)
        else:
            self.problem(f"{where}: {text}")
