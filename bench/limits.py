# SPDX-License-Identifier: Apache-2.0
"""What the machine allows: programs that do only what no server can avoid, measured in the same run.

http_floor, grpc_floor   servers that send back what they get (rows 1, 2, 4, 8, 9 and 11), or as many
                         small responses as the model would (row 10)
memcpy N                 copying N MiB once (row 5: the identity model does nothing else)
ort MODEL                runs of ONNX Runtime in a loop, without a server (row 6)
"""

import ctypes
import json
import mmap
import os
import time

import models
import tools
from process import Process, free_ports


class Floors:
    """The floors of a run. Programs start when a row first asks for them."""

    def __init__(self, bench):
        self.bench = bench
        self.echoes = {}

    def prepare(self, row):
        """A function (runner, row, load) -> sample, or None."""
        kind, quick = row.floor.split(" ")[0], self.bench.arguments.quick
        if kind in ("http_floor", "grpc_floor") and self.bench.tool(kind).exists() and not quick:
            responses = [option for option in row.options if option.startswith("--responses=")]
            if row.is_streaming and not responses:
                responses = ["--responses=1"]
            echo = self._echo(kind, *responses)
            return lambda runner, row, load: load and runner.measure(row, load, echo, None)
        if kind == "memcpy" and not quick:
            return lambda runner, row, load: self._copy(int(row.floor.split(" ")[1]) << 20)
        if kind == "ort" and self.bench.tool("ort_loop").exists() and not quick:
            return lambda runner, row, load: self._ort(row)
        return None

    def _echo(self, *command):
        """The running program; one that is new to this run is started."""
        if command not in self.echoes:
            (port,) = free_ports(1)
            path, log = self.bench.tool(command[0]), self.bench.folder / f"floor-{len(self.echoes)}.log"
            echo = Process([path, f"--port={port}", *command[1:]], {self.bench.server_core}, log)
            echo.name, echo.http_port, echo.grpc_port = command[0], port, port
            self.echoes[command] = echo
            time.sleep(0.3)
        return self.echoes[command]

    def _copy(self, size):
        """The time of one copy between two regions, on the server's core."""
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.bench.server_core})
        try:
            areas = [mmap.mmap(-1, size) for _ in range(2)]
            to, source = ((ctypes.c_char * size).from_buffer(area) for area in areas)
            times = []
            for _ in range(50):
                start = time.perf_counter()
                ctypes.memmove(to, source, size)
                times.append((time.perf_counter() - start) * 1e6)
        finally:
            os.sched_setaffinity(0, own)
        median = sorted(times)[len(times) // 2]
        return {"p50_us": median, "cpu_us": median, "per_second": 1e6 / median}

    def _ort(self, row):
        """Runs of the model with as many rows as the load has clients, as a perfect batcher would."""
        folder = models.EXAMPLES / "digits" if row.model == "digits" else None
        if folder is not None:
            file = next(folder.glob("*/model.onnx"))
        else:
            file = self.bench.folder / "mlp.onnx"
            if not file.exists():
                file.write_bytes(models.tests()[0].onnx_mlp().SerializeToString(deterministic=True))
        batch = min(row.clients * row.streams, 64)
        command = [self.bench.tool("ort_loop"), f"--model={file}", f"--batch={batch}"]
        command.append(f"--seconds={self.bench.seconds}")
        return json.loads(tools.run_pinned(command, self.bench.server_core, timeout=60))

    def stop(self):
        for echo in self.echoes.values():
            echo.stop()
