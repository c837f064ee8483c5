# SPDX-License-Identifier: Apache-2.0
"""Where the server connects to (S30): to what its operator names, and to nothing to which that redirects it; and nothing
that a request says makes it connect anywhere."""

import base64
import contextlib
import json
import socket

import grpc
import pytest
from harness import models, object_stores, openai_models, python_models, s3, tokens, wire
from harness import server as servers
from harness.remote_models import start_failing
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

EXPLICIT = ["--model-control-mode=explicit"]


class Trap:
    """A port of this machine to which nobody must connect, as if it were a service behind a firewall."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.address}/latest/meta-data"

    def visits(self):
        """How many have connected, whether they sent something or not."""
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.accept()[0].close()
                count += 1
        return count


@pytest.fixture
def trap():
    made = Trap()
    yield made
    visits = made.visits()
    made.socket.close()
    assert visits == 0


# --- Redirections -----------------------------------------------------------------------------


class Redirector(object_stores.HttpServer):
    """Sends whoever asks for anything to the trap."""

    def __init__(self, status, target):
        class Handler(object_stores.QuietHandler):
            def do_GET(self):
                self.body()
                self.server.asked += 1
                self.respond(status, b"{}", {"Location": target})

            do_POST = do_HEAD = do_PUT = do_GET

        self.asked = 0
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]


@pytest.fixture(params=[301, 302, 303, 307, 308])
def redirector(request, trap):
    made = Redirector(request.param, trap.url)
    yield made
    made.stop()


def test_the_trap_sees_who_connects(trap):
    for _ in range(3):
        socket.create_connection(("127.0.0.1", trap.port)).close()
    assert trap.visits() == 3


@pytest.mark.parametrize("kind", ["s3", "gs", "as"])
def test_object_stores_do_not_redirect_the_server(start_server, tmp_path, redirector, kind):
    if kind == "s3":
        url = f"s3://http://127.0.0.1:{redirector.port}/bucket"
        environment = s3.environment(tmp_path / "cache", tmp_path)
    else:
        fake = (object_stores.FakeGoogle if kind == "gs" else object_stores.FakeAzure)()
        url = fake.url("bucket", redirector.port)
        environment = fake.environment(tmp_path / "cache", tmp_path, redirector.port)
    log = start_failing(start_server, url, env=environment)
    assert redirector.asked > 0
    assert any(str(status) in log for status in (301, 302, 303, 307, 308)), log


def test_an_issuer_of_tokens_does_not_redirect_the_server(start_server, empty_repository, tmp_path, redirector):
    issuer = tokens.Issuer(tmp_path)
    url = f"http://127.0.0.1:{redirector.port}/jwks"
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"tokens": [issuer.rule(url, {"x": ["admin"]})]}))
    server = start_server(empty_repository, args=[f"--api-keys={file}"], env={"no_proxy": "127.0.0.1"})
    server.wait_for_match(f"the keys for tokens cannot be read: '{url}': HTTP status 30")
    # Nobody is let in meanwhile.
    fields = {"Authorization": f"Bearer {issuer.token('x')}"}
    assert wire.request(server, "GET", "/v2", headers=fields).status == 503
    assert redirector.asked > 0


def test_a_collector_of_traces_does_not_redirect_the_server(start_server, empty_repository, redirector):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    url = f"http://127.0.0.1:{redirector.port}/v1/traces"
    server = start_server(empty_repository, env={"no_proxy": "127.0.0.1"}, args=[
        "--trace-config=mode=opentelemetry", "--trace-config=rate=1", "--trace-config=level=TIMESTAMPS",
        f"--trace-config=opentelemetry,url={url}", "--trace-config=opentelemetry,bsp_schedule_delay=10"])  # fmt: skip
    body = '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}'
    assert wire.request(server, "POST", "/v2/models/m/infer", body).status == 200
    servers.wait_until(lambda: redirector.asked > 0, "spans to be sent")


def test_keys_from_elsewhere_need_tls(empty_repository, tmp_path):
    """What an operator may name: an issuer over https://, or one of this machine."""
    issuer = tokens.Issuer(tmp_path)
    for url in ("http://169.254.169.254/jwks", "http://id.example.com/jwks", "http://2130706433/jwks",
                "http://localhost.example.com/jwks", "http://127.0.0.1:80@id.example.com/jwks"):  # fmt: skip
        file = tmp_path / "keys.json"
        file.write_text(json.dumps({"tokens": [issuer.rule(url, {"x": ["admin"]})]}))
        run = servers.run_to_end([f"--model-repository={empty_repository}", f"--api-keys={file}"])
        assert run.returncode == 1 and "tokens[0].keys" in run.stdout, (url, run.stdout)


# --- What requests say --------------------------------------------------------------------------


def spellings(trap):
    """The trap's address in the forms that have got past filters, and files."""
    port = trap.port
    return [trap.url, f"http://[::ffff:127.0.0.1]:{port}/", f"http://2130706433:{port}/", f"http://localhost:{port}/",
            f"http://0x7f.1:{port}/", f"http://x@127.0.0.1:{port}/", f"s3://http://127.0.0.1:{port}/bucket/m",
            f"//127.0.0.1:{port}/", "file:///etc/passwd", "gs://bucket/m", "as://account/bucket/m"]  # fmt: skip


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    openai_models.write(repository)
    models.write_model(repository, "m", models.identity_config("FP32", [-1]))
    # Proxies and accounts of whoever runs the tests would hide where the server wants to go.
    environment = {**python_models.ENVIRONMENT, "no_proxy": "*", "AWS_EC2_METADATA_DISABLED": "true"}
    with servers.running(repository, args=[*EXPLICIT, "--load-model=chat", "--load-model=m", "--allow-client-shm=true"],
                         env=environment, log_dir=tmp_path_factory.mktemp("log")) as running:  # fmt: skip
        yield running


def post(server, path, body, headers=()):
    reply = wire.request(server, "POST", path, json.dumps(body).encode(), headers)
    assert reply.status < 504
    return reply


def test_pictures_of_chats_are_not_fetched(server, trap):
    for url in spellings(trap):
        content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}},
                   {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}},
                   {"type": "file", "file": {"file_data": url}}]  # fmt: skip
        reply = post(server, "/v1/chat/completions",
                     {"model": "chat", "messages": [{"role": "user", "content": content}]})
        # The model gets the address as it was written, or the request is refused.
        assert reply.status in (200, 400), reply
        assert "root:" not in reply.body.decode()


def config(**more):
    tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
    return {"backend": "identity", "max_batch_size": 0, "input": [{"name": "INPUT0", **tensor}],
            "output": [{"name": "OUTPUT0", **tensor}], **more}  # fmt: skip


def configs(url):
    """Every setting that names a file."""
    yield config(default_model_filename=url)
    yield config(output=[{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1], "label_filename": url}])
    yield config(backend="python", parameters={"EXECUTION_ENV_PATH": {"string_value": url}})
    yield config(parameters={"TRITON_BATCH_STRATEGY_PATH": {"string_value": url}},
                 dynamic_batching={}, max_batch_size=8)
    yield config(runtime=url)
    yield config(backend=url)
    yield config(platform=url, backend="")
    yield config(model_warmup=[{"name": "w", "inputs": {"INPUT0": {
        "data_type": "TYPE_FP32", "dims": [1], "input_data_file": url}}}])
    yield config(model_repository_agents={"agents": [{"name": "checksum", "parameters": {f"MD5:{url}": "0"}}]})
    yield config(model_repository_agents={"agents": [{"name": url}]})
    yield config(cc_model_filenames={"7.0": url})


def test_no_setting_of_a_configuration_makes_the_server_fetch(server, trap):
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for url in spellings(trap):
            for number, given in enumerate(configs(url)):
                name, text = f"m{number}", json.dumps(given)
                # Files that are looked for beside it are there.
                data = base64.b64encode(b"x").decode()
                post(server, f"/v2/repository/models/{name}/load",
                     {"parameters": {"config": text, "file:1/model.py": data}})  # fmt: skip
                request = pb.RepositoryModelLoadRequest(model_name=name)
                request.parameters["config"].string_param = text
                with contextlib.suppress(grpc.RpcError):
                    stub.RepositoryModelLoad(request, timeout=60 * servers.SLOWNESS)
                post(server, f"/v2/repository/models/{name}/unload", {})
    assert server.process.poll() is None
    assert "root:" not in server.log


def test_no_other_request_makes_the_server_connect(server, trap):
    for url in spellings(trap):
        encoded = url.replace("/", "%2F")
        post(server, f"/v2/repository/models/{encoded}/load", {})
        post(server, "/v2/repository/models/m/load", {"parameters": {f"file:{url}": "eA=="}})
        post(server, "/v2/repository/index", {"repository_name": url})
        post(server, f"/v2/repository/{encoded}/index", {})
        for name in ("opentelemetry-url", "url", "trace_mode", "trace_file"):
            post(server, "/v2/trace/setting", {name: url})
        post(server, "/v2/logging", {"log_file": url})
        post(server, "/v2/systemsharedmemory/region/r/register", {"key": url, "offset": 0, "byte_size": 8})
        post(server, "/v2/repository/models/m/traffic", {"shadow": {"model": url, "percent": 100}})
        headers = {"Host": trap.address, "X-Forwarded-Host": trap.address, "Referer": url, "Origin": url,
                   "traceparent": url, "X-Vertex-Ai-Triton-Redirect": url}  # fmt: skip
        post(server, "/v2/models/m/infer", {"id": url, "parameters": {"url": url}}, headers)
    # Absolute targets are for proxies, and this is none.
    with wire.Connection(server) as connection:
        connection.send(f"GET {trap.url} HTTP/1.1\r\nHost: {trap.address}\r\n\r\n".encode())
        assert connection.receive().status in (400, 404)
    with wire.Connection(server) as connection:
        connection.send(f"CONNECT {trap.address} HTTP/1.1\r\nHost: {trap.address}\r\n\r\n".encode())
        assert connection.receive().status >= 400
