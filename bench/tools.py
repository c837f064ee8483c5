# SPDX-License-Identifier: Apache-2.0
"""The load generators. Each runs once, on the client's core, against one server, and gives its figures.

The figures of a load generator: requests and responses (all of them, warm-up included), per_second,
responses_per_second, p50_us, p99_us, lost, and what the tool says besides.
"""

import csv
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile


class ToolError(RuntimeError):
    pass


def run_pinned(command, core, timeout, env=None, memory_bytes=None):
    def prepare():
        os.sched_setaffinity(0, {core})
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))

    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
            preexec_fn=prepare,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{pathlib.Path(command[0]).name} did not end in {timeout} s")
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        raise ToolError(f"{pathlib.Path(command[0]).name}: {' '.join(lines[-3:])[:400]}")
    return done.stdout


# --- Ours: http_load and grpc_load ------------------------------------------------------------


class OwnLoad:
    """A load of http_load or grpc_load: its files are written once and used in every round."""

    def __init__(self, row, folder):
        self.row = row
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.is_http = row.tool == "http_load"
        bodies = [self._encode(request) for request in row.make()]
        flags = ["body" if self.is_http else "message", "middle", "last"]
        self.files = []
        for flag, (body, head) in zip(flags, bodies):
            (self.folder / flag).write_bytes(body)
            self.files.append(f"--{flag}={self.folder / flag}")
            if self.is_http:
                self.files.append(f"--{flag}-head={head}".replace("body-", ""))
        if self.is_http:
            self.files += [f"--path={path}" for path in row.paths()]

    def _encode(self, request):
        if not self.is_http:
            return request.grpc(), 0
        form = {"binary": request.http, "json": request.http_json, "sse": request.generate}
        return form[self.row.form]()

    def options(self, seconds):
        row = self.row
        options = [f"--connections={row.clients}", *row.options]
        if not self.is_http:
            options.append(f"--streams={row.streams}")
            if row.is_streaming:
                options.append("--stream")
        if not any(option.startswith("--requests=") for option in options):
            options += [f"--seconds={seconds}", f"--warmup={min(0.3, seconds / 2)}"]
        return options

    def run(self, binary, port, core, seconds, check=False):
        command = [binary, f"--port={port}", *self.files, *self.options(seconds)]
        answer = self.folder / "answer"
        if check:
            command += ["--check", f"--answer={answer}"]
        result = json.loads(run_pinned(command, core, timeout=seconds + 90))
        result["requests_measured"] = result["requests"]
        result["requests"] = result.pop("all_requests")
        if result["requests"] == 0:
            raise ToolError("no request was answered")
        if check and self.row.expected is not None:
            self._check_answer(answer.read_bytes())
        return result

    def _check_answer(self, answer):
        if not self.row.expected(answer, self.is_http):
            raise ToolError(f"a wrong answer: {answer[:300]!r}")


# --- h2load: nghttp2's, gRPC ------------------------------------------------------------------


def h2load(port, core, row, count):
    """Unary calls: row.clients connections, row.streams calls at once on each."""
    with tempfile.TemporaryDirectory() as folder:
        body, log = pathlib.Path(folder, "body"), pathlib.Path(folder, "log")
        message = row.make()[0].grpc()
        body.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
        command = ["h2load", "-n", count, "-c", row.clients, "-m", row.streams, "-d", body]
        # Large windows: what is measured is the server, not the client's small default.
        command += ["-w", "24", "-W", "26", f"--log-file={log}"]
        command += ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        command.append(f"http://127.0.0.1:{port}/inference.GRPCInferenceService/ModelInfer")
        text = run_pinned(command, core, timeout=180)
        if f"{count} succeeded" not in text:
            raise ToolError("h2load: " + " ".join(re.findall(r"^requests:.*|^status codes:.*", text, re.M)))
        per_second = float(re.search(r"finished in .*?, ([\d.]+) req/s", text).group(1))
        latencies = sorted(int(line.split("\t")[2]) for line in log.read_text().splitlines())
    return {
        "requests": count,
        "responses": count,
        "per_second": per_second,
        "p50_us": latencies[len(latencies) // 2],
        "p99_us": latencies[len(latencies) * 99 // 100],
        "lost": 0,
    }


# --- perf_analyzer: the reference's own -------------------------------------------------------


def perf_analyzer(peer, port, core, row):
    tensor = row.make()[0].tensors[0]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.csv")
        protocol = row.tool.split("/")[1]
        command = [peer.perf_analyzer, "-m", row.model, "-i", protocol, "-u", f"127.0.0.1:{port}"]
        dims = tensor.shape[1:] if row.is_batched else tensor.shape
        command += ["--shape", f"{tensor.name}:{','.join(map(str, dims))}", "-b", 1]
        command += ["--concurrency-range", row.clients, "--percentile", 99, "-f", report]
        # Short windows: what it does after each takes the square of the requests in it, while more
        # come in, and against a fast server it never ends.
        command += ["--measurement-interval", 100]
        # Whether it is stable is judged over the rounds, not by the tool.
        command += ["-s", 999, "-r", 10, "--max-threads", 4]
        run_pinned(command, core, timeout=60, env=peer.perf_analyzer_env, memory_bytes=12 << 30)
        (line,) = csv.DictReader(report.read_text().splitlines())
    return {
        "per_second": float(line["Inferences/Second"]),
        "p50_us": float(line["p50 latency"]),
        "p99_us": float(line["p99 latency"]),
        "lost": 0,
    }
