# SPDX-License-Identifier: Apache-2.0
"""`nereid bench`: output, --json, comparison, report, and failures (docs/bench.md)."""

import contextlib
import html.parser
import http.server
import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import urllib.request

import numpy as np
import pytest
from harness import certificates, models
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SUCCESS, FAILURE, USAGE, UNREACHABLE = range(4)
MODEL = "idb_FP32"
DIGITS = models.EXAMPLES / "digits" / "1" / "model.onnx"
FEW = ["--requests", "30", "--rounds", "1", "--warmup", "10ms", "--concurrency", "1,3"]


def command(*args):
    return [str(servers.binary()), "bench", *map(str, args)]


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}


def bench(*args, expect=SUCCESS):
    done = subprocess.run(
        command(*args), capture_output=True, text=True, timeout=120 * servers.SLOWNESS, env=environment()
    )
    assert done.returncode == expect, (done.stdout, done.stderr)
    return done


def address(server, protocol="http"):
    where = ["--url", f"http://{server.http}"]
    return where if protocol == "http" else [*where, "-i", "grpc", "--grpc-url", server.grpc]


def succeeded(server, model):
    """How many requests the server says that the model has executed."""
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/stats", timeout=10) as reply:
        return json.load(reply)["model_stats"][0]["inference_stats"]["success"]["count"]


def rows(text):
    return [line.split() for line in text.splitlines()]


# --- a server of this repository ----------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_each_level_sends_the_requests_that_were_asked_for(server, protocol):
    before = succeeded(server, MODEL)
    result = json.loads(bench(MODEL, *FEW, *address(server, protocol), "--json").stdout)
    after = succeeded(server, MODEL)
    assert [level["concurrency"] for level in result["levels"]] == [1, 3]
    for level in result["levels"]:
        assert (level["mode"], level["requests"], level["failed"]) == ("closed", 30, 0)
        latency = level["latency_us"]
        assert 0 < latency["p50"]["value"] <= latency["p99"]["value"] <= latency["max"]
        assert level["requests_per_s"]["value"] > 0
        assert level["server"]["executions"] > 0 and level["server"]["batch"] >= 1
    # The warm-up, and one request before it to see whether the model takes it, do not count.
    assert after - before > 61
    assert result["protocol"] == {"http": "HTTP", "grpc": "gRPC"}[protocol]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_an_open_loop_sends_at_the_rate_that_was_asked_for(server, protocol):
    args = ["--rate", "200", "--distribution", "constant", "--duration", "1s", "--rounds", "2"]
    result = json.loads(bench(MODEL, *args, *address(server, protocol), "--json").stdout)
    (level,) = result["levels"]
    assert level["mode"] == "open" and level["rate"] == 200
    # Each request that was due in this second is counted, however busy the machine.
    assert 195 <= level["requests"] + level["unfinished"] + level["failed"] <= 205


def test_the_table_has_a_line_for_each_level(server):
    done = bench(MODEL, *FEW, *address(server))
    lines = rows(done.stdout)
    assert lines[0][:2] == ["LOAD", "REQ/S"] and lines[0][-4:] == ["ERRORS", "QUEUE", "COMPUTE", "BATCH"]
    assert [line[:2] for line in lines[1:3]] == [["concurrency", "1"], ["concurrency", "3"]]
    # No progress bar, as this is no terminal; only what makes the figures less than they seem.
    assert "█" not in done.stderr and "\x1b" not in done.stdout + done.stderr
    assert "p99 of 30 requests is a matter of luck" in done.stderr


def test_a_terminal_gets_a_progress_bar(server):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command(MODEL, "-d", "1s", "--rounds", "1", "-c", "1", *address(server)),
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**environment(), "TERM": "xterm"},
    )
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while part := os.read(leader, 4096):
            shown += part
    process.communicate(timeout=60)
    assert process.returncode == SUCCESS
    assert "measuring" in shown.decode() and "concurrency 1" in shown.decode()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_batches_are_made_of_one_row(server, protocol):
    done = bench(MODEL, *FEW, "-b", "4", "--shape", "INPUT0:1,7", *address(server, protocol), "--json")
    result = json.loads(done.stdout)
    assert result["inputs"] == "INPUT0 FP32 [4, 7]"
    assert result["batch_size"] == 4
    assert result["levels"][0]["server"]["batch"] >= 4


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_inputs_come_from_files_and_in_turn(server, protocol, tmp_path):
    np.save(tmp_path / "one.npy", np.ones((1, 3), np.float32))
    (tmp_path / "two.json").write_text("[[1, 2.5, -3]]")
    (tmp_path / "three.raw").write_bytes(np.ones(5, np.float32).tobytes())
    files = [f"--input=INPUT0=@{tmp_path / name}" for name in ("one.npy", "two.json", "three.raw")]
    result = json.loads(bench(MODEL, *files, *FEW, *address(server, protocol), "--json").stdout)
    assert result["inputs"] == "INPUT0 FP32 [1, 3]; 3 different requests"
    assert all(level["failed"] == 0 for level in result["levels"])


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("datatype", models.TYPES)
def test_inputs_of_every_type_are_generated(server, protocol, datatype):
    args = ["-n", "3", "--rounds", "1", "-c", "1", "--distinct", "3"]
    result = json.loads(bench(f"idb_{datatype}", *args, *address(server, protocol), "--json").stdout)
    assert result["levels"][0]["requests"] == 3


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_json_of_every_type_becomes_its_bytes(server, protocol):
    values = {"BOOL": "[true,false]", "BYTES": '["a","été"]', "FP16": "[0.5,-3]", "INT8": "[-128,127]"}
    for datatype, value in values.items():
        args = ["-n", "1", "--rounds", "1", "-c", "1", "--input", f"INPUT0=[{value}]"]
        bench(f"idb_{datatype}", *args, *address(server, protocol))


@pytest.fixture(scope="module")
def mutual_tls(tmp_path_factory):
    """The flags of a server with TLS that asks for certificates, and the options of a client that has one."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = certificates.make(folder, "authority")
    certificate = certificates.make(folder, "server", authority)
    client = certificates.make(folder, "client", authority)
    flags = []
    for protocol in ("http", "grpc"):
        flags += [f"--{protocol}-use-ssl=true", f"--{protocol}-use-ssl-mutual=true",
                  f"--{protocol}-server-cert={certificate.cert}", f"--{protocol}-server-key={certificate.key}",
                  f"--{protocol}-root-cert={authority.cert}"]  # fmt: skip
    return flags, ["--ca", authority.cert, "--cert", client.cert, "--key", client.key]


def test_tls_with_certificates_of_clients_works_over_both_protocols(empty_repository, start_server, mutual_tls):
    flags, options = mutual_tls
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository, args=flags, wait=False)
    url = f"https://localhost:{server.http_port}"
    health = [servers.binary(), "health", "--wait=30s", "--url", url, *options]
    assert subprocess.run(health, env=environment(), timeout=60 * servers.SLOWNESS).returncode == SUCCESS
    # Larger than a record of TLS, and than the buffers of sockets.
    large = ["--shape", "INPUT0=1000000", "-n", "5", "--rounds", "1", "-c", "2"]
    for extra in ([], ["-i", "grpc", "--grpc-url", f"https://localhost:{server.grpc_port}"]):
        result = json.loads(bench("m", *FEW, "--url", url, *options, *extra, "--json").stdout)
        assert [level["requests"] for level in result["levels"]] == [30, 30]
        result = json.loads(bench("m", *large, "--url", url, *options, *extra, "--json").stdout)
        assert (result["levels"][0]["requests"], result["levels"][0]["failed"]) == (5, 0)
    # The certificate names localhost only, and is not one of the system's.
    grpc = ["-i", "grpc", "--grpc-url", f"https://localhost:{server.grpc_port}"]
    done = bench("m", *FEW, "--url", url, *options[2:], *grpc, expect=UNREACHABLE)
    assert "certificate" in done.stderr or "no reply" in done.stderr


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_unix_sockets_are_addresses(empty_repository, start_server, tmp_path, protocol):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    flags = [f"--http-address=unix:{tmp_path}/http", f"--grpc-address=unix:{tmp_path}/grpc"]
    start_server(empty_repository, args=flags, wait=False)
    url = f"unix:{tmp_path}/http"
    health = [servers.binary(), "health", "--wait=30s", "--url", url]
    assert subprocess.run(health, env=environment(), timeout=60 * servers.SLOWNESS).returncode == SUCCESS
    extra = ["-i", "grpc", "--grpc-url", f"unix:{tmp_path}/grpc"] if protocol == "grpc" else []
    result = json.loads(bench("m", *FEW, "--url", url, *extra, "--json").stdout)
    assert result["levels"][1]["requests"] == 30


# --- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args,text",
    [
        (["--input", "INPUT0=@nowhere.npy"], "cannot read 'nowhere.npy'"),
        (["--input", "OTHER=[1]"], "there is no input 'OTHER'"),
        (["--input", 'INPUT0=["text"]'], '"text" is no FP32'),
        (["--input", "INPUT0=[1]", "--shape", "INPUT0=1,2"], "4 bytes do not make a tensor FP32 [1, 2]"),
        (["--shape", "INPUT0=1,x"], "expected sizes such as"),
        (["--batch-size", "1000000"], "the model takes batches of up to"),
        (["--batch-size", "0"], "expected 1 or more"),
        (["--concurrency", "0"], "expected numbers above 0"),
        (["--concurrency", "1.5"], "whole numbers"),
        (["--rate", "10:5"], "FROM:TO:STEP"),
        (["--parameter", "priority"], "expected NAME=VALUE"),
        (["--with", "new.json"], "--with needs --compare"),
        (["--compare", "nowhere.json"], "cannot read 'nowhere.json'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_any_load(server, args, text):
    done = bench(MODEL, *args, *address(server), "--json", expect=USAGE)
    assert text in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("option", ["--save", "--html"])
def test_a_file_that_cannot_be_written_is_refused_before_any_load(server, option, tmp_path):
    before = succeeded(server, MODEL)
    done = bench(MODEL, *FEW, option, tmp_path / "none" / "result", *address(server), expect=USAGE)
    assert f"cannot write '{tmp_path}/none/result': No such file or directory" in done.stderr
    assert done.stdout == "" and succeeded(server, MODEL) == before


def test_a_number_of_requests_is_sent_at_no_higher_rate_than_was_asked_for(server):
    levels = ["-n", "5", "--rate", "20", "--rounds", "2", "--distribution", "constant"]
    (level,) = json.loads(bench(MODEL, *levels, *address(server), "--json").stdout)["levels"]
    # Three requests in each round.
    assert level["requests"] == 6
    assert 0 < level["requests_per_s"]["value"] <= 20


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_what_the_model_refuses_is_said_in_its_words_before_any_load(server, protocol):
    done = bench(MODEL, "--shape", "INPUT0=1,2,3", *address(server, protocol), expect=FAILURE)
    assert "unexpected shape for input 'INPUT0'" in done.stderr


def test_an_unknown_model_is_named(server):
    done = bench("nobody", *address(server), expect=FAILURE)
    assert "nobody" in done.stderr


def test_no_server_for_grpc_has_the_exit_status_for_that(server):
    args = ["-i", "grpc", "--grpc-url", f"127.0.0.1:{servers.free_ports(1)[0]}"]
    done = bench(MODEL, *args, "--url", server.http, expect=UNREACHABLE)
    assert "there is no server at 127.0.0.1:" in done.stderr and "Connection refused" in done.stderr


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_server_that_dies_meanwhile_ends_the_run(empty_repository, start_server, protocol):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository)
    process = subprocess.Popen(
        command("m", "-d", "600s", "--rounds", "1", *address(server, protocol)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    servers.wait_until(
        lambda: succeeded(server, "m") > 10, "the load has begun"
    )
    server.process.kill()
    _, errors = process.communicate(timeout=60 * servers.SLOWNESS)
    assert process.returncode == UNREACHABLE, errors
    assert "there is no server at" in errors


def test_control_c_ends_the_run(server):
    before = succeeded(server, "idb_INT8")
    process = subprocess.Popen(
        command("idb_INT8", "-d", "600s", *address(server)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    servers.wait_until(
        lambda: succeeded(server, "idb_INT8") > before + 10, "the load has begun"
    )
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60 * servers.SLOWNESS)
    assert process.returncode == FAILURE
    assert "interrupted" in errors


# --- a server that fails as the test wants -------------------------------------------------------


class Unreliable(http.server.BaseHTTPRequestHandler):
    """Refuses every third request, and closes the connection of every fifth without a reply."""

    protocol_version = "HTTP/1.1"
    requests = 0
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def reply(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        tensor = {"name": "x", "datatype": "FP32", "shape": [2]}
        if self.path == "/v2/models/m":
            self.reply(200, {"name": "m", "platform": "", "inputs": [tensor], "outputs": [tensor]})
        else:
            self.reply(404, {"error": "not here"})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            Unreliable.requests += 1
            number = Unreliable.requests
        if number % 3 == 0:
            self.reply(500, {"error": 'no "luck"'})
        elif number % 5 == 0:
            self.close_connection = True
        else:
            self.reply(200, {})


@pytest.fixture
def unreliable():
    Unreliable.requests = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unreliable)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_errors_are_counted_by_their_text(unreliable):
    args = ["m", "-n", "29", "--rounds", "1", "--warmup", "0", "-c", "1", "--url", unreliable]
    done = bench(*args, "--json", expect=FAILURE)
    (level,) = json.loads(done.stdout)["levels"]
    # Requests 2 to 30, as the first one was sent before the load.
    assert level["requests"] == 15 and level["failed"] == 14
    assert "server" not in level
    counts = {error["text"]: error["count"] for error in level["errors"]}
    assert counts == {'no "luck"': 10, "the server closed the connection": 4}
    text = bench(*args, expect=FAILURE).stdout
    assert re.search(r"^concurrency 1 +\d+ +no \"luck\"$", text, re.M)


# --- files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(server, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "result.json"
    bench(MODEL, "-d", "600ms", "--warmup", "0", *address(server), "--save", path)
    return path


def with_rates(path, target, samples):
    """A copy of the result with other samples of the rate at each level."""
    document = json.loads(path.read_text())
    for level in document["levels"]:
        level["requests_per_s"] = {
            "value": sum(samples) / len(samples), "margin": 1, "samples": samples, "rounds": [],
        }  # fmt: skip
    target.write_text(json.dumps(document))
    return target


def test_a_result_compared_with_itself_shows_noise_only(saved):
    done = bench("--compare", saved, "--with", saved)
    assert "No difference beyond the noise of these measurements." in done.stdout
    comparison = json.loads(bench("--compare", saved, "--with", saved, "--json").stdout)["compared_with"]
    assert {level["requests_per_s"]["verdict"] for level in comparison["levels"]} == {"noise"}


def test_a_difference_counts_if_it_is_larger_than_the_noise(saved, tmp_path):
    before = with_rates(saved, tmp_path / "before.json", [100, 101, 99, 100, 102])
    after = with_rates(saved, tmp_path / "after.json", [120, 121, 119, 120, 122])
    noisy = with_rates(saved, tmp_path / "noisy.json", [120, 20, 300, 150, 10])
    done = bench("--compare", before, "--with", after)
    assert "Better at 3 of 3 levels, worse at none." in done.stdout
    assert "+19.9 % ±" in done.stdout
    assert "Worse at 3 of 3 levels" in bench("--compare", after, "--with", before).stdout
    assert "No difference beyond the noise" in bench("--compare", before, "--with", noisy).stdout


def test_what_else_differs_between_two_runs_is_said(saved, tmp_path):
    other = json.loads(saved.read_text())
    other["machine"] = "a mainframe"
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert "Beware: machine differs" in bench("--compare", tmp_path / "other.json", "--with", saved).stdout


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"nereid_bench": 2}', "text"])
def test_a_file_that_is_no_result_is_refused(saved, tmp_path, content):
    (tmp_path / "other.json").write_text(content)
    done = bench("--compare", tmp_path / "other.json", "--with", saved, expect=USAGE)
    assert "it is no result that 'nereid bench --save' has written" in done.stderr


class Links(html.parser.HTMLParser):
    """Collects what a page asks other places for, and its plots."""

    def __init__(self, text):
        super().__init__()
        self.links, self.plots, self.open = [], 0, []
        self.feed(text)

    def handle_startendtag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        self.plots += tag == "svg"
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_page_with_plots(saved, tmp_path):
    document = json.loads(saved.read_text())
    document["model"] = "<script>alert(1)</script>"
    (tmp_path / "result.json").write_text(json.dumps(document))
    bench("--compare", saved, "--with", tmp_path / "result.json", "--html", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    page = Links(text)
    assert page.links == [] and page.plots == 5 and page.open == []
    assert "<script" not in text and "prefers-color-scheme:dark" in text
    assert "Compared with the run of" in text and not re.search(r"\b(nan|inf)\b", text)


# --- a server for the duration ------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_file_is_served_for_the_duration(protocol):
    done = bench(DIGITS, *FEW, "-i", protocol, "--json")
    result = json.loads(done.stdout)
    assert result["model"] == "digits" and result["levels"][0]["requests"] == 30
    assert "for the duration" in done.stderr
    port = result["url"].rsplit(":", 1)[1]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(port)), 1).close()


def test_a_model_of_a_repository_is_served_for_the_duration():
    done = bench("digits", "--serve", models.EXAMPLES, *FEW, "--json")
    assert json.loads(done.stdout)["model"] == "digits"
    assert "name the one to measure" in bench("--serve", models.EXAMPLES, expect=USAGE).stderr


def test_a_file_that_cannot_be_served_is_said(tmp_path):
    (tmp_path / "broken.onnx").write_text("nothing")
    done = bench(tmp_path / "broken.onnx", expect=FAILURE)
    assert "broken" in done.stderr
