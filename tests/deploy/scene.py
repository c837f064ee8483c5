# SPDX-License-Identifier: Apache-2.0
"""Servers under load, with what makes every family of the dashboard appear, and a Prometheus that scrapes them.

| server | what it has |
| --- | --- |
| main | the load: models that batch, cache, run in Python, in processes of their own and in an ensemble; API keys, TLS |
| troubled | a model that stops when told to, few connections, and a machine whose memory the test decides |
| gpu | a GPU that can be lost, by the tests' replacements of the driver |
| demand | a model that is loaded on demand |
| spare | nothing; it may be stopped |
"""

import contextlib
import ctypes
import http.server
import itertools
import json
import os
import pathlib
import subprocess
import threading

import monitoring
from harness import certificates, cuda, files, models, python_models, trouble, wire
from harness import isolation, response_caches
from harness import server as servers

CONNECTIONS = 40
DELAY_MS = 100  # of the slow model
FLOATS = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
BODY = json.dumps({"inputs": [FLOATS]})


def now_and_then_another(n):
    """The body of the n-th request: of every other one the response is in the cache."""
    return json.dumps({"inputs": [{**FLOATS, "data": [n if n % 2 else 0, 2, 3, 4]}]})


GIB = 1 << 30
EVERYTHING_BUT_LOGGING = ["infer", "metadata", "metrics", "model-control", "shared-memory"]
ENSEMBLE = (
    'platform: "ensemble"\nmax_batch_size: 8\n'
    f"input [ {models.tensor_config('INPUT0', 'FP32', [4])} ]\noutput [ {models.tensor_config('OUTPUT0', 'FP32', [4])} ]\n"
    'ensemble_scheduling { step [ { model_name: "batched" model_version: -1\n'
    'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }\n'
)
GPU_COPY = (
    'backend: "gpu_copy"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('INPUT', 'UINT8', [-1])} ]\noutput [ {models.tensor_config('OUTPUT', 'UINT8', [-1])} ]\n"
    "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n"
)
# Those that get a request every few milliseconds.
LOADED = {
    "batched": BODY,
    "cached": now_and_then_another,
    "python_one": BODY,
    "ensemble": BODY,
    "simple": json.dumps({"inputs": [
        {"name": name, "datatype": "INT32", "shape": [1, 16], "data": list(range(16))} for name in ("INPUT0", "INPUT1")
    ]}),
    "isolated": json.dumps({"inputs": [{"name": "WHAT", "datatype": "BYTES", "shape": [1], "data": ["hello"]}]}),
}  # fmt: skip


def tests_backend(folder, name):
    """Puts a backend of the tests into the model's folder."""
    library = servers.build_folder() / "tests" / "backends" / f"libtriton_{name}.so"
    (folder / library.name).symlink_to(library)


def identity(extra=""):
    return models.identity_config("FP32", [4], max_batch_size=8, extra=extra)


def write_main(path):
    models.write_model(path, "batched", identity("dynamic_batching { max_queue_delay_microseconds: 2000 }\n"))
    models.write_model(path, "cached", identity("response_cache { enable: true }\n"))
    delay = isolation.parameter("execute_delay_ms", DELAY_MS)
    models.write_model(path, "slow", models.identity_config("FP32", [4], max_batch_size=1, extra=delay))
    models.write_model(path, "ensemble", ENSEMBLE)
    for name in ("comes_and_goes", "reloaded", "refusing"):
        models.write_model(path, name, identity())
    python_models.write(path, "python_one", python_models.IDENTITY, dims=(4,), max_batch_size=8)
    models.copy_example(path, "simple")
    config = (
        'backend: "mischief"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('WHAT', 'BYTES', [1])} ]\noutput [ {models.tensor_config('SAID', 'BYTES', [1])} ]\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    for name in ("isolated", "crashing"):
        tests_backend(models.write_model(path, name, config + isolation.ISOLATED), "mischief")


class FakeMachine:
    """A file that stands for /proc/meminfo in the file systems of one server, if tests may mount anything."""

    def __init__(self, path):
        self.path = path
        self.use(0.3)
        probe = ["unshare", "-m", "mount", "--bind", str(path), "/proc/meminfo"]
        try:
            self.is_possible = subprocess.run(probe, capture_output=True, timeout=60).returncode == 0
        except OSError:
            self.is_possible = False

    def use(self, share):
        total = 64 * GIB // 1024
        # Written over and not replaced, because it is the file that is mounted.
        text = f"MemTotal:       {total:12} kB\nMemAvailable:   {round(total * (1 - share)):12} kB\n"
        with open(self.path, "r+" if self.path.exists() else "w") as file:
            file.write(text)

    def before(self):
        """Runs in the process of the server before it starts."""
        if not self.is_possible:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        new_file_systems, private, bind = 0x20000, 0x44000, 0x1000
        done = [
            libc.unshare(new_file_systems),
            libc.mount(b"none", b"/", None, private, None),
            libc.mount(str(self.path).encode(), b"/proc/meminfo", None, bind, None),
        ]
        assert not any(done), os.strerror(ctypes.get_errno())


class Load:
    """Clients that send requests one after another until stop()."""

    def __init__(self, server, bodies, pause_s=0.01):
        self.failures = []
        self._end = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(server, model, body, pause_s), daemon=True)
            for model, body in bodies
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, server, model, body, pause_s):
        try:
            with wire.Connection(server) as connection:
                for n in itertools.count():
                    if self._end.wait(pause_s):
                        break
                    text = body(n) if callable(body) else body
                    reply = connection.request("POST", f"/v2/models/{model}/infer", text)
                    if reply.status != 200:
                        self.failures.append((model, reply))
        except (OSError, EOFError) as error:
            self.failures.append((model, error))

    def stop(self):
        self._end.set()
        for thread in self._threads:
            thread.join(60)


class LoadBalancer:
    """What stands between the clients and a server, and may be gone although the server is well. Passes GETs on."""

    def __init__(self, server):
        self.address = ("127.0.0.1", servers.free_ports(1)[0])

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(wire.request(server, "GET", self.path).status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._handler = Handler
        self.start()

    def start(self):
        self._listener = http.server.ThreadingHTTPServer(self.address, self._handler)
        self._thread = threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def stop(self):
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


class Scene:
    def __init__(self, folder, factor, interval):
        self.folder = pathlib.Path(folder)
        self.factor, self.interval = factor, interval
        self.machine = FakeMachine(self.folder / "meminfo")
        self.control = cuda.Control(self.folder / "control")
        self.keys = self.folder / "keys.json"
        self.write_keys()
        self.authority = certificates.make(self.folder, "authority")
        self.certificate = certificates.make(self.folder, "server", self.authority, days=100)
        self.troubled_certificate = certificates.make(self.folder, "troubled", self.authority, days=100)
        self.exporter_port = servers.free_ports(1)[0]
        self.servers = {}
        self.load = self.balancer = self.exporter = self.prometheus = None
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self.start_servers()
            self.balancer = LoadBalancer(self.servers["main"])
            self.start_exporter()
            self.prometheus = monitoring.Prometheus(self.folder, self.exporter_port, factor, interval)
            self.set_targets()
            self.prometheus.start()
            # Each model has two clients, whose requests can share a batch.
            self.load = Load(self.servers["main"], 2 * list(LOADED.items()))
            stack.pop_all()

    def write_keys(self, text=None):
        rules = {"keys": [], "anonymous": {"scopes": EVERYTHING_BUT_LOGGING}}
        files.replace(self.keys, json.dumps(rules) if text is None else text)

    def start(self, name, repository, *args, **options):
        log = self.folder / f"logs-{name}"
        log.mkdir(exist_ok=True)
        old = self.servers.get(name)
        ports = old and (old.http_port, old.grpc_port, old.metrics_port)
        self.servers[name] = servers.start(repository, args=args, wait=False, log_dir=log, ports=ports, **options)

    def start_servers(self):
        main, troubled = self.folder / "main", self.folder / "troubled"
        write_main(main)
        trouble.write(troubled, "stuck")
        models.write_model(self.folder / "spare", "m", identity())
        models.write_model(self.folder / "demand", "m", identity())
        tests_backend(models.write_model(self.folder / "gpu", "copy", GPU_COPY), "gpu_copy")
        self.start(
            "main", main, "--metrics-config=nereid_histograms=true", "--metrics-interval-ms=100",
            *response_caches.cache_args("local,size=1048576"), f"--api-keys={self.keys}",
            "--model-control-mode=explicit", "--load-model=*",
            "--grpc-use-ssl=true", f"--grpc-server-cert={self.certificate.cert}", f"--grpc-server-key={self.certificate.key}",
            env=python_models.ENVIRONMENT)  # fmt: skip
        self.start(
            "troubled", troubled, "--watchdog-execution-secs=1", "--metrics-interval-ms=100",
            f"--max-connections={CONNECTIONS}", "--max-connections-per-address=1000",
            "--grpc-use-ssl=true", f"--grpc-server-cert={self.troubled_certificate.cert}",
            f"--grpc-server-key={self.troubled_certificate.key}",
            before=self.machine.before)  # fmt: skip
        self.start(
            "demand", self.folder / "demand", "--model-control-mode=ondemand", f"--model-memory-budget={GIB}",
            "--load-model=m")  # fmt: skip
        self.start_gpu()
        self.start_spare()
        for server in self.servers.values():
            servers.wait_until(server.is_ready, f"a server that is ready; its log:\n{server.tail()}", timeout=60)

    def start_gpu(self):
        nvml = self.folder / "nvml"
        if not nvml.exists():
            nvml.mkdir()
            library = servers.build_folder() / "src" / "observe" / "libfake_nvml.so"
            (nvml / "libnvidia-ml.so.1").symlink_to(library)
        environment = self.control.environment()
        environment["LD_LIBRARY_PATH"] += f":{nvml}"
        self.start("gpu", self.folder / "gpu", env=environment)

    def start_exporter(self):
        self.exporter = monitoring.start_exporter(self.folder, self.exporter_port)

    def start_spare(self):
        self.start("spare", self.folder / "spare")

    def set_targets(self):
        """Tells Prometheus where the servers are. It takes five seconds to look at that again."""
        self.prometheus.set_targets(
            "nereid", [(server.metrics, {"instance": name}) for name, server in self.servers.items()])  # fmt: skip
        reached = {name: server.http for name, server in self.servers.items()}
        reached["main"] = "{}:{}".format(*self.balancer.address)
        self.prometheus.set_targets(
            "nereid-reach",
            [(f"http://{address}/v2/health/live", {"instance": name}) for name, address in reached.items()])  # fmt: skip
        self.prometheus.set_targets("nereid-certificates", [(self.servers["main"].grpc, {"instance": "main"})])

    def restart(self, name):
        if self.servers[name].process.poll() is None:
            self.servers[name].stop(check=False)
        {"gpu": self.start_gpu, "spare": self.start_spare}[name]()
        servers.wait_until(self.servers[name].is_ready, f"{name}", timeout=60)

    def duration(self, minutes):
        """What stands here for so many minutes of the rules."""
        return f"{round(minutes * 60_000 / self.factor)}ms"

    def hour(self):
        """The seconds that stand here for an hour of the rules."""
        return monitoring.SECONDS["h"] / self.factor

    def use_certificate(self, days):
        """Gives the server another certificate, in one step for each of the two files."""
        folder = self.folder / "certificate"
        folder.mkdir(exist_ok=True)
        made = certificates.make(folder, "server", self.authority, days=days)
        os.replace(made.key, self.certificate.key)
        os.replace(made.cert, self.certificate.cert)

    def close(self):
        if self.load is not None:
            self.load.stop()
        for program in (self.prometheus, self.exporter, self.balancer):
            if program is not None:
                program.stop()
        for server in self.servers.values():
            if server.process.poll() is None:
                server.stop(check=False)
