# SPDX-License-Identifier: Apache-2.0
"""Servers under measurement: started on one core, watched through /proc."""

import contextlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def free_ports(count):
    """Ports that nobody has, from below those that the system gives to clients: another process that connects
    somewhere would otherwise be given one of them before it is used."""
    ports = []
    while len(ports) < count:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            if port not in ports:
                ports.append(port)
    return ports


def is_healthy(port, what):
    """Asks by hand: a client library would cost more than the answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.sendall(f"GET /v2/health/{what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            return s.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def raise_file_limit():
    """As many sockets as the system allows, for this process and those it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Process:
    """A process on some cores whose costs can be read; its children's are part of them."""

    def __init__(self, command, cores, log, env=None, folder=None):
        self.command = [str(part) for part in command]
        with open(log, "wb") as output:
            self.started = time.perf_counter()
            self.popen = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=folder,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),
                start_new_session=True,
            )
        self.pid, self.log = self.popen.pid, pathlib.Path(log)

    def _tasks(self):
        """The folders of all threads of the process and of its descendants."""
        found, pids = [], [self.pid]
        while pids:
            pid = pids.pop()
            try:
                tasks = [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
            except OSError:
                continue
            found += tasks
            for task in tasks:
                pids += map(int, _read(f"{task}/children").split())
        return found

    def pids(self):
        return sorted({int(task.split("/")[2]) for task in self._tasks()})

    def threads(self):
        return len(self._tasks())

    def cpu_seconds(self):
        """Processor time of all its threads, also of those that have ended."""
        return sum(_cpu_seconds(pid) for pid in self.pids())

    def switches(self):
        """Context switches of all its threads, wanted or not."""
        found = (re.findall(r"ctxt_switches:\s+(\d+)", _read(f"{task}/status")) for task in self._tasks())
        return sum(int(number) for numbers in found for number in numbers)

    def _memory(self, field):
        found = (re.search(rf"^{field}:\s+(\d+) kB", _read(f"/proc/{pid}/status"), re.M) for pid in self.pids())
        return sum(int(match.group(1)) for match in found if match) * 1024

    def resident_bytes(self):
        return self._memory("VmRSS")

    def peak_bytes(self):
        return self._memory("VmHWM")

    def proportional_bytes(self):
        """Resident memory in which what processes share counts once."""
        found = (re.search(r"^Pss:\s+(\d+) kB", _read(f"/proc/{pid}/smaps_rollup"), re.M) for pid in self.pids())
        return sum(int(match.group(1)) for match in found if match) * 1024

    def forget_peak(self):
        for pid in self.pids():
            try:
                pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                pass  # The peak then is that of the whole run.

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def stop(self):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(40)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        self.popen.wait()


def _read(path):
    """The file's text, or nothing when its process or thread has just ended."""
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def _cpu_seconds(pid):
    """What clock_getcpuclockid gives for a process, read to the nanosecond."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0


class Server(Process):
    """An inference server, ready to serve when the constructor returns."""

    def __init__(self, side, repository, cores, log, args=(), timeout=120, is_lenient=False):
        self.side, self.name = side, side.name
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        command = [
            side.binary,
            f"--model-repository={repository}",
            f"--backend-directory={side.backends}",
            f"--http-port={self.http_port}",
            f"--grpc-port={self.grpc_port}",
            f"--metrics-port={self.metrics_port}",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            "--log-info=false",
            "--exit-on-error=false",
            *side.args,
            *args,
        ]
        super().__init__(command, cores, log, side.env)
        deadline = self.started + timeout
        # Where a model fails, a server is live and never ready.
        path = "live" if is_lenient else "ready"
        while not is_healthy(self.http_port, path):
            if self.popen.poll() is not None or time.perf_counter() > deadline:
                self.stop()
                raise RuntimeError(f"{side.name} did not become ready:\n{self.tail()}")
            time.sleep(0.0005)
        self.ready_seconds = time.perf_counter() - self.started

    def ask(self, path, body=None, method=None, port=None, timeout=60):
        """The text of an answer of HTTP; an error answer raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{port or self.http_port}{path}"
        request = urllib.request.Request(url, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.read().decode()
        except urllib.error.HTTPError as error:
            raise OSError(f"{path}: {error.code} {error.read()[:300]!r}") from None

    def answered(self, model):
        """Requests to the model answered successfully so far, by the server's own count."""
        text = self.ask("/metrics", port=self.metrics_port)
        rows = re.findall(r"^nv_inference_request_success\{(.*)\} (\S+)$", text, re.M)
        return sum(float(value) for labels, value in rows if f'model="{model}"' in labels)

    def executions(self, model):
        """(inferences, executions) of the model so far."""
        (stats,) = json.loads(self.ask(f"/v2/models/{model}/stats"))["model_stats"]
        return int(stats["inference_count"]), int(stats["execution_count"])

    def version(self):
        return json.loads(self.ask("/v2"))["version"]

    def serves(self, model, timeout=20):
        """Whether it serves the model, or will when it has loaded what it is loading."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.ask(f"/v2/models/{model}/ready", timeout=10)
                return True
            except OSError:
                index = json.loads(self.ask("/v2/repository/index", {}))
                states = [entry.get("state") for entry in index if entry["name"] == model]
                # It failed, or it is taking its time.
                if states == ["UNAVAILABLE"] or time.monotonic() > deadline:
                    return False
                time.sleep(0.05)


class Side:
    """One of those compared: its name, its binary, its plug-ins and how it is started."""

    def __init__(self, name, binary, backends, args=(), env=None):
        self.name, self.binary, self.backends = name, pathlib.Path(binary), pathlib.Path(backends)
        self.args = list(args)
        # Python models are run by the interpreter in PATH, which shall be the one with NumPy.
        path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))
        # ONNX Runtime's telemetry is no part of a measurement, and nobody's business.
        self.env = {"PATH": path, "ORT_DISABLE_TELEMETRY": "1", **(env or {})}
        self._help = None

    def accepts(self, flag):
        """Whether --help knows the flag; releases differ."""
        if self._help is None:
            env = {**os.environ, **self.env}
            run = subprocess.run([str(self.binary), "--help"], capture_output=True, text=True, env=env)
            self._help = run.stdout + run.stderr
        return flag in self._help
