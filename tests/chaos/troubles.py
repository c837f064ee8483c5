# SPDX-License-Identifier: Apache-2.0
"""What is done to the server. A kind of trouble is a class below `Trouble`: its `run` does something and undoes it,
`explains` has parts of the errors that clients may get meanwhile and shortly afterwards, and `is_possible` says
whether the run has what it needs. A new class takes part by being here.
"""

import contextlib
import random
import shutil
import signal
import threading
import time

import psutil

from chaos import oracle, repository
from chaos.keys import CLIENT_SCOPES
from harness import files
from harness import server as servers

KILLED = (signal.SIGKILL, signal.SIGSEGV)
VISITOR = "visitor"


class Trouble:
    explains = ()
    aftermath = oracle.AFTERMATH_SECONDS

    def __init__(self, world, rng):
        self.world, self.rng = world, rng

    @classmethod
    def is_possible(cls, world):
        return True

    def run(self):
        raise NotImplementedError

    def wait(self, most):
        """Lets the trouble last for a random time."""
        time.sleep(self.rng.uniform(0.05, most))

    def reload(self, model):
        self.world.control("unload", model)
        self.world.control("load", model)

    def any_worker(self):
        workers = self.world.workers()
        return self.rng.choice(sorted(workers, key=lambda process: process.pid)) if workers else None

    def any_isolated(self):
        processes = self.world.isolated()
        return self.rng.choice(sorted(processes, key=lambda process: process.pid)) if processes else None

    def python_model(self):
        return self.rng.choice([model.name for model in self.world.identities if model.is_python])

    def local_model(self):
        """One that may be unloaded. With the canary, the rules for its versions would go, which its clients know."""
        return self.rng.choice([name for name in self.lasting_models() if name != repository.CANARY])

    def lasting_models(self):
        """All of the repository but those that come and go: who loads one may find half of its folder."""
        names = sorted(path.name for path in self.world.repository.iterdir())
        return [name for name in names if not name.startswith(VISITOR)]


# --- Models come, go and change ---------------------------------------------------------------


class Reload(Trouble):
    """A model is unloaded and loaded under load."""

    explains = oracle.MODELS_GO

    def run(self):
        self.reload(self.local_model())


class LoadWhatIsLoaded(Trouble):
    """Nothing changes, and nobody notices."""

    def run(self):
        self.world.control("load", self.rng.choice(self.lasting_models()))


class Change(Trouble):
    """A model is replaced by another one without a gap."""

    @classmethod
    def is_possible(cls, world):
        return world.has_onnx

    def run(self):
        generations = self.world.oracle.generations
        number = generations.begin()
        repository.write_changing(self.world.repository, number)
        if self.world.control("load", repository.CHANGING):
            generations.end(number)


class ShiftTraffic(Trouble):
    """The canary gets another share of the requests, down to none and up to all; its shadow gets one, too."""

    @classmethod
    def is_possible(cls, world):
        return world.has_onnx

    def run(self):
        percent = self.rng.choice((0, 0, 10, 50, 100))
        versions = {0: {repository.STABLE}, 100: {repository.SHARED}}.get(percent,
                                                                          {repository.STABLE, repository.SHARED})
        rules = {"canary": {"percent": percent}, "shadow": {"percent": self.rng.choice((10, 100))}}
        shares = self.world.oracle.shares
        shares.begin(versions)
        if self.world.control("traffic", repository.CANARY, rules):
            shares.end(versions)


class ComeAndGo(Trouble):
    """A model that is new in the repository is loaded, unloaded and deleted."""

    def run(self):
        name = f"{VISITOR}{self.rng.randrange(1 << 30)}"
        folder = self.world.folder / name
        shutil.copytree(self.world.repository / "identity", folder / name)
        config = folder / name / "config.pbtxt"
        config.write_text(config.read_text())
        (folder / name).rename(self.world.repository / name)
        try:
            if self.world.control("load", name) and not self.world.is_model_ready(name):
                self.world.oracle.problem(f"{name} was loaded and is not ready")
            self.world.control("unload", name)
        finally:
            shutil.rmtree(self.world.repository / name)
            folder.rmdir()


class BreakFile(Trouble):
    """A model's new file is no model: the load fails, and the old one goes on serving."""

    @classmethod
    def is_possible(cls, world):
        return world.has_onnx

    def run(self):
        world, name = self.world, "onnx_batched"
        file = world.repository / name / "1" / "model.onnx"
        whole = file.read_bytes()
        with world.oracle.explains(("failed to load", "is not an ONNX model", "load failed"), aftermath=0):
            files.replace(file, whole[: self.rng.randrange(len(whole))])
            try:
                world.control("load", name)  # may work: what is left can be a model, too
            finally:
                files.replace(file, whole)
            # Another trouble's load may have read the broken file.
            servers.wait_until(lambda: not world.is_controlled(name), "loads of the broken file to end", timeout=60)
        world.control("load", name)


# --- Processes ----------------------------------------------------------------------------------


class KillWorker(Trouble):
    """The process of a Python model dies; another takes its place."""

    explains = oracle.WORKERS_DIE

    def run(self):
        worker = self.any_worker()
        if worker is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.send_signal(self.rng.choice(KILLED))


class KillThenUnload(KillWorker):
    """The next worker is being started when its model goes."""

    explains = oracle.WORKERS_DIE + oracle.MODELS_GO

    def run(self):
        super().run()
        self.wait(1)
        self.reload(self.python_model())


class KillWhileUnloading(KillWorker):
    """A worker dies while its model goes."""

    explains = oracle.WORKERS_DIE + oracle.MODELS_GO

    def run(self):
        killer = threading.Thread(target=super().run)
        killer.start()
        self.reload(self.python_model())
        killer.join()


class StopWorker(Trouble):
    """A worker does not run for a moment, as on a machine without memory."""

    def run(self):
        worker = self.any_worker()
        if worker is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.suspend()
            try:
                self.wait(2)
            finally:
                worker.resume()


class KillIsolated(Trouble):
    """The process of an isolated model dies; another takes its place."""

    explains = oracle.WORKERS_DIE

    def run(self):
        process = self.any_isolated()
        if process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(self.rng.choice(KILLED))


class HangIsolated(Trouble):
    """The process of an isolated model does not respond: it is replaced after its time limit."""

    # Those behind the request that hangs are told if, by that time, they would have to wait beyond their deadlines.
    explains = (*oracle.WORKERS_DIE, "is overloaded: a response would take")

    def run(self):
        process = self.any_isolated()
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
            try:
                process.wait(4 * repository.ISOLATION_TIMEOUT_SECONDS)
            except psutil.TimeoutExpired:  # Nobody asked its model anything.
                process.resume()


class StopServer(Trouble):
    """The whole server does not run for a moment; nothing is lost."""

    def run(self):
        self.world.server.signal(signal.SIGSTOP)
        try:
            self.wait(2)
        finally:
            self.world.server.signal(signal.SIGCONT)


# --- What the server talks to -------------------------------------------------------------------


class RedisAway(Trouble):
    """The response cache goes away; models answer without it."""

    @classmethod
    def is_possible(cls, world):
        return world.redis is not None

    def run(self):
        self.world.redis.stop()
        try:
            self.wait(3)
        finally:
            self.world.redis.start()


class RedisHangs(Trouble):
    """The response cache does not answer; models wait for it no longer than its time limit."""

    @classmethod
    def is_possible(cls, world):
        return world.redis is not None

    def run(self):
        self.world.redis.process.send_signal(signal.SIGSTOP)
        try:
            self.wait(3)
        finally:
            self.world.redis.process.send_signal(signal.SIGCONT)


class StoreAway(Trouble):
    """The object store goes away: its model serves on, and cannot be loaded until the store is back."""

    @classmethod
    def is_possible(cls, world):
        return world.s3 is not None

    def run(self):
        world = self.world
        with world.oracle.explains(STORE_FAILS, aftermath=0):
            world.s3.stop()
            try:
                world.control("load", repository.REMOTE)
            finally:
                world.s3.start()
        if not world.is_model_ready(repository.REMOTE):
            with world.oracle.explains(STORE_FAILS, aftermath=0):
                world.control("load", repository.REMOTE)


class CollectorAway(Trouble):
    """Spans are dropped, and requests do not wait for them."""

    @classmethod
    def is_possible(cls, world):
        return world.collector is not None

    def run(self):
        self.world.collector.stop()
        try:
            self.wait(3)
        finally:
            self.world.collector.start()


# --- The machine ----------------------------------------------------------------------------------

# What loads say while there is no store, no room for copies, or another time than the store's.
STORE_FAILS = ("failed to load", "failed to poll", "Unable to", "unable to", "s3://", "No space left", "store")


class DiskFull(Trouble):
    """No room for log, traces, temporary files and copies of models, while models are loaded."""

    explains = oracle.MODELS_GO + oracle.WORKERS_DIE

    @classmethod
    def is_possible(cls, world):
        return world.disk.is_small

    def run(self):
        world = self.world
        world.disk.fill()
        try:
            with world.oracle.explains(STORE_FAILS, aftermath=0):
                for model in (repository.REMOTE if world.s3 else self.local_model(), self.python_model()):
                    self.reload(model)
                self.wait(2)
        finally:
            world.disk.free()
        for model in (repository.REMOTE,) if world.s3 else ():
            world.control("load", model)


class RotateCertificates(Trouble):
    """Connections that are open go on, new ones get the new certificate."""

    @classmethod
    def is_possible(cls, world):
        return bool(world.encrypted)

    def run(self):
        self.world.tls.rotate()


# What a key gets that is in the file, and one that is not: also 429, from an address that failed often.
TAKEN, REFUSED = (200,), (401, 429)


class RotateKeys(Trouble):
    """Clients get a new API key, while requests with the one before are in progress. A key that is revoked is
    refused from then on."""

    @classmethod
    def is_possible(cls, world):
        return world.keys is not None

    def run(self):
        name, key = self.world.keys.add(*CLIENT_SCOPES)
        self._until(key, TAKEN)
        self.world.keys.replace(name, key)
        visitor, key = self.world.keys.add("metadata")
        self._until(key, TAKEN)
        self.world.keys.revoke(visitor)
        self._until(key, REFUSED)

    def _until(self, key, statuses):
        """The server looks at the file once a second, unless it is stopped by another trouble."""
        headers = {"authorization": f"Bearer {key}"}
        servers.wait_until(lambda: self.world.get("/v2", headers) in statuses, f"{statuses} with a key", timeout=30)


class StepClock(Trouble):
    """The time of day jumps, backwards or forwards, and back again."""

    @classmethod
    def is_possible(cls, world):
        return world.clock.can_move

    def run(self):
        world = self.world
        world.clock.move(self.rng.choice((-86_400, -3600, -1, 1, 3600, 86_400, 10 * 365 * 86_400)))
        try:
            self.wait(2)
            self.world.control("load", self.local_model())
        finally:
            world.clock.move(0)


def kinds(of=Trouble):
    """All kinds of trouble, in the order of their places here, on which what a seed repeats depends."""
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


class Troublemaker:
    """Chooses troubles, one or two at a time, as the seed says, and remembers what was when."""

    def __init__(self, world, seed, only=None):
        self._world, self._seed, self._number = world, seed, 0
        self._rng = random.Random(f"troubles {seed}")
        self._kinds = sorted({kind for kind in kinds() if kind.is_possible(world)}, key=lambda kind: kind.__name__)
        if only:
            unknown = set(only) - {kind.__name__ for kind in self._kinds}
            if unknown:
                raise ValueError(f"there is no trouble {', '.join(sorted(unknown))} here")
            self._kinds = [kind for kind in self._kinds if kind.__name__ in only]
        self._began = time.monotonic()
        self.events = []  # (seconds since the start, name, how long it took)

    def next(self):
        chosen = [self._rng.choice(self._kinds) for _ in range(2 if self._rng.random() < 0.25 else 1)]
        threads = []
        for kind in chosen:
            self._number += 1
            trouble = kind(self._world, random.Random(f"{self._seed} {self._number}"))
            threads.append(threading.Thread(target=self._run, args=(trouble,)))
        # Two of the same kind would undo each other.
        for thread in threads[: len(set(chosen))]:
            thread.start()
        for thread in threads[: len(set(chosen))]:
            thread.join()

    def _run(self, trouble):
        name, began = type(trouble).__name__, time.monotonic()
        try:
            with self._world.oracle.explains(trouble.explains, trouble.aftermath):
                trouble.run()
        except Exception as error:  # A trouble that cannot be made is a mistake of ours, and must be seen.
            self._world.oracle.problem(f"{name} itself failed: {type(error).__name__}: {error}")
        self._world.oracle.count(f"trouble {name}")
        self.events.append((round(began - self._began, 2), name, round(time.monotonic() - began, 2)))
