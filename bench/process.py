# SPDX-License-Identifier: Apache-2.0
"""Servers under measurement: started on one core, watched through /proc."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def is_ready(port):
    """Asks by hand: a client library would cost more than the answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return s.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


class Process:
    """A process on one core whose costs can be read."""

    def __init__(self, command, core, log, env=None):
        with open(log, "wb") as output:
            self.started = time.perf_counter()
            self.popen = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
                start_new_session=True,
            )
        self.pid, self.log = self.popen.pid, pathlib.Path(log)

    def cpu_seconds(self):
        """Processor time of all its threads, in nanosecond steps."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            try:
                total += int(pathlib.Path(f"/proc/{self.pid}/task/{task}/schedstat").read_text().split()[0])
            except OSError:
                pass  # The thread has just ended.
        return total / 1e9

    def _memory(self, field):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M).group(1)) * 1024

    def resident_bytes(self):
        return self._memory("VmRSS")

    def peak_bytes(self):
        return self._memory("VmHWM")

    def forget_peak(self):
        try:
            pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")
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


class Server(Process):
    """An inference server, ready to serve when the constructor returns."""

    def __init__(self, side, repository, backends, core, log, args=(), timeout=120):
        self.side = side
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        command = [
            side.binary,
            f"--model-repository={repository}",
            f"--backend-directory={backends}",
            f"--http-port={self.http_port}",
            f"--grpc-port={self.grpc_port}",
            f"--metrics-port={self.metrics_port}",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            "--log-info=false",
            "--exit-on-error=false",
            "--strict-readiness=false",
            *side.args,
            *args,
        ]
        super().__init__(command, core, log, side.env)
        deadline = self.started + timeout
        while not is_ready(self.http_port):
            if self.popen.poll() is not None or time.perf_counter() > deadline:
                self.stop()
                raise RuntimeError(f"{side.name} did not become ready:\n{self.tail()}")
            time.sleep(0.0005)
        self.ready_seconds = time.perf_counter() - self.started

    def answered(self, model):
        """Requests to the model answered successfully so far, by the server's own count."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as reply:
            text = reply.read().decode()
        rows = re.findall(r"^nv_inference_request_success\{(.*)\} (\S+)$", text, re.M)
        return sum(float(value) for labels, value in rows if f'model="{model}"' in labels)

    def serves(self, model):
        try:
            url = f"http://127.0.0.1:{self.http_port}/v2/models/{model}/ready"
            return urllib.request.urlopen(url, timeout=10).status == 200
        except OSError:
            return False


class Side:
    """One of the two: its name, its binary and how it is started."""

    def __init__(self, name, binary, args=(), env=None):
        self.name, self.binary, self.args, self.env = name, pathlib.Path(binary), list(args), env or {}

    def accepts(self, flag):
        """Whether --help knows the flag; releases differ."""
        run = subprocess.run(
            [str(self.binary), "--help"], capture_output=True, text=True, env={**os.environ, **self.env}
        )
        return flag in run.stdout + run.stderr
