# SPDX-License-Identifier: Apache-2.0
"""Starts the server under test as a process of its own and ends it again.

Which server: NEREID_SERVER names a binary and NEREID_BACKENDS its backend directory; without them
both come from the build folder NEREID_BUILD (default: build/release). With NEREID_REFERENCE=1 the
binary is the reference server, and tests marked `newer` are skipped.
"""

import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
import weakref

import psutil

from harness import transports, wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = os.environ.get("NEREID_REFERENCE", "") not in ("", "0")


def build_folder():
    return pathlib.Path(os.environ.get("NEREID_BUILD", ROOT / "build" / "release")).resolve()


def binary():
    named = os.environ.get("NEREID_SERVER")
    return pathlib.Path(named).resolve() if named else build_folder() / "src" / "app" / "nereid"


def backends():
    named = os.environ.get("NEREID_BACKENDS")
    return pathlib.Path(named).resolve() if named else build_folder() / "backends"


def has_backend(name):
    return (backends() / name / f"libtriton_{name}.so").exists()


def sanitizers():
    """Those of the build, as for -fsanitize=; empty if it has none."""
    if REFERENCE:
        return ""
    cache = build_folder() / "CMakeCache.txt"
    if os.environ.get("NEREID_SERVER"):
        for parent in binary().parents:
            if (parent / "CMakeCache.txt").exists():
                cache = parent / "CMakeCache.txt"
                break
    found = cache.exists() and re.search(r"^NEREID_SANITIZE:\w+=(.*)$", cache.read_text(), re.M)
    return found.group(1) if found else ""


def is_sanitized():
    """Whether the build carries a sanitizer, which owns malloc and slows everything down."""
    return bool(sanitizers())


# Everything that waits for the server waits this much longer under a sanitizer.
SLOWNESS = 6 if is_sanitized() else 1

# What no test provokes: some models crash on purpose.
SANITIZER_REPORT = re.compile(r"ThreadSanitizer: data race|AddressSanitizer: (heap|stack)-use-after|: runtime error: ")


def free_ports(count):
    """Ports that nobody has, from below those that the system gives to clients: another process that connects
    somewhere would otherwise be given one of them before it is used. Two workers of pytest are never given the same."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = []
    while len(ports) < count:
        port = random.SystemRandom().randrange(12_000 + worker, 32_000, workers)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            if port not in ports:
                ports.append(port)
    return ports


def wait_until(condition, what, timeout=20.0):
    """Polls until the condition holds and returns what it gave; fails after the timeout."""
    deadline = time.monotonic() + timeout * SLOWNESS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout * SLOWNESS:.0f} s in vain for: {what}")
        time.sleep(0.02)


def read_metrics(text):
    """A page of metrics as {(name, model): value}; the value is summed over the other labels."""
    values = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
        model = re.search(r'model="([^"]*)"', labels)
        key = (name, model.group(1) if model else "")
        values[key] = values.get(key, 0.0) + float(value)
    return values


def reserve_ports(count):
    """Sockets that hold a free port each, so that nobody is given it before the server under test listens there: that
    may, as both allow it and these do not listen."""
    sockets = []
    for _ in range(count):
        sockets.append(socket.socket())
        sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sockets[-1].bind(("127.0.0.1", 0))
    return sockets


class Server:
    """A running server. Made by start(); stop() ends it and checks how it ended."""

    def __init__(self, process, log_path, ports, transport=None):
        self.process = process
        self.transport = transport or transports.Tcp()
        self.log_path = log_path
        self.http_port, self.grpc_port, self.metrics_port = ports
        self.http = f"127.0.0.1:{self.http_port}"
        self.grpc = f"127.0.0.1:{self.grpc_port}"
        self.metrics = f"127.0.0.1:{self.metrics_port}"

    @property
    def pid(self):
        """The server's own process, also where a wrapper script started it."""
        return self.process.pid

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_for_log(self, text):
        """Waits until the log has this: a thread of its own writes it, a moment later."""
        wait_until(lambda: text in self.log, f"a log with {text!r}")

    def log_length(self):
        """Waits until the log has the table of options, the last that a start writes, and returns how long it is."""
        self.wait_for_match(r"^\| exit_timeout .*\n(\|.*\n)*\+-.*\n")
        return len(self.log)

    def wait_for_match(self, pattern):
        """Waits until this regular expression is found in the log, in which ^ and $ are ends of lines."""
        return wait_until(lambda: re.search(pattern, self.log, re.M), f"a log that matches {pattern!r}")

    def is_ready(self):
        return self._status("/v2/health/ready") == 200

    def is_live(self):
        return self._status("/v2/health/live") == 200

    def has_metrics(self):
        """Whether it serves its metrics, the last that a server begins with."""
        try:
            self.scrape()
        except urllib.error.URLError:
            return False
        return True

    def connect(self, service, timeout=30):
        """A connected socket for `service`, http or grpc, over the server's transport."""
        return self.transport.connect(self, service, timeout)

    def channel(self, options=()):
        """A channel of grpcio over the server's transport."""
        return self.transport.channel(self, options)

    def _status(self, path):
        if self.transport.name != "tcp":
            try:
                return wire.request(self, "GET", path).status
            except (OSError, EOFError):
                return None
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=5) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def scrape(self):
        """What read_metrics finds on its page."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as reply:
            return read_metrics(reply.read().decode())

    def resident_bytes(self):
        return psutil.Process(self.pid).memory_info().rss

    def read_bytes(self):
        """How much it has read so far, from files and sockets."""
        return psutil.Process(self.pid).io_counters().read_chars

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, timeout=40):
        """Waits for the end of the process and returns its exit status."""
        return self.process.wait(timeout * SLOWNESS)

    def stop(self, check=True):
        if self.process.poll() is None:
            self.signal()
        try:
            status = self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end after SIGTERM; its log:\n{self.tail()}")
        if check:
            assert status == 0, f"the server ended with exit status {status}; its log:\n{self.tail()}"
            # Those of isolated models' processes have no other effect.
            reports = [line for line in self.log.splitlines() if SANITIZER_REPORT.search(line)]
            assert not reports, "\n".join(reports)
        return status

    def tail(self, lines=40):
        """The end of the log, after the errors that stand before it."""
        log = self.log.splitlines()
        errors = [line for line in log[:-lines] if line.startswith("E")]
        return "\n".join(errors[:20] + log[-lines:])


def command(repositories, ports, args, executable=None):
    """The command line of a server on these repositories and ports. One that is not the server under
    test looks for its backends itself."""
    line = [str(executable or binary())]
    line += [f"--model-repository={repository}" for repository in repositories]
    if executable is None and not any(a.startswith("--backend-directory") for a in args):
        line.append(f"--backend-directory={backends()}")
    line += [f"--http-port={ports[0]}", f"--grpc-port={ports[1]}", f"--metrics-port={ports[2]}"]
    for service in ("http", "grpc", "metrics"):
        if not any(a.startswith(f"--{service}-address") for a in args):
            line.append(f"--{service}-address=127.0.0.1")
    return line + [str(a) for a in args]


def start(*repositories, args=(), env=None, wait=True, log_dir=None, timeout=60, executable=None,
          transport=None, before=None, ports=None):  # fmt: skip
    """Starts a server; with `wait`, returns once it is ready, or fails with the end of its log.
    `before` runs in the process of the server before it starts. `ports` are those of an earlier server, which has
    ended."""
    if transport is not None:
        args = [*args, *transport.args]
    log_path = pathlib.Path(tempfile.mkdtemp(dir=log_dir)) / "server.log"
    reserved = [] if ports or REFERENCE or executable is not None else reserve_ports(3)
    ports = ports or [one.getsockname()[1] for one in reserved] or free_ports(3)
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            command(repositories, ports, list(args), executable),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            # Ctrl-C on the tests must not reach the server: the fixtures stop it.
            start_new_session=True,
            preexec_fn=before,
        )
    server = Server(process, log_path, ports, transport)
    for one in reserved:
        weakref.finalize(server, one.close)
    if wait:
        deadline = time.monotonic() + timeout * SLOWNESS
        while not server.is_ready():
            if process.poll() is not None:
                raise AssertionError(
                    f"the server ended with exit status {process.returncode}; its log:\n{server.tail()}"
                )
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise AssertionError(f"the server did not become ready; its log:\n{server.tail()}")
            time.sleep(0.02)
    return server


@contextlib.contextmanager
def running(*repositories, **options):
    """A server for the length of a with block; it must then end with exit status 0."""
    server = start(*repositories, **options)
    try:
        yield server
    except BaseException:
        server.process.kill()
        server.process.wait()
        raise
    server.stop()


def run_to_end(args, timeout=60, env=None):
    """Runs the binary with these arguments until it ends by itself."""
    return subprocess.run(
        [str(binary()), *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout * SLOWNESS,
        env={**os.environ, **(env or {})},
    )
