#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries a built server on a machine with a GPU; docs/gpu.md says how.

    tools/gpu_check.py bundle FOLDER   # copies what the check needs, to carry it to another machine
    FOLDER/gpu_check.py run            # there: needs Python 3.8 and the driver, and nothing else

`run --fake` uses the tests' replacement for the driver, which shows that the check itself works.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
COPY = """backend: "gpu_copy"
max_batch_size: 0
input [ { name: "INPUT" data_type: TYPE_UINT8 dims: [ -1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_UINT8 dims: [ -1 ] } ]
"""
GROUPS = {
    "gpu": "instance_group [ { kind: KIND_GPU } ]",
    "cpu": "instance_group [ { kind: KIND_CPU } ]",
    "auto": "",
}
SIZE = 1 << 20
# Not carried: these belong to the machine.
SYSTEM = re.compile(r"^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libcuda|libnvidia)")


def bundle(build, folder):
    """Copies the server, its libraries and the test's backend."""
    folder.mkdir(parents=True, exist_ok=True)
    server = build / "src" / "app" / "nereid"
    backend = build / "tests" / "backends" / "libtriton_gpu_copy.so"
    fake = build / "src" / "memory" / "fake_cuda" / "libcuda.so.1"
    cuda = HERE.parent / "tests" / "harness" / "cuda.py"
    for file in (server, backend, cuda, pathlib.Path(__file__).resolve()):
        shutil.copy2(file, folder / file.name)
    (folder / "fake").mkdir(exist_ok=True)
    shutil.copy2(fake, folder / "fake" / fake.name)
    (folder / "libs").mkdir(exist_ok=True)
    listed = subprocess.run(["ldd", server, backend], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed, re.M):
        if not SYSTEM.match(name):
            shutil.copy2(path, folder / "libs" / name)
    (folder / "backends").mkdir(exist_ok=True)
    print(f"{sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) >> 20} MiB in {folder}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """The server under test, and requests to it."""

    def __init__(self, folder, models, environment, args):
        self.port, self.metrics_port = free_port(), free_port()
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)
        self.process = subprocess.Popen(
            [
                folder / "nereid",
                f"--model-repository={models}",
                f"--backend-directory={folder / 'backends'}",
                f"--http-port={self.port}",
                f"--metrics-port={self.metrics_port}",
                "--allow-grpc=false",
                "--allow-client-shm=true",
                *args,
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
        while self.status("/v2/health/ready") != 200:
            if self.process.poll() is not None:
                sys.exit(f"the server ended; its log:\n{pathlib.Path(self.log.name).read_text()}")
            time.sleep(0.05)

    def status(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        try:
            with urllib.request.urlopen(request) as reply:
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        return json.loads(text) if text else {}

    def register(self, name, memory):
        body = {
            "raw_handle": {"b64": memory.handle().decode()},
            "device_id": memory.device,
            "byte_size": memory.size,
        }
        self.call(f"/v2/cudasharedmemory/region/{name}/register", body)

    def infer_in_regions(self, model):
        def place(region):
            return {"shared_memory_region": region, "shared_memory_byte_size": SIZE}

        body = {
            "inputs": [
                {"name": "INPUT", "shape": [SIZE], "datatype": "UINT8", "parameters": place("in")}
            ],
            "outputs": [{"name": "OUTPUT", "parameters": place("out")}],
        }
        return self.call(f"/v2/models/{model}/infer", body)["parameters"]

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as reply:
            return reply.read().decode()

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


@contextlib.contextmanager
def step(name, failures):
    begin = time.monotonic()
    try:
        yield
        print(f"passed  {name} ({time.monotonic() - begin:.2f} s)", flush=True)
    except Exception as error:  # what a step finds wrong must not hide the others
        failures.append(name)
        print(f"FAILED  {name}: {error!r}", flush=True)


def write_models(folder, models):
    for name, group in GROUPS.items():
        (models / name / "1").mkdir(parents=True)
        (models / name / "config.pbtxt").write_text(COPY + group)
        (models / name / "libtriton_gpu_copy.so").symlink_to(folder / "libtriton_gpu_copy.so")


def expect(condition, found):
    if not condition:
        raise AssertionError(found)


def check(server, cuda, failures, is_trusted):
    """Sends data through the models: from the host, and from and to memory of the GPU."""
    trust = "trusted" if is_trusted else "not trusted"
    with step(f"KIND_AUTO is KIND_GPU ({trust})", failures):
        config = server.call("/v2/models/auto/config")
        expect(config["instance_group"][0]["kind"] == "KIND_GPU", config["instance_group"])
    with step(f"data of the host, through both pools ({trust})", failures):
        data = list(range(200))
        body = {
            "inputs": [{"name": "INPUT", "shape": [200], "datatype": "UINT8", "data": data}],
            "parameters": {"stage": True},
        }
        reply = server.call("/v2/models/gpu/infer", body)
        expect(reply["outputs"][0]["data"] == data, reply["outputs"][0]["data"][:10])
    given, taken = cuda.Memory(SIZE), cuda.Memory(SIZE)
    with step(f"memory of a GPU is registered ({trust})", failures):
        server.register("in", given)
        server.register("out", taken)
    for model, kind in (("gpu", "GPU"), ("cpu", "CPU"), ("auto", "GPU")):
        with step(f"memory of a GPU, read and written by model '{model}' ({trust})", failures):
            for number in range(20):
                data = bytes([number]) * SIZE
                given.write(data)
                told = server.infer_in_regions(model)
                expect(taken.read(SIZE) == data, "other data came back")
                expect((told["input_type"], told["output_type"]) == (kind, kind), told)
    with step(f"1,000 requests in memory of a GPU ({trust})", failures):
        begin = time.monotonic()
        for _ in range(1000):
            server.infer_in_regions("gpu")
        print(f"        {1000 / (time.monotonic() - begin):.0f} a second, one client")
    with step(f"regions are unregistered ({trust})", failures):
        server.call("/v2/cudasharedmemory/unregister", {})
        expect(server.call("/v2/cudasharedmemory/status") == [], "some are left")
    given.close()
    taken.close()


def run(folder, is_fake):
    environment = {"LD_LIBRARY_PATH": f"{folder / 'libs'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    if is_fake:
        environment["LD_LIBRARY_PATH"] = f"{folder / 'fake'}:{environment['LD_LIBRARY_PATH']}"
    else:
        os.environ["NEREID_TEST_CUDA"] = "real"
    sys.path.insert(0, str(folder))
    import cuda

    if is_fake:
        cuda.library = lambda: str(folder / "fake" / "libcuda.so.1")
    failures = []
    for is_trusted in (True, False):
        with tempfile.TemporaryDirectory() as models:
            write_models(folder, pathlib.Path(models))
            args = [f"--trust-shared-memory={str(is_trusted).lower()}"]
            server = Server(folder, models, environment, args)
            check(server, cuda, failures, is_trusted)
            with step("metrics", failures):
                page = server.metrics()
                expect(re.search(r"nv_pinned_memory_pool_used_bytes 0\b", page), "pinned memory in use")
                for line in re.findall(r"^nv_(?:gpu|energy)\S* \S+$", page, re.M):
                    print(f"        {line}")
                expect(is_fake or "nv_gpu_memory_total_bytes{" in page, "no nv_gpu_* families")
            with step("the server ends", failures):
                expect(server.stop() == 0, f"its log is {server.log.name}")
            for line in pathlib.Path(server.log.name).read_text().splitlines():
                if re.search(r"pool|peer|^[EW]", line):
                    print(f"        {line}")
    print("all passed" if not failures else f"{len(failures)} failed: {', '.join(failures)}")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    bundling = commands.add_parser("bundle")
    bundling.add_argument("folder", type=pathlib.Path)
    bundling.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "release")
    running = commands.add_parser("run")
    running.add_argument("--fake", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "bundle":
        return bundle(arguments.build.resolve(), arguments.folder.resolve())
    return run(HERE, arguments.fake)


if __name__ == "__main__":
    sys.exit(main())
