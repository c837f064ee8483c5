# SPDX-License-Identifier: Apache-2.0
"""Runs loads against the servers in turns and collects what they cost."""

import dataclasses
import itertools
import os
import pathlib
import shutil
import statistics
import sys
import time

import models
import shared_memory
import tools
from peer import Peer
from process import Server, Side


def note(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    """The sides, the folder for everything temporary, and what went wrong."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, pathlib.Path(folder)
        cores = sorted(os.sched_getaffinity(0))
        self.server_core, self.client_core = cores[0], cores[1 % len(cores)]
        self.rounds, self.seconds = arguments.rounds, arguments.seconds
        self.skipped, self.failures, self.versions = [], [], {}
        if len(cores) == 1:
            self.skipped.append("only one core: server and client share it, the figures are not comparable")
        self._numbers = itertools.count()
        self.peer = self._find_peer()
        self.sides = self._find_sides()

    def _find_peer(self):
        if self.arguments.no_reference:
            return None
        try:
            return Peer(self.arguments.peer).install()
        except Exception as error:
            self.skipped.append(f"the reference could not be installed ({error}): ours is measured alone")
            return None

    def _find_sides(self):
        arguments, sides = self.arguments, []
        if pathlib.Path(arguments.server).exists():
            sides.append(Side("nereid", arguments.server, arguments.backends, arguments.args.split()))
        else:
            self.skipped.append(f"no server at {arguments.server}: the reference is measured alone")
        if self.peer is None:
            return sides
        binary, env = arguments.reference or self.peer.server, self.peer.server_env
        backends = self.peer.backends(arguments.backends, self.new_folder("backends"))
        tuned = Side("reference", binary, backends, arguments.reference_args.split(), env)
        # What its release lacks cannot be tuned.
        for flag in ("--grpc-infer-thread-count=4", "--grpc-infer-allocation-pool-size=256"):
            if tuned.accepts(flag.split("=")[0]):
                tuned.args.append(flag)
        sides.append(tuned)
        if not arguments.no_defaults:
            sides.append(Side("defaults", binary, backends, [], env))
        for side in sides[1:]:
            if side.accepts("--cache-directory"):
                side.args.append(f"--cache-directory={self.peer.cache_directory}")
        return sides

    def new_folder(self, name):
        path = self.folder / f"{name.replace(' ', '-')}-{next(self._numbers)}"
        path.mkdir()
        return path

    def has_onnx(self):
        return (pathlib.Path(self.arguments.backends) / "onnxruntime" / "libtriton_onnxruntime.so").exists()

    def start(self, side, repository, *args, is_lenient=False, cores=None):
        log = self.folder / f"{side.name}-{next(self._numbers)}.log"
        # Shared memory of clients, which newer releases allow only on demand.
        if side.accepts("--allow-client-shm"):
            args = ("--allow-client-shm=true", *args)
        server = Server(side, repository, cores or {self.server_core}, log, args, is_lenient=is_lenient)
        if side.name not in self.versions:
            self.versions[side.name] = server.version()
        return server

    def tool(self, name):
        return pathlib.Path(self.arguments.tools) / name

    def skip(self, what, why):
        line = f"{what}: {why}"
        if line not in self.skipped:
            self.skipped.append(line)
            note(f"skipped: {line}")

    def fail(self, what, why):
        self.failures.append(f"{what}: {why}")
        note(self.failures[-1])


class LoadRunner:
    """Measures one row on the servers that serve its models."""

    def __init__(self, bench, floors):
        self.bench, self.floors = bench, floors
        self.rates = {}  # of rows that an open loop goes by

    def missing_tool(self, row):
        if row.tool in ("http_load", "grpc_load") and not self.bench.tool(row.tool).exists():
            return f"no {self.bench.tool(row.tool)} (build the target {row.tool})"
        if row.tool == "h2load" and shutil.which("h2load") is None:
            return "h2load is not installed (package nghttp2-client)"
        if row.tool.startswith("perf_analyzer") and self.bench.peer is None:
            return "perf_analyzer comes with the reference"
        return None

    def run(self, row, servers):
        """The row's result, as it goes into the file; None when it could not be run at all."""
        missing = self.missing_tool(row)
        if missing:
            return self.bench.skip(row.key, missing)
        targets = {server.name: server for server in servers}
        for name, server in list(targets.items()):
            if not server.serves(row.model):
                self.bench.fail(row.key, f"{name} does not serve {row.model}")
                del targets[name]
        if row.rate_of:
            rate = self.rates.get(row.rate_of)
            if not rate:
                return self.bench.skip(row.key, f"the rate comes from {row.rate_of}, which was not measured")
            row = _with_option(row, f"--rate={0.7 * rate:.0f}")
        result = {"samples": {name: [] for name in targets}, "errors": {}, "options": list(row.options)}
        load = None
        if row.tool in ("http_load", "grpc_load"):
            load = tools.OwnLoad(row, self.bench.folder)
        floor = self.floors.prepare(row)
        last = {}
        if row.tool == "h2load":
            # Twice: the first run only says how fast to expect it.
            for _ in range(2):
                for name in list(targets):
                    self._try(row, load, name, targets, last, result)
        rounds = min(row.rounds or self.bench.rounds, self.bench.rounds)
        for i in range(rounds):
            names = list(targets)
            if i % 2 == 1:
                names.reverse()
            if i % 3 != 0:
                # The untuned one does not count and is measured less often.
                names = [name for name in names if name != "defaults"]
            for name in names:
                if self._try(row, load, name, targets, last, result):
                    result["samples"][name].append(last[name])
            sample = floor and floor(self, row, load)
            if sample:
                result["samples"].setdefault("floor", []).append(sample)
        return self._complete(row, result)

    def _complete(self, row, result):
        rates = {
            name: statistics.median(sample["per_second"] for sample in samples)
            for name, samples in result["samples"].items()
            if samples
        }
        # An open loop asks of both what the reference can do.
        if rates:
            self.rates[row.key] = rates.get("reference", next(iter(rates.values())))
        return result if rates or result["errors"] else None

    def _try(self, row, load, name, targets, last, result):
        if name not in targets:
            return False
        try:
            last[name] = self.measure(row, load, targets[name], last.get(name))
            return True
        except (tools.ToolError, OSError) as error:
            result["errors"][name] = str(error)
            self.bench.fail(row.key, f"{name}: {error}")
            del targets[name]
            return False

    def measure(self, row, load, server, last):
        """One measurement: a dictionary of figures."""
        # The load generators count what they send; perf_analyzer leaves it to the server.
        counts = row.tool.startswith("perf_analyzer")
        before = server.answered(row.model) if counts else 0
        batches = server.executions(row.model) if row.counts_batches and isinstance(server, Server) else None
        server.forget_peak()
        cpu, switches = server.cpu_seconds(), server.switches()
        sample = self.run_tool(row, load, server, last)
        cpu, switches = server.cpu_seconds() - cpu, server.switches() - switches
        if counts:
            sample["requests"] = sample["responses"] = server.answered(row.model) - before
        units = max(sample[f"{row.unit}s"], 1)
        sample["cpu_us"] = cpu * 1e6 / units
        sample["switches"] = switches / units
        sample["peak_mb"] = server.peak_bytes() / 1e6
        if row.unit == "response":
            sample["requests_per_second"] = sample["per_second"]
            sample["per_second"] = sample["responses_per_second"]
        if batches is not None:
            done = [after - was for after, was in zip(server.executions(row.model), batches)]
            sample["batch"] = done[0] / max(done[1], 1)
        return sample

    def run_tool(self, row, load, server, last):
        bench = self.bench
        if load is not None:
            port = server.http_port if row.tool == "http_load" else server.grpc_port
            return load.run(bench.tool(row.tool), port, bench.client_core, bench.seconds, bench.arguments.check)
        if row.tool == "h2load":
            # As many requests as fit into the time, by the last measurement of this side.
            rate = last["per_second"] if last else 50
            count = max(int(rate * bench.seconds), row.clients * row.streams * 4, 30)
            return tools.h2load(server.grpc_port, bench.client_core, row, count)
        protocol = row.tool.split("/")[1]
        port = server.http_port if protocol == "http" else server.grpc_port
        return tools.perf_analyzer(bench.peer, port, bench.client_core, row)


def _with_option(row, option):
    return dataclasses.replace(row, options=(*row.options, option))


def run_group(bench, runner, group, rows, done):
    """Starts the servers of a group of models and calls done(row, result) for each row."""
    repository = bench.new_folder(group)
    try:
        models.GROUPS[group](repository)
    except (ImportError, OSError) as error:
        return bench.skip(f"all rows of {group}", f"its models could not be made: {error}")
    servers, region = [], None

    def start(side):
        return bench.start(side, repository, *models.ARGUMENTS.get(group, []), is_lenient=True)

    try:
        for side in bench.sides:
            servers.append(start(side))
        if group == "shared memory":
            region = shared_memory.Regions(16 << 20)
            for server in servers:
                region.register(server)
        for row in rows:
            note(f"{time.strftime('%H:%M:%S')} row {row.number}: {row.key}")
            result = runner.run(row, servers)
            if result is not None:
                done(row, result)
            for i, server in enumerate(servers):
                if server.popen.poll() is not None:
                    bench.fail(row.key, f"{server.name} ended with {server.popen.returncode}:\n{server.tail()}")
                    servers[i] = start(server.side)
    except RuntimeError as error:
        bench.fail(group, error)
    finally:
        for server in servers:
            server.stop()
        if region is not None:
            region.close()
