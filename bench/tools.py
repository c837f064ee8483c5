# SPDX-License-Identifier: Apache-2.0
"""The three load generators. Each runs once against one server and gives a Sample.

All of them run on the client's core. `requests` is what the tool measured; the processor time is
divided by what the server itself counted, warm-up included.
"""

import csv
import dataclasses
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile


@dataclasses.dataclass
class Sample:
    per_second: float
    p50_us: float
    p99_us: float
    requests: int = 0


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


# --- http_load: ours, HTTP --------------------------------------------------------------------


def http_load(binary, port, core, row, seconds):
    command = [binary, f"--port={port}", f"--model={row.model}", f"--input={row.input}"]
    command += [f"--shape={','.join(map(str, row.shape))}", f"--connections={row.clients}"]
    command += [f"--seconds={seconds}", "--warmup=0.3"] + (["--json"] if row.json else [])
    result = json.loads(run_pinned(command, core, timeout=seconds + 60))
    return Sample(result["per_second"], result["p50_us"], result["p99_us"], result["all_requests"])


# --- h2load: nghttp2's, gRPC ------------------------------------------------------------------


def varint(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field(number, content):
    """A length-delimited field of a protobuf message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def infer_message(row):
    """A ModelInferRequest with one raw FP32 input, as gRPC frames it."""
    count = 1
    for dim in row.shape:
        count *= dim
    shape = b"".join(map(varint, row.shape))
    tensor = field(1, row.input.encode()) + field(2, b"FP32") + field(3, shape)
    message = field(1, row.model.encode()) + field(5, tensor) + field(7, b"\0" * (4 * count))
    return b"\0" + len(message).to_bytes(4, "big") + message


def h2load(port, core, row, count):
    """Unary calls: row.clients connections, row.streams calls at once on each."""
    with tempfile.TemporaryDirectory() as folder:
        body, log = pathlib.Path(folder, "body"), pathlib.Path(folder, "log")
        body.write_bytes(infer_message(row))
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
    return Sample(
        per_second, latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100], count
    )


# --- perf_analyzer: the reference's own -------------------------------------------------------


def perf_analyzer(peer, port, core, row, protocol):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.csv")
        command = [peer.perf_analyzer, "-m", row.model, "-i", protocol, "-u", f"127.0.0.1:{port}"]
        dims = row.shape[1:] if row.is_batched else row.shape
        command += ["--shape", f"{row.input}:{','.join(map(str, dims))}", "-b", 1]
        command += ["--concurrency-range", row.clients, "--percentile", 99, "-f", report]
        # Short windows: what it does after each takes the square of the requests in it, while more
        # come in, and against a fast server it never ends.
        command += ["--measurement-interval", 100]
        # Whether it is stable is judged over the rounds, not by the tool.
        command += ["-s", 999, "-r", 10, "--max-threads", 4]
        run_pinned(command, core, timeout=60, env=peer.perf_analyzer_env, memory_bytes=12 << 30)
        (line,) = csv.DictReader(report.read_text().splitlines())
    return Sample(
        float(line["Inferences/Second"]), float(line["p50 latency"]), float(line["p99 latency"])
    )
