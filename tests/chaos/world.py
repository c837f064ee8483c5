# SPDX-License-Identifier: Apache-2.0
"""The server under test and all that it uses, each of which can be taken away from it."""

import contextlib
import http.server
import json
import pathlib
import random
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import psutil

from chaos import oracle, repository
from chaos.keys import Keys
from harness import certificates, isolation, python_models, s3
from harness import server as servers
from harness.response_caches import Redis

EXIT_TIMEOUT_SECONDS = 10
DISK_MEGABYTES = 48
STREAM_BACKLOG = 1 << 20  # less than the longest answers that slow clients ask for
SOURCES = pathlib.Path(__file__).resolve().parent


class Collector:
    """Takes spans, counts the bytes, and forgets them."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.server.received += len(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self):
        self.port = servers.free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}/v1/traces"
        self._server = None
        self.start()

    def start(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Collector.Handler)
        self._server.daemon_threads = True
        self._server.received = 0
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class Disk:
    """A small file system of its own for the log, traces, temporary files and copies of models; an ordinary folder
    where none can be mounted."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "chaos", path],
                              capture_output=True)
        self.is_small = done.returncode == 0

    def fill(self):
        with contextlib.suppress(OSError), open(self.path / "filler", "wb", buffering=0) as filler:
            for piece in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(bytes(piece))

    def free(self):
        with contextlib.suppress(FileNotFoundError):
            (self.path / "filler").unlink()

    def close(self):
        if self.is_small:
            subprocess.run(["umount", "-l", self.path], check=False)


class Clock:
    """Moves the server's time of day, where a preloaded library can be compiled for it."""

    def __init__(self, folder):
        self._file = folder / "clock"
        self._file.write_bytes(struct.pack("q", 0))
        self.environment = {}
        library = folder / "clock.so"
        done = subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCES / "clock.c"],
                              capture_output=True)
        # A sanitizer's library has to be loaded before any other.
        self.can_move = done.returncode == 0 and not servers.is_sanitized()
        if self.can_move:
            self.environment = {"LD_PRELOAD": str(library), "NEREID_CHAOS_CLOCK": str(self._file)}

    def move(self, seconds):
        with open(self._file, "r+b") as file:
            file.write(struct.pack("q", seconds))


class Tls:
    """Certificates of one authority, which are replaced while the server runs."""

    def __init__(self, folder):
        self._folder = folder
        self.authority = certificates.make(folder, "authority")
        self.used = certificates.make(folder, "server", self.authority)
        self._made = 0

    def rotate(self):
        self._made += 1
        new = certificates.make(self._folder, f"server{self._made}", self.authority)
        new.key.rename(self.used.key)
        new.cert.rename(self.used.cert)

    def flags(self, protocol):
        return [f"--{protocol}-use-ssl=true", f"--{protocol}-server-cert={self.used.cert}",
                f"--{protocol}-server-key={self.used.key}"]

    def context(self):
        return ssl.create_default_context(cafile=str(self.authority.cert))


class World:
    """Everything of one run, in an empty folder. What is started differs from seed to seed."""

    def __init__(self, folder, seed):
        rng = random.Random(f"world {seed}")
        self.folder = pathlib.Path(folder)
        self.oracle = oracle.Oracle()
        self.repository = self.folder / "models"
        self.repository.mkdir()
        self.identities = repository.write(self.repository)
        self.has_onnx = servers.has_backend("onnxruntime")
        self.socket = self.folder / "socket"
        self.disk = Disk(self.folder / "disk")
        self.temporary = self.disk.path / "tmp"
        self.temporary.mkdir()
        self.clock = Clock(self.folder)
        self.tls = Tls(self.folder)
        self.encrypted = rng.choice((("http",), ("grpc",), ("http", "grpc"), ()))
        self.traces_to = rng.choice(("collector", "file"))
        self.keys = Keys(self.folder) if rng.choice((True, False)) else None
        self.limits_rate = rng.choice((True, False))
        self.redis = Redis(self.folder) if shutil.which("redis-server") else None
        self.collector = Collector() if self.traces_to == "collector" else None
        self.s3 = self._start_s3()
        if self.s3:
            self.identities.append(repository.Identity(repository.REMOTE))
        self._controlled = []
        self.server = self._start()

    def _start_s3(self):
        if not (pathlib.Path(sys.executable).parent / "rclone").exists():
            return None
        repository.write_remote(self.folder / "s3" / "bucket")
        store = s3.S3Server(self.folder / "s3", self.folder / "s3.log")
        store.start()
        return store

    def _start(self):
        environment = {**python_models.ENVIRONMENT, **self.clock.environment, "TMPDIR": str(self.temporary)}
        repositories = [self.repository]
        if self.s3:
            environment |= s3.environment(self.disk.path / "copies", self.folder)
            repositories.append(self.s3.url("bucket"))
        server = servers.start(*repositories, env=environment, args=self._flags(), log_dir=self.folder, wait=False)
        self.server = server
        servers.wait_until(lambda: server.process.poll() is not None or self.get("/v2/health/ready") == 200,
                           "a server that is ready", timeout=120)
        assert server.process.poll() is None, self.last_words()
        return server

    def _flags(self):
        flags = ["--model-control-mode=explicit", "--load-model=*", f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
                 f"--log-file={self.disk.path / 'server.log'}", "--trace-config=level=TIMESTAMPS",
                 f"--admin-address=unix:{self.socket}", "--admin-on-main=true",
                 f"--max-stream-backlog={STREAM_BACKLOG}"]
        if self.limits_rate:
            flags += ["--rate-limit=execution_count", f"--rate-limit-resource={repository.RESOURCE}:2:GLOBAL"]
        for protocol in self.encrypted:
            flags += self.tls.flags(protocol)
        if self.redis:
            flags += self.redis.args()
        if self.keys:
            flags += [f"--api-keys={self.keys.file}"]
        if self.collector:
            flags += ["--trace-config=rate=20", "--trace-config=mode=opentelemetry",
                      f"--trace-config=opentelemetry,url={self.collector.url}"]
        else:
            flags += ["--trace-config=rate=200", "--trace-config=mode=triton",
                      f"--trace-config=triton,file={self.disk.path / 'trace.json'}"]
        return flags

    def describe(self):
        """What this run has, and why the rest is missing."""
        return {
            "tls": list(self.encrypted), "traces": self.traces_to, "keys": bool(self.keys),
            "rate limits": self.limits_rate, "redis": bool(self.redis), "s3": bool(self.s3),
            "small disk": self.disk.is_small or "none: mounting needs root",
            "clock": self.clock.can_move or "none: no C compiler, or a build with a sanitizer",
            "models": sorted(path.name for path in self.repository.iterdir()),
        }

    # --- Control requests -------------------------------------------------------------------------

    def headers(self):
        """What each request of a client has to carry, over either protocol."""
        return self.keys.headers() if self.keys else {}

    def _open(self, path, body=None, timeout=90, headers=None):
        is_encrypted = "http" in self.encrypted
        url = f"http{'s' if is_encrypted else ''}://127.0.0.1:{self.server.http_port}{path}"
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers() if headers is None else headers
        context = self.tls.context() if is_encrypted else None
        return urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=timeout, context=context)

    def get(self, path, headers=None):
        """The status, or None without a response."""
        try:
            with self._open(path, timeout=10, headers=headers) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def control(self, what, model, body=None):
        """Loads, unloads or directs; returns whether that worked. An error must be explained."""
        self._controlled.append(model)
        try:
            with self._open(f"/v2/repository/models/{model}/{what}", body or {}):
                return True
        except urllib.error.HTTPError as error:
            self.oracle.error(f"{what} {model}", error.read().decode(errors="replace"))
        except OSError as error:
            self.oracle.error(f"{what} {model}", f"{type(error).__name__}: {error}")
        finally:
            self._controlled.remove(model)
        return False

    def is_controlled(self, model):
        """Whether a trouble is loading, unloading or directing it at this moment."""
        return model in self._controlled

    def count_of(self, model, version):
        """How many requests a version has answered."""
        with self._open(f"/v2/models/{model}/versions/{version}/stats") as reply:
            return json.load(reply)["model_stats"][0]["inference_stats"]["success"]["count"]

    def is_model_ready(self, model):
        return self.get(f"/v2/models/{model}/ready") == 200

    def workers(self):
        return python_models.workers(self.server)

    def isolated(self):
        return isolation.processes(self.server)

    def last_words(self):
        """The end of the log, and of what the process has printed, such as a sanitizer's report."""
        path = self.disk.path / "server.log"
        log = path.read_text(errors="replace").splitlines()[-200:] if path.exists() else []
        return "\n".join([*log, self.server.tail(100)])

    # --- The end ----------------------------------------------------------------------------------

    def everything_works(self):
        """Loads all models; each must then be ready. Workers that were killed a moment ago come back by themselves."""
        names = [path.name for path in self.repository.iterdir()] + ([repository.REMOTE] if self.s3 else [])
        for name in names:
            with self.oracle.explains(oracle.WORKERS_DIE, aftermath=0):
                self.control("load", name)
        for name in names:
            try:
                servers.wait_until(lambda name=name: self.is_model_ready(name), "", timeout=60)
            except AssertionError:
                self.oracle.problem(f"{name} does not serve in the end")
        if self.oracle.seen["canary's answers"] and not self.count_of(repository.CANARY, repository.SHADOW):
            self.oracle.problem("the shadow was sent nothing")

    def end(self):
        """SIGTERM under load; returns how long the server took to end."""
        children = psutil.Process(self.server.pid).children(recursive=True)
        started = time.monotonic()
        self.server.signal()
        try:
            # Twice the time limit tells an end that is bounded from one that is not, on a busy machine, too.
            status = self.server.wait(2 * EXIT_TIMEOUT_SECONDS)
            if status != 0:
                self.oracle.problem(f"the server ended with status {status}: {self.last_words()}", is_cause=True)
        except subprocess.TimeoutExpired:
            self.server.process.kill()
            self.oracle.problem(f"the server did not end after SIGTERM: {self.last_words()}", is_cause=True)
        took = time.monotonic() - started
        _, alive = psutil.wait_procs(children, 5)
        if alive:
            self.oracle.problem(f"processes were left: {alive}")
        left = [str(path) for path in self.temporary.iterdir()]
        if left:
            self.oracle.problem(f"was left behind: {left}")
        return took

    def close(self):
        server = getattr(self, "server", None)
        if server is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        for part in (self.redis, self.s3, self.collector):
            if part is not None:
                part.stop()
        self.disk.close()


@contextlib.contextmanager
def world(seed):
    """A world in a folder of its own, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        made = World.__new__(World)
        made.redis = made.s3 = made.collector = None
        made.disk = None
        try:
            made.__init__(folder, seed)
            yield made
        finally:
            if made.disk is not None:
                made.close()
