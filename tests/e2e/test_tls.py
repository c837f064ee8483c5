# SPDX-License-Identifier: Apache-2.0
"""TLS and mutual TLS on both protocols, and certificates that change while the server runs."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import urllib.request

import gevent.ssl
import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from harness import certificates, models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2, service_pb2_grpc

pytestmark = pytest.mark.newer

INFER = "/v2/models/m/infer"


def body_of(*numbers):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [len(numbers)], "data": numbers}
    return json.dumps({"inputs": [tensor]}).encode()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return certificates.make(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A client certificate of an authority that nobody here trusts."""
    folder = tmp_path_factory.mktemp("stranger")
    return certificates.make(folder, "stranger", certificates.make(folder, "other-authority"))


@pytest.fixture(scope="module")
def client_certificate(authority, tmp_path_factory):
    return certificates.make(tmp_path_factory.mktemp("client"), "client", authority)


@pytest.fixture(scope="module")
def model_repository(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    models.write_model(path, "m", models.identity_config("FP32", [-1]))
    return path


def flags(certificate, authority=None):
    """TLS on both ports; mutual with an authority."""
    lines = []
    for protocol in ("http", "grpc"):
        lines += [f"--{protocol}-use-ssl=true", f"--{protocol}-server-cert={certificate.cert}",
                  f"--{protocol}-server-key={certificate.key}"]  # fmt: skip
        if authority is not None:
            lines += [f"--{protocol}-use-ssl-mutual=true", f"--{protocol}-root-cert={authority.cert}"]
    return lines


class TlsConnection(wire.Connection):
    """wire.Connection over TLS."""

    def __init__(self, server, context, port=None):
        super().__init__(server) if port is None else self._connect(port)
        self.socket = context.wrap_socket(
            self.socket, server_hostname="localhost", suppress_ragged_eofs=False
        )

    def _connect(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.buffer = b""


def is_ready(server, context):
    assert server.process.poll() is None, server.tail()
    try:
        with TlsConnection(server, context) as connection:
            return connection.request("GET", "/v2/health/ready").status == 200
    except ConnectionError:
        return False


@contextlib.contextmanager
def tls_server(repository, args, context, log_dir):
    server = servers.start(repository, args=args, wait=False, log_dir=log_dir)
    try:
        servers.wait_until(lambda: is_ready(server, context), "the server is ready")
        yield server
    except BaseException:
        server.process.kill()
        server.process.wait()
        raise
    server.stop()


@pytest.fixture(scope="module")
def server(require_server, model_repository, authority, tmp_path_factory):
    certificate = certificates.make(tmp_path_factory.mktemp("server"), "server", authority)
    context = certificates.client_context(authority)
    log = tmp_path_factory.mktemp("log")
    with tls_server(model_repository, [*flags(certificate), "--log-verbose=1"], context, log) as running:
        yield running


@pytest.fixture(scope="module")
def mutual_server(require_server, model_repository, authority, client_certificate, tmp_path_factory):
    certificate = certificates.make(tmp_path_factory.mktemp("server"), "server", authority)
    context = certificates.client_context(authority, client_certificate)
    log = tmp_path_factory.mktemp("log")
    with tls_server(model_repository, flags(certificate, authority), context, log) as running:
        yield running


@pytest.fixture
def context(authority):
    return certificates.client_context(authority)


def http_options(authority, certificate=None):
    def make_context():
        made = gevent.ssl.create_default_context(cafile=str(authority.cert))
        if certificate is not None:
            made.load_cert_chain(certificate.cert, certificate.key)
        return made

    return {"ssl": True, "ssl_context_factory": make_context, "insecure": True}


def grpc_options(authority, certificate=None):
    options = {"ssl": True, "root_certificates": str(authority.cert)}
    if certificate is not None:
        options["private_key"] = str(certificate.key)
        options["certificate_chain"] = str(certificate.cert)
    return options


def echoes(client, module, data):
    tensor = module.InferInput("INPUT0", [data.size], "FP32")
    tensor.set_data_from_numpy(data)
    result = client.infer("m", [tensor])
    return np.array_equal(result.as_numpy("OUTPUT0"), data)


# --- clients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 4000, 3_000_000])
def test_published_clients_with_small_and_large_tensors(server, authority, context, count):
    data = np.arange(count, dtype=np.float32)
    with tritonclient.http.InferenceServerClient(server.http, **http_options(authority)) as client:
        assert client.is_server_live()
        assert echoes(client, tritonclient.http, data)
        assert echoes(client, tritonclient.http, data)
    with tritonclient.grpc.InferenceServerClient(
        server.grpc.replace("127.0.0.1", "localhost"), **grpc_options(authority)
    ) as client:
        assert client.is_server_live()
        assert echoes(client, tritonclient.grpc, data)
        assert echoes(client, tritonclient.grpc, data)

    async def asynchronous():
        for module, make in (
            (tritonclient.http, lambda: tritonclient.http.aio.InferenceServerClient(
                server.http, ssl=True, ssl_context=context)),
            (tritonclient.grpc, lambda: tritonclient.grpc.aio.InferenceServerClient(
                server.grpc, **grpc_options(authority))),
        ):  # fmt: skip
            async with make() as client:
                tensor = module.InferInput("INPUT0", [data.size], "FP32")
                tensor.set_data_from_numpy(data)
                result = await client.infer("m", [tensor])
                assert np.array_equal(result.as_numpy("OUTPUT0"), data)

    asyncio.run(asynchronous())


def test_a_large_request_that_is_refused_is_logged_by_its_id(server, authority):
    """Over TLS, nothing but the request keeps its message, which is given back to the system."""
    credentials = grpc.ssl_channel_credentials(authority.cert.read_bytes())
    options = [("grpc.max_send_message_length", -1)]
    count = 100_000_000
    message = service_pb2.ModelInferRequest(model_name="m", raw_input_contents=[bytes(count)])
    message.inputs.add(name="INPUT0", datatype="FP32", shape=[count // 4])
    message.parameters["priority"].int64_param = -5
    with grpc.secure_channel(server.grpc.replace("127.0.0.1", "localhost"), credentials, options) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for number in range(3):
            message.id = f"a large request, number {number}"
            with pytest.raises(grpc.RpcError) as caught:
                stub.ModelInfer(message, timeout=60 * servers.SLOWNESS)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            server.wait_for_log(message.id)
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live


def test_a_stream_over_tls(server, authority):
    answers = []
    data = np.arange(200_000, dtype=np.float32)
    with tritonclient.grpc.InferenceServerClient(server.grpc, **grpc_options(authority)) as client:
        client.start_stream(lambda result, error: answers.append((result, error)))
        tensor = tritonclient.grpc.InferInput("INPUT0", [data.size], "FP32")
        tensor.set_data_from_numpy(data)
        for _ in range(20):
            client.async_stream_infer("m", [tensor])
        client.stop_stream()
    assert len(answers) == 20
    assert all(error is None and np.array_equal(r.as_numpy("OUTPUT0"), data) for r, error in answers)


def test_many_connections_at_once(server, authority, context):
    data = np.arange(30_000, dtype=np.float32)
    head, headers = wire.infer_body([("INPUT0", "FP32", [data.size], data.tobytes())])

    def over_http(_):
        with TlsConnection(server, context) as connection:
            for _ in range(10):
                reply = connection.request("POST", INFER, body_of(1, 2), {"Accept-Encoding": "gzip"})
                assert reply.status == 200
                reply = connection.request("POST", INFER, head, headers)
                assert reply.json()["outputs"][0]["data"] == data.tolist()
        return True

    def over_grpc(_):
        with tritonclient.grpc.InferenceServerClient(server.grpc, **grpc_options(authority)) as client:
            return all(echoes(client, tritonclient.grpc, data) for _ in range(10))

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(over_http, range(16)))
        assert all(pool.map(over_grpc, range(16)))


def test_curl(server, authority):
    run = subprocess.run(
        ["curl", "-sS", "--cacert", authority.cert, "-H", "Expect: 100-continue", "--data-binary", "@-",
         "-w", " %{http_code} %{http_version}", f"https://localhost:{server.http_port}{INFER}"],
        input=body_of(1, 2, 3), capture_output=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    reply, status, version = run.stdout.decode().rsplit(" ", 2)
    assert json.loads(reply)["outputs"][0]["data"] == [1, 2, 3]
    assert (status, version) == ("200", "1.1")


# --- the connection ---------------------------------------------------------------------------


def test_requests_may_come_in_pieces_and_in_a_row(server, context):
    request = wire.encode("POST", INFER, body_of(1, 2))
    with TlsConnection(server, context) as connection:
        for byte in request:
            connection.send(bytes([byte]))
        assert connection.receive().status == 200
        connection.send(request * 50)
        for _ in range(50):
            assert connection.receive().json()["outputs"][0]["data"] == [1, 2]
        chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body_of(3)) + b"0\r\n\r\n"
        reply = connection.request("POST", INFER, chunked, {"Transfer-Encoding": "chunked"})
        assert reply.json()["outputs"][0]["data"] == [3]


def test_the_end_is_announced(server, context):
    # A cut connection and a whole one must look different to the client.
    with TlsConnection(server, context) as connection:
        assert connection.request("GET", "/v2", headers={"Connection": "close"}).status == 200
        assert connection.socket.recv(1) == b""


def test_a_client_that_reads_slowly_gets_everything(server, context):
    data = np.arange(2_000_000, dtype=np.float32)
    body, headers = wire.infer_body([("INPUT0", "FP32", [data.size], data.tobytes())],
                                    [{"name": "OUTPUT0", "parameters": {"binary_data": True}}])  # fmt: skip
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", server.http_port))
    connection = wire.Connection.__new__(wire.Connection)
    connection.buffer = b""
    with context.wrap_socket(raw, server_hostname="localhost") as connection.socket:
        connection.socket.settimeout(60)
        connection.send(wire.encode("POST", INFER, body, headers))
        reply = connection.receive()
        _, tail = wire.split_reply(reply)
        assert tail == data.tobytes()
        assert connection.request("GET", "/v2").status == 200


def test_a_client_that_leaves_early_harms_nobody(server, context):
    data = np.arange(2_000_000, dtype=np.float32)
    body, headers = wire.infer_body([("INPUT0", "FP32", [data.size], data.tobytes())])
    for _ in range(5):
        connection = TlsConnection(server, context)
        connection.send(wire.encode("POST", INFER, body, headers))
        connection.socket.recv(100)
        connection.socket.close()
    assert is_ready(server, context)


# --- the handshake ----------------------------------------------------------------------------


def test_versions_and_protocols(server, authority):
    def negotiate(port, alpn=(), **versions):
        context = certificates.client_context(authority)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        for name, version in versions.items():
            setattr(context, name, version)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        with socket.create_connection(("127.0.0.1", port), 10) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as tls:
                return tls.version(), tls.selected_alpn_protocol()

    http, grpc_port = server.http_port, server.grpc_port
    v12 = {"maximum_version": ssl.TLSVersion.TLSv1_2}
    assert negotiate(http, ["h2", "http/1.1"]) == ("TLSv1.3", "http/1.1")
    assert negotiate(http) == ("TLSv1.3", None)
    assert negotiate(http, **v12)[0] == "TLSv1.2"
    assert negotiate(grpc_port, ["h2"]) == ("TLSv1.3", "h2")
    assert negotiate(grpc_port, ["grpc-exp", "h2"], **v12) == ("TLSv1.2", "h2")
    for port, alpn in ((http, ["h2"]), (grpc_port, ["http/1.1"])):
        with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
            negotiate(port, alpn)
    for port in (http, grpc_port):
        with pytest.raises((ssl.SSLError, ConnectionError)), pytest.warns(DeprecationWarning):
            negotiate(port, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)


@pytest.mark.parametrize("data", [
    b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    b"\x16\x03\x01\xff\xff" + bytes(5000),
    b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\x00",
    os.urandom(3000),
], ids=["http", "h2", "long record", "bad hello", "noise"])  # fmt: skip
def test_what_is_not_tls_gets_no_answer(server, context, data):
    for port in (server.http_port, server.grpc_port):
        with socket.create_connection(("127.0.0.1", port), 10) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            received = b""
            with contextlib.suppress(ConnectionResetError):
                while more := raw.recv(4096):
                    received += more
            # At most an alert.
            assert len(received) <= 7 and b"HTTP" not in received
    assert is_ready(server, context)


def test_renegotiation_is_refused(server, authority, context):
    run = subprocess.run(
        ["openssl", "s_client", "-connect", server.http, "-tls1_2", "-CAfile", authority.cert],
        input=b"R\n", capture_output=True, timeout=60,
    )  # fmt: skip
    assert b"RENEGOTIATING" in run.stdout + run.stderr
    assert b"no renegotiation" in run.stdout + run.stderr
    assert is_ready(server, context)


def test_unfinished_handshakes_keep_no_memory(server, context):
    before = server.resident_bytes()
    hello = bytes.fromhex("1603010200010001fc0303")
    for _ in range(3):
        sockets = [socket.create_connection(("127.0.0.1", server.http_port)) for _ in range(200)]
        for raw in sockets:
            raw.sendall(hello)
        for raw in sockets:
            raw.close()
    assert is_ready(server, context)
    if not servers.is_sanitized():
        assert server.resident_bytes() - before < 32 << 20


# --- certificates of clients ------------------------------------------------------------------


def test_mutual_tls_takes_clients_with_a_certificate(mutual_server, authority, client_certificate):
    data = np.arange(100_000, dtype=np.float32)
    with tritonclient.http.InferenceServerClient(
        mutual_server.http, **http_options(authority, client_certificate)
    ) as client:
        assert echoes(client, tritonclient.http, data)
    with tritonclient.grpc.InferenceServerClient(
        mutual_server.grpc, **grpc_options(authority, client_certificate)
    ) as client:
        assert echoes(client, tritonclient.grpc, data)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("who", ["nobody", "stranger"])
def test_mutual_tls_refuses_everybody_else(mutual_server, authority, stranger, who, version):
    certificate = stranger if who == "stranger" else None
    context = certificates.client_context(authority, certificate)
    context.maximum_version = version
    for port in (mutual_server.http_port, mutual_server.grpc_port):
        # With TLS 1.3 the client is told when it first reads.
        with pytest.raises((ssl.SSLError, ConnectionError)):
            with TlsConnection(mutual_server, context, port) as connection:
                connection.send(wire.encode("GET", "/v2/health/live"))
                assert connection.socket.recv(1) == b""
                raise ConnectionError("closed")
    options = grpc_options(authority, certificate)
    with tritonclient.grpc.InferenceServerClient(mutual_server.grpc, **options) as client:
        with pytest.raises(Exception, match="(?i)ssl|handshake|reset|closed|connect"):
            client.is_server_live()


# --- changing certificates --------------------------------------------------------------------


def common_name(server, context):
    with TlsConnection(server, context) as connection:
        return dict(field[0] for field in connection.socket.getpeercert()["subject"])["commonName"]


def replace(certificate, by):
    """As careful operators do: a new file under the old name."""
    for old, new in ((certificate.key, by.key), (certificate.cert, by.cert)):
        shutil.copy(new, f"{old}.new")
        os.replace(f"{old}.new", old)


def tls_metrics(server, grpc_client=None):
    """Whether all files are in use, and how many reloads went well and did not; after a look of the gRPC port."""
    if grpc_client is not None:
        with tritonclient.grpc.InferenceServerClient(server.grpc, **grpc_client) as client:
            assert client.is_server_live()
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    names = ["files_good", 'reloads_total{result="success"}', 'reloads_total{result="failure"}']
    return tuple(int(re.search(rf"^nereid_tls_{re.escape(name)} (\d+)$", text, re.M).group(1)) for name in names)


def test_changed_certificates_are_taken_up(require_server, model_repository, authority, context, tmp_path):
    certificate = certificates.make(tmp_path, "first", authority)
    other = certificates.make(tmp_path, "second", authority)
    third = certificates.make(tmp_path, "third", authority)
    with tls_server(model_repository, flags(certificate), context, tmp_path) as server:
        assert common_name(server, context) == "first"
        with TlsConnection(server, context) as old, tritonclient.grpc.InferenceServerClient(
            server.grpc, **grpc_options(authority)
        ) as old_grpc:
            assert old_grpc.is_server_live()
            assert tls_metrics(server) == (1, 0, 0)
            replace(certificate, other)
            servers.wait_until(lambda: common_name(server, context) == "second", "the new certificate")
            good, successes, _ = tls_metrics(server)
            assert good == 1 and successes >= 1

            # A key that does not belong to the certificate, and no key at all.
            shutil.copy(third.key, certificate.key)
            servers.wait_until(lambda: common_name(server, context) == "second"
                               and "the old ones stay in use" in server.log, "the log")  # fmt: skip
            certificate.key.unlink()
            certificate.cert.write_text("nonsense")
            servers.wait_until(lambda: common_name(server, context) == "second"
                               and server.log.count("the old ones stay in use") >= 2, "the log")  # fmt: skip
            good, _, failures = tls_metrics(server)
            assert good == 0 and failures == server.log.count("the old ones stay in use")

            replace(certificate, third)
            servers.wait_until(lambda: common_name(server, context) == "third", "the third certificate")
            servers.wait_until(lambda: tls_metrics(server, grpc_options(authority))[0] == 1, "files in use everywhere")
            # Connections live on.
            assert old.request("GET", "/v2").status == 200
            assert old_grpc.is_server_live()
            with tritonclient.grpc.InferenceServerClient(server.grpc, **grpc_options(authority)) as client:
                assert client.is_server_live()


# --- starting wrongly -------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_start_with_faulty_files_says_which(require_server, empty_repository, authority, tmp_path, protocol):
    good = certificates.make(tmp_path, "good", authority)
    other = certificates.make(tmp_path, "other", authority)
    locked = tmp_path / "locked.key"
    subprocess.run(["openssl", "ec", "-in", good.key, "-aes256", "-passout", "pass:x", "-out", locked],
                   check=True, capture_output=True)  # fmt: skip

    def error(cert=None, key=None, root=None, mutual=False):
        given = {"server-cert": cert, "server-key": key, "root-cert": root,
                 "use-ssl": "true", "use-ssl-mutual": str(mutual).lower()}  # fmt: skip
        ports = servers.free_ports(3)
        run = servers.run_to_end(
            [f"--model-repository={empty_repository}"]
            + [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports)]
            + [f"--{protocol}-{name}={value}" for name, value in given.items() if value is not None]
        )
        assert run.returncode == 1
        return run.stdout

    needs = f"--{protocol}-use-ssl needs --{protocol}-server-cert and --{protocol}-server-key"
    assert needs in error() and needs in error(cert=good.cert) and needs in error(key=good.key)
    assert f"--{protocol}-use-ssl-mutual needs --{protocol}-root-cert" in error(
        good.cert, good.key, mutual=True
    )
    assert "server certificate '/nowhere/cert': No such file" in error("/nowhere/cert", good.key)
    assert f"server certificate '{good.key}': " in error(good.key, good.key)
    assert "server key '/nowhere/key': No such file" in error(good.cert, "/nowhere/key")
    assert f"server key '{other.key}': key values mismatch" in error(good.cert, other.key)
    # Nobody is asked for a password.
    assert f"server key '{locked}': " in error(good.cert, locked)
    assert f"root certificate '{good.key}': " in error(good.cert, good.key, good.key, mutual=True)


def test_tls_of_one_protocol_leaves_the_other_plain(start_server, model_repository, authority, tmp_path):
    certificate = certificates.make(tmp_path, "server", authority)
    server = start_server(model_repository, args=[f for f in flags(certificate) if "grpc" in f])
    assert wire.request(server, "GET", "/v2").status == 200
    with tritonclient.grpc.InferenceServerClient(server.grpc, **grpc_options(authority)) as client:
        assert client.is_server_live()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        with pytest.raises(Exception) as refused:
            client.is_server_live(client_timeout=10)
        assert refused.value.status() in (
            f"StatusCode.{grpc.StatusCode.UNAVAILABLE.name}",
            f"StatusCode.{grpc.StatusCode.DEADLINE_EXCEEDED.name}",
        )
