# SPDX-License-Identifier: Apache-2.0
"""Starting wrongly: one clear line and exit status 1. And the flags that shape a start."""

import re
import socket
import urllib.request

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import Client

pytestmark = pytest.mark.usefixtures("require_server")


def error_lines(run):
    assert run.returncode == 1, run.stdout
    lines = [line for line in run.stdout.splitlines() if line.lower().startswith("error: ")]
    return lines


def only_error(run):
    lines = error_lines(run)
    assert len(lines) == 1, run.stdout
    return lines[0]


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


def ports():
    if not servers.REFERENCE:  # nobody else can be faster then
        return [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
    return [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), servers.free_ports(3))]


@pytest.mark.newer
def test_help_describes_every_flag_and_succeeds():
    run = servers.run_to_end(["--help"])
    assert run.returncode == 0
    for flag in (
        "--model-repository",
        "--backend-directory",
        "--http-port",
        "--grpc-port",
        "--metrics-port",
        "--http-address",
        "--http-thread-count",
        "--http-max-input-size",
        "--disable-auto-complete-config",
        "--strict-model-config",
        "--log-verbose",
        "--exit-on-error",
    ):
        assert flag in run.stdout


@pytest.mark.parametrize("off,on", [("http", "grpc"), ("grpc", "http")])
def test_a_service_that_is_off_may_have_any_port(start_server, repository, off, on):
    port = servers.free_ports(1)[0]
    args = [f"--allow-{off}=false", f"--{off}-port=-47", f"--{on}-port={port}"]
    server = start_server(repository, args=args, wait=False)
    name = {"http": "HTTPService", "grpc": "GRPCInferenceService"}
    servers.wait_until(lambda: f"Started {name[on]} at 127.0.0.1:{port}" in server.log, "it listens")
    assert f"Started {name[off]}" not in server.log


@pytest.mark.newer
@pytest.mark.parametrize(
    "args,mentions",
    [
        (["--no-such-flag"], ["--no-such-flag", "--help"]),
        (["--htp-port=1"], ["unknown flag '--htp-port'", "did you mean '--http-port'?"]),
        (["--grpc-use-tls=true"], ["did you mean '--grpc-use-ssl'?"]),
        (["--http-restricted-apis=health:k=secret"], ["did you mean '--http-restricted-api'?"]),
        (["--log-f=x"], ["ambiguous flag '--log-f'", "--log-format", "--log-file"]),
        ([], ["--model-repository"]),
        (["--model-repository=/nowhere/models"], ["/nowhere/models"]),
        (["--model-repository=/", "--http-port=many"], ["http-port", "many"]),
        (["--model-repository=/", "--http-port=70000"], ["http-port", "70000"]),
        (["--model-repository=/", "--log-info=perhaps"], ["log-info", "perhaps"]),
        (["--model-repository=/", "--http-max-input-size=0"], ["--http-max-input-size"]),
        (["--model-repository"], ["--model-repository"]),
        (["--model-repository=/", "--model-load-gpu-limit=-1:0.6"], ["expects device ID >= 0, got -1"]),
        (["--model-repository=/", "--model-load-gpu-limit=0:-0.4"],
         ["expects limit fraction to be in range [0.0, 1.0], got -0.4"]),
        (["--model-repository=/", "--model-load-gpu-limit=0:half"], ["--model-load-gpu-limit", "half"]),
        (["--model-repository=/", "--backend-config=a,b="], ["--backend-config option format is"]),
        (["--model-repository=/", "--http-port=5001", "--grpc-port=5001"], ["5001"]),
    ],
    ids=lambda value: " ".join(value) or "nothing",
)
def test_a_wrong_command_line_gives_one_line(args, mentions):
    # Ports of its own, should it come to listening; what stands later on the line wins.
    line = only_error(servers.run_to_end([*ports(), *args]))
    for part in mentions:
        assert part in line


@pytest.mark.newer
@pytest.mark.parametrize("service", ["http", "grpc", "metrics"])
def test_a_port_in_use(repository, service):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        args = [a for a in ports() if not a.startswith(f"--{service}-port")]
        args += [f"--{service}-port={port}", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
        args += [f"--model-repository={repository}", f"--backend-directory={servers.backends()}"]
        line = only_error(servers.run_to_end(args))
    assert str(port) in line
    assert "already in use" in line


@pytest.mark.newer
def test_a_bad_model_ends_the_start_unless_told_otherwise(repository, start_server):
    models.write_model(repository, "bad", 'backend: "no_such_backend"\n')
    args = [f"--model-repository={repository}", f"--backend-directory={servers.backends()}", *ports()]
    assert "failed to load all models" in only_error(servers.run_to_end(args))

    server = start_server(repository, args=["--exit-on-error=false"], wait=False)

    def good_model_is_ready():
        return server.is_live() and wire.request(server, "GET", "/v2/models/m/ready").status == 200

    servers.wait_until(good_model_is_ready, "the good model is ready")
    assert wire.request(server, "GET", "/v2/health/ready").status == 400


@pytest.mark.newer
def test_port_0_takes_a_free_port_and_logs_it(repository, tmp_path, start_server):
    args = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    server = start_server(repository, args=args, wait=False)
    services = ("HTTPService", "GRPCInferenceService", "Metrics Service")

    def logged():
        return [re.search(rf"Started {s} at [\d.]+:(\d+)", server.log) for s in services]

    servers.wait_until(lambda: all(logged()), "the log names the three ports")
    server.http_port, server.grpc_port, server.metrics_port = (int(m.group(1)) for m in logged())
    assert 0 not in (server.http_port, server.grpc_port, server.metrics_port)
    server.http = f"127.0.0.1:{server.http_port}"
    servers.wait_until(server.is_ready, "the server is ready")
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10) as reply:
        assert b"nv_inference_count" in reply.read()


@pytest.mark.parametrize("form", ["--id=mine", "--id mine"])
def test_the_server_can_be_named(repository, start_server, form):
    server = start_server(repository, args=form.split(" "))
    assert wire.request(server, "GET", "/v2").json()["name"] == "mine"


@pytest.mark.newer
def test_the_limit_of_bodies_can_be_set(repository, start_server):
    server = start_server(repository, args=["--http-max-input-size=1000"])
    body, headers = wire.infer_body([("INPUT0", "FP32", [200], b"\0" * 800)])
    assert wire.request(server, "POST", "/v2/models/m/infer", body, headers).status == 200
    reply = wire.request(server, "POST", "/v2/models/m/infer", b" " * 1200)
    assert reply.status == 400
    assert "request JSON size of 1200 bytes exceeds the maximum allowed input size of 1000" in reply.error


@pytest.mark.parametrize("service", ["http", "grpc", "metrics"])
def test_each_service_can_be_left_out(repository, start_server, service):
    server = start_server(repository, args=[f"--allow-{service}=false"], wait=False)
    address = {"http": server.http_port, "grpc": server.grpc_port, "metrics": server.metrics_port}

    def listens(name):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", address[name])) == 0

    others = [name for name in address if name != service]
    servers.wait_until(lambda: all(listens(name) for name in others), "the other services listen")
    assert not listens(service)


@pytest.mark.newer
def test_the_flags_for_thread_counts_are_accepted(repository, start_server):
    server = start_server(
        repository,
        args=[
            "--http-thread-count=1",
            "--grpc-infer-thread-count=4",
            "--grpc-infer-allocation-pool-size=16",
            "--log-verbose=0",
            "--log-info=true",
            "--strict-readiness=true",
            "--model-load-thread-count=2",
        ],
    )
    for kind in ("http", "grpc"):
        client = Client(kind, server)
        tensor = np.arange(4, dtype=np.float32)
        result = client.infer("m", [client.input("INPUT0", tensor, "FP32")])
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), tensor)
        client.close()
