# SPDX-License-Identifier: Apache-2.0
"""Servers behind files: unix:<path> in place of an address. And ports that several servers share."""

import os
import re
import signal
import socket
import stat
import subprocess

import numpy as np
import pytest
import tritonclient.grpc
from harness import certificates, models, wire
from harness import server as servers

pytestmark = pytest.mark.newer

INFER = "/v2/models/m/infer"
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'


class UnixConnection(wire.Connection):
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.buffer = b""


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


@pytest.fixture
def sockets(tmp_path_factory):
    """A folder with a short name, as paths of sockets are limited to 107 bytes."""
    return tmp_path_factory.mktemp("s")


def is_ready(path):
    try:
        with UnixConnection(path) as connection:
            return connection.request("GET", "/v2/health/ready").status == 200
    except OSError:
        return False


def start(start_server, repository, sockets, *args):
    server = start_server(
        repository,
        args=[f"--http-address=unix:{sockets}/http", f"--grpc-address=unix:{sockets}/grpc", *args],
        wait=False,
    )

    def ready():
        assert server.process.poll() is None, server.tail()
        return is_ready(sockets / "http")

    servers.wait_until(ready, "the server is ready")
    return server


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_both_protocols_on_unix_sockets(start_server, repository, sockets):
    server = start(start_server, repository, sockets)
    with UnixConnection(sockets / "http") as connection:
        for _ in range(3):
            reply = connection.request("POST", INFER, BODY)
            assert reply.json()["outputs"][0]["data"] == [1, 2]
    data = np.arange(500_000, dtype=np.float32)
    tensor = tritonclient.grpc.InferInput("INPUT0", [data.size], "FP32")
    tensor.set_data_from_numpy(data)
    with tritonclient.grpc.InferenceServerClient(f"unix:{sockets}/grpc") as client:
        assert np.array_equal(client.infer("m", [tensor]).as_numpy("OUTPUT0"), data)
    run = subprocess.run(["curl", "-sS", "--unix-socket", sockets / "http", "http://x/v2/health/live",
                          "-w", "%{http_code}"], capture_output=True, timeout=60)  # fmt: skip
    assert run.stdout == b"200", run.stderr
    # No port is open but that of the metrics, on this machine only.
    server.wait_for_log(f"Started HTTPService at unix:{sockets}/http")
    server.wait_for_log(f"Started GRPCInferenceService at unix:{sockets}/grpc")
    for port in (server.http_port, server.grpc_port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
    # The owner and their group, nobody else; and nothing is left behind.
    assert mode(sockets / "http") == mode(sockets / "grpc") == 0o660
    server.stop()
    assert os.listdir(sockets) == []


def test_tls_and_permissions_and_the_spelling_of_grpc(start_server, repository, sockets, tmp_path):
    authority = certificates.make(tmp_path, "authority")
    certificate = certificates.make(tmp_path, "server", authority)
    start(start_server, repository, sockets, f"--grpc-address=unix://{sockets}/g2", "--unix-socket-mode=600",
          "--grpc-use-ssl=true", f"--grpc-server-cert={certificate.cert}",
          f"--grpc-server-key={certificate.key}")  # fmt: skip
    assert mode(sockets / "http") == mode(sockets / "g2") == 0o600
    with tritonclient.grpc.InferenceServerClient(
        f"unix:{sockets}/g2", ssl=True, root_certificates=str(authority.cert),
        channel_args=[("grpc.ssl_target_name_override", "localhost")],
    ) as client:  # fmt: skip
        assert client.is_server_live()


def test_what_a_killed_server_left_is_replaced(start_server, repository, sockets):
    killed = start(start_server, repository, sockets)
    killed.signal(signal.SIGKILL)
    killed.process.wait()
    assert sorted(os.listdir(sockets)) == ["grpc", "http"]
    assert not is_ready(sockets / "http")
    server = start(start_server, repository, sockets)
    server.stop()
    assert os.listdir(sockets) == []


def test_nobodys_socket_or_file_is_taken_away(start_server, repository, sockets):
    def error(path):
        ports = [f"--{name}-port={port}" for name, port in zip(("grpc", "metrics"), servers.free_ports(2))]
        run = servers.run_to_end([f"--model-repository={repository}", f"--http-address=unix:{path}", *ports])
        assert run.returncode == 1
        return next(line for line in run.stdout.splitlines() if line.startswith("error: "))

    start(start_server, repository, sockets)
    used = sockets / "http"
    assert f"Unavailable - Socket 'unix:{used}' already in use" in error(used)
    assert is_ready(used)
    file = sockets / "file"
    file.write_text("precious")
    assert "a file that is not a socket is there" in error(file)
    (sockets / "link").symlink_to(used)
    assert "a file that is not a socket is there" in error(sockets / "link")
    assert file.read_text() == "precious" and is_ready(used)
    assert "No such file or directory" in error(sockets / "none" / "http")
    assert "it must have 1 to 107 bytes" in error("/" + "x" * 107)
    assert "it must have 1 to 107 bytes" in error("")


def test_one_path_serves_one_protocol(empty_repository, sockets):
    run = servers.run_to_end([f"--model-repository={empty_repository}", f"--http-address=unix:{sockets}/x",
                              f"--grpc-address=unix:{sockets}/x"])  # fmt: skip
    assert run.returncode == 1
    assert "cannot listen to HTTP requests and GRPC requests at the same path" in run.stdout


def test_a_server_that_ends_does_not_remove_its_successors_socket(start_server, repository, sockets):
    first = start(start_server, repository, sockets)
    for name in ("http", "grpc"):
        (sockets / name).unlink()
    start(start_server, repository, sockets)
    first.stop()
    assert is_ready(sockets / "http")


def test_servers_share_ports_when_all_of_them_say_so(start_server, repository):
    shared = ["--reuse-http-port=true", "--reuse-grpc-port=true", "--allow-metrics=false"]
    first = start_server(repository, args=[*shared, "--id=first"])
    ports = [f"--http-port={first.http_port}", f"--grpc-port={first.grpc_port}"]
    second = start_server(repository, args=[*shared, *ports, "--id=second"], wait=False)
    servers.wait_until(lambda: re.search("Started HTTPService", second.log), "the second server listens")
    servers.wait_until(lambda: {"first", "second"} == {
        wire.request(first, "GET", "/v2").json()["name"] for _ in range(40)}, "both answer")  # fmt: skip
    refused = servers.run_to_end([f"--model-repository={repository}", *ports, "--http-address=127.0.0.1",
                                  "--grpc-address=127.0.0.1", "--allow-metrics=false"])  # fmt: skip
    assert refused.returncode == 1
    assert f"'127.0.0.1:{first.grpc_port}' already in use" in refused.stdout
