# SPDX-License-Identifier: Apache-2.0
"""The bench itself: a light row of each kind runs, every request is answered rightly and none is lost.

Nothing here looks at a time. That the load generators notice what goes wrong is tried with servers
that do it wrong.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest
from harness import server as servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = servers.build_folder() / "bench"

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(servers.is_sanitized(), reason="what is measured is the optimised build"),
]


@pytest.fixture(scope="module")
def results(require_server, tmp_path_factory):
    """The file of a quick run."""
    file = tmp_path_factory.mktemp("bench") / "results.json"
    command = [sys.executable, ROOT / "bench" / "run", "--quick", "--no-reference", "--seconds", "0.2"]
    command += ["--server", servers.binary(), "--backends", servers.backends(), "--tools", TOOLS]
    command += ["--json", file]
    env = {**os.environ, "NEREID_BENCH_PYTHON": "1"}
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=600)
    assert file.exists(), run.stderr[-3000:]
    content = json.loads(file.read_text())
    assert content["failures"] == [], run.stderr[-3000:]
    assert run.returncode == 0
    return content


def test_a_quick_run_has_a_row_of_each_kind(results):
    measured = {row["row"] for row in results["rows"]}
    onnx = set() if servers.has_backend("onnxruntime") else {6, 9}
    assert measured | onnx == set(range(1, 14))
    for row in results["rows"]:
        assert len(row["samples"]["nereid"]) == 1, row["key"]


def test_a_quick_run_loses_nothing(results):
    for row in results["rows"]:
        (sample,) = row["samples"]["nereid"]
        assert sample.get("lost", 0) == 0, row["key"]
        assert not sample.get("stalled", False), row["key"]
        assert sample["per_second"] > 0, row["key"]
        if "requests" in sample:
            responses = 100 if row["row"] == 10 else 1
            assert sample["responses"] == responses * sample["requests"], row["key"]
            assert sample["cpu_us"] > 0, row["key"]


def test_the_file_tells_on_what_and_how_it_was_measured(results):
    assert results["machine"]["cores"] == os.cpu_count()
    assert results["sides"]["nereid"] == {"arguments": []}
    assert "--quick" in results["command"]
    assert results["commit"] is not None


def test_the_report_goes_between_the_markers_and_keeps_the_rest(results, tmp_path):
    file, document = tmp_path / "results.json", tmp_path / "performance.md"
    file.write_text(json.dumps(results))
    document.write_text("before\n<!-- results: begin -->\nold\n<!-- results: end -->\nafter\n")
    for _ in range(2):
        subprocess.run([ROOT / "bench" / "report", "--document", document, file], check=True)
    text = document.read_text()
    assert text.startswith("before\n<!-- results: begin -->\n") and "old" not in text
    assert text.endswith("\n<!-- results: end -->\nafter\n")
    assert "### 10. Decoupled streams" in text and "bench/run" in text
    assert (tmp_path / "performance" / "cpu.svg").read_text().startswith("<svg")


# --- What the load generators notice ----------------------------------------------------------


class Answering:
    """A server for one connection that answers each request with the next of the given texts."""

    def __init__(self, *answers):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.answers, self.requests = answers, []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        connection, _ = self.socket.accept()
        with connection:
            for answer in self.answers:
                request = b""
                while not request.endswith(b"BODY"):
                    request += connection.recv(65536) or b"BODY"
                self.requests.append(request)
                connection.sendall(answer)
            connection.recv(1)


def answer(body, status="200 OK"):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def chunked(*chunks, kind="text/plain"):
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk.encode()) for chunk in chunks)


def events(*chunks):
    return chunked(*chunks, kind="text/event-stream; charset=utf-8")


def load(tmp_path, server, *options):
    body = tmp_path / "body"
    body.write_text("BODY")
    command = [TOOLS / "http_load", f"--port={server.port}", "--path=/x", f"--body={body}", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)


def test_http_load_counts_events_wherever_they_are_cut(tmp_path):
    server = Answering(events("da", "ta: 1\n\nd", "ata: 2\n\ndata: 3\n\n", ""))
    result = json.loads(load(tmp_path, server, "--requests=1", "--responses=3").stdout)
    assert (result["responses"], result["lost"]) == (3, 0)


def test_http_load_tells_of_events_that_an_answer_lacks(tmp_path):
    server = Answering(events("data: 1\n\n", "data: 2\n\n", ""))
    result = json.loads(load(tmp_path, server, "--requests=1", "--responses=5").stdout)
    assert (result["responses"], result["lost"], result["stalled"]) == (2, 3, False)


def test_http_load_tells_of_an_answer_that_does_not_end(tmp_path):
    server = Answering(events("data: 1\n\n"))
    result = json.loads(load(tmp_path, server, "--requests=1", "--responses=5", "--stall=3").stdout)
    assert (result["all_requests"], result["lost"], result["stalled"]) == (0, 4, True)


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ([answer("same"), answer("other")], "an answer of another length"),
        ([answer("same"), answer("some")], "another answer than the first"),
        ([answer("same"), answer("no", "503 Service Unavailable")], "503"),
        ([answer("same")], "the server closed a connection"),
        ([answer("same") + b"x"], "longer than it says"),
    ],
)
def test_http_load_refuses_wrong_answers(tmp_path, answers, complaint):
    run = load(tmp_path, Answering(*answers), "--requests=2", "--check", "--stall=5")
    assert run.returncode == 1 and complaint in run.stderr


def test_http_load_takes_an_answer_in_chunks_for_one_answer(tmp_path):
    server = Answering(chunked("[1, ", "2]", ""), chunked("[1, 2]", ""))
    run = load(tmp_path, server, "--requests=2", "--check", f"--answer={tmp_path / 'answer'}")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["responses"] == 2
    assert (tmp_path / "answer").read_text() == "[1, 2]"


def test_http_load_sends_the_headers_that_it_is_given_and_accepts_any_length_on_demand(tmp_path):
    server = Answering(answer("1"), answer("1.25"))
    options = ["--requests=2", "--header=Content-Type: application/json", "--header=X-Other: 1", "--any-length"]
    run = load(tmp_path, server, *options)
    assert run.returncode == 0, run.stderr
    head = server.requests[0].partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert b"Content-Type: application/json" in head and b"X-Other: 1" in head


def test_a_load_generator_needs_a_server(tmp_path):
    (tmp_path / "message").write_bytes(b"")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    command = [TOOLS / "grpc_load", f"--port={port}", f"--message={tmp_path / 'message'}"]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and f"port {port}: Connection refused" in run.stderr
