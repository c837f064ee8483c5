# SPDX-License-Identifier: Apache-2.0
"""--api-keys: every route and every RPC with every scope, by each kind of credential, on each
listener; then what happens to keys, tokens and streams while the server runs."""

import hashlib
import http.client
import itertools
import json
import time
from multiprocessing import shared_memory

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from harness import certificates, files, models, tokens
from harness import server as servers
from harness.routes import CONSOLE_ROUTES, CONTROL_SCOPES, GRANTABLE_SCOPES, ROUTES, RPCS, scope_of

pytestmark = pytest.mark.newer

HTTP_ROUTES = [(method, path, scope_of(category, path)) for category, all in ROUTES.items() for method, path in all]
GRPC_ROUTES = [(rpc, scope_of(category, rpc)) for category, all in RPCS.items() for rpc in all]
BODY = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
).encode()
# Wrong credentials are counted by address, so those who try them have addresses of their own.
ADDRESSES = (f"127.0.{n // 200 + 1}.{n % 200 + 1}" for n in itertools.count())


def digest(key):
    return hashlib.sha256(key.encode()).hexdigest()


def key_of(scope):
    """Any text will do as a key; those that `nereid keys` makes are random."""
    return f"key-for-{scope}"


def rules(**more):
    """A key for each scope, and whatever else the file should say."""
    keys = [{"id": scope, "sha256": digest(key_of(scope)), "scopes": [scope]} for scope in GRANTABLE_SCOPES]
    return {"keys": keys, **more}


def write(path, content):
    """Replaces the file in one step."""
    files.replace(path, content if isinstance(content, str) else json.dumps(content))
    return path


def ask(port, method, path, headers=(), body=b"{}", context=None, source=None):
    """The status and the headers of the reply, and its text."""
    address = (source, 0) if source else None
    if context is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=address)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        connection.request(method, path, body if method == "POST" else None, dict(headers))
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode(errors="replace")
    finally:
        connection.close()


def begin(port, method, path, headers):
    """Like ask, for a reply that may have no end: its text is empty if the request was not refused."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=dict(headers))
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode() if reply.status >= 400 else ""
    finally:
        connection.close()


def bearer(credential):
    return {"Authorization": f"Bearer {credential}"}


def call(target, rpc, metadata=(), credentials=None, message=b""):
    """The status code and text of an RPC."""
    options = [("grpc.ssl_target_name_override", "localhost")]
    channel = (
        grpc.insecure_channel(target)
        if credentials is None
        else grpc.secure_channel(target, credentials, options)
    )
    path = f"/inference.GRPCInferenceService/{rpc}"
    with channel:
        try:
            if rpc == "ModelStreamInfer":
                next(channel.stream_stream(path)(iter([message]), metadata=metadata, timeout=30))
            else:
                channel.unary_unary(path)(message, metadata=metadata, timeout=30)
        except grpc.RpcError as error:
            return error.code(), error.details()
    return grpc.StatusCode.OK, ""


def write_models(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    for name in ("m", "resnet"):
        models.write_model(repository, name, models.identity_config("FP32", [-1]))
    return repository


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    return tokens.Issuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory, folder, issuer):
    """Keys and tokens; the control APIs are on the admin listener alone."""
    jwks = issuer.write_keys(folder / "jwks.json")
    scopes = {f"may-{scope}": [scope] for scope in GRANTABLE_SCOPES}
    file = write(folder / "keys.json", rules(tokens=[issuer.rule(jwks, scopes)]))
    admin_port, admin_grpc_port = servers.free_ports(2)
    server = servers.start(
        write_models(tmp_path_factory),
        args=[f"--api-keys={file}", f"--admin-port={admin_port}", f"--admin-grpc-port={admin_grpc_port}",
              "--allow-client-shm=true"],  # fmt: skip
        log_dir=tmp_path_factory.mktemp("log"),
    )
    server.admin_port = admin_port
    server.admin_grpc = f"127.0.0.1:{admin_grpc_port}"
    yield server
    server.stop()
    assert not any(key_of(scope) in server.log for scope in GRANTABLE_SCOPES)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return certificates.make(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def clients(authority, tmp_path_factory):
    """A client certificate for each scope."""
    folder = tmp_path_factory.mktemp("clients")
    return {name: certificates.make(folder, name, authority) for name in [*GRANTABLE_SCOPES, "stranger"]}


@pytest.fixture(scope="module")
def tls_server(require_server, tmp_path_factory, authority, clients):
    """Mutual TLS on every port; a certificate's subject says what its client may do."""
    folder = tmp_path_factory.mktemp("tls")
    certificate = certificates.make(folder, "server", authority)
    rule = [{"id": s, "subject": f"CN={s}", "scopes": [s]} for s in GRANTABLE_SCOPES]
    keys = [{"id": "key", "sha256": digest("key"), "scopes": ["metadata"]}]
    file = write(folder / "keys.json", {"certificates": rule, "keys": keys})
    args = [f"--api-keys={file}", "--allow-client-shm=true"]
    for protocol in ("http", "grpc"):
        args += [
            f"--{protocol}-use-ssl-mutual=true",
            f"--{protocol}-server-cert={certificate.cert}",
            f"--{protocol}-server-key={certificate.key}",
            f"--{protocol}-root-cert={authority.cert}",
        ]
    admin_port = servers.free_ports(1)[0]
    server = servers.start(
        write_models(tmp_path_factory),
        args=[*args, f"--admin-port={admin_port}"],
        wait=False,
        log_dir=tmp_path_factory.mktemp("log"),
    )
    server.admin_port = admin_port
    server.wait_for_log("Started Admin Service")
    probe = context_of(authority, clients["stranger"])
    servers.wait_until(
        lambda: ask(server.http_port, "GET", "/v2/health/ready", context=probe)[0] == 200, "readiness"
    )
    yield server
    server.stop()


def context_of(authority, client):
    context = certificates.client_context(authority, client)
    context.check_hostname = False
    return context


def test_every_route_has_a_scope():
    for *_, scope in [*HTTP_ROUTES, *GRPC_ROUTES]:
        assert scope in ("health", *GRANTABLE_SCOPES)


CREDENTIALS = ["bearer", "x-api-key", "token"]


def headers_for(kind, scope, issuer):
    if kind == "bearer":
        return bearer(key_of(scope))
    if kind == "x-api-key":
        return {"x-api-key": key_of(scope)}
    return bearer(issuer.token(f"may-{scope}"))


@pytest.fixture(scope="module")
def headers(issuer):
    """By kind of credential and scope. Tokens are made once, as the openssl command takes its time."""
    return {(kind, scope): headers_for(kind, scope, issuer) for kind in CREDENTIALS for scope in GRANTABLE_SCOPES}


def check_http(status, reply_headers, text, needed, granted, is_main):
    """One cell of the matrix: a route that needs a scope, asked by somebody who has another."""
    if needed == "health":
        assert status not in (401, 403)
    elif granted not in (needed, "admin"):
        assert status == 403
        assert f"'{granted}'" in text or "ann" in text
        assert f"does not have the scope '{needed}'" in text
        assert f'error="insufficient_scope", scope="{needed}"' in reply_headers["WWW-Authenticate"]
    elif is_main and needed in CONTROL_SCOPES:
        assert status == 403 and "admin listener" in text
    else:
        assert status not in (401, 403)


@pytest.mark.parametrize("listener", ["http", "admin"])
@pytest.mark.parametrize("kind", CREDENTIALS)
@pytest.mark.parametrize(("method", "path", "needed"), HTTP_ROUTES)
def test_http(server, headers, method, path, needed, kind, listener):
    port = server.http_port if listener == "http" else server.admin_port
    for granted in GRANTABLE_SCOPES:
        reply = ask(port, method, path, headers[kind, granted])
        check_http(*reply, needed, granted, listener == "http")


@pytest.mark.parametrize("listener", ["http", "admin"])
@pytest.mark.parametrize(("method", "path", "needed"), HTTP_ROUTES)
def test_http_with_certificates(tls_server, authority, clients, method, path, needed, listener):
    port = tls_server.http_port if listener == "http" else tls_server.admin_port
    for granted in GRANTABLE_SCOPES:
        reply = ask(port, method, path, context=context_of(authority, clients[granted]))
        check_http(*reply, needed, granted, listener == "http")
    status, *_ = ask(port, method, path, context=context_of(authority, clients["stranger"]))
    assert (status == 401) == (needed != "health")


@pytest.mark.parametrize("listener", ["http", "admin"])
@pytest.mark.parametrize(("method", "path", "needed"), HTTP_ROUTES)
def test_http_without_credentials_and_with_wrong_ones(server, method, path, needed, listener):
    port = server.http_port if listener == "http" else server.admin_port
    address = next(ADDRESSES)
    variants = [{}, bearer("wrong"), {"X-API-Key": "wrong"}, bearer(digest(key_of("admin")))]
    for given in variants:
        status, reply_headers, text = ask(port, method, path, given, source=address)
        if needed == "health":
            assert status not in (401, 403)
            continue
        assert status == 401, (given, text)
        assert reply_headers["WWW-Authenticate"].startswith('Bearer realm="nereid"')
        assert ("invalid_token" in reply_headers["WWW-Authenticate"]) == bool(given)


def check_rpc(code, text, needed, granted, listener="grpc"):
    if needed == "health":
        assert code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
    elif granted not in (needed, "admin"):
        assert code == grpc.StatusCode.PERMISSION_DENIED
        assert f"does not have the scope '{needed}'" in text
    elif needed in CONTROL_SCOPES and listener == "grpc":
        assert code == grpc.StatusCode.PERMISSION_DENIED and "admin listener" in text
    else:
        assert code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED), text


@pytest.mark.parametrize("listener", ["grpc", "admin_grpc"])
@pytest.mark.parametrize("kind", CREDENTIALS)
@pytest.mark.parametrize(("rpc", "needed"), GRPC_ROUTES)
def test_grpc(server, headers, rpc, needed, kind, listener):
    for granted in GRANTABLE_SCOPES:
        metadata = [(name.lower(), value) for name, value in headers[kind, granted].items()]
        check_rpc(*call(getattr(server, listener), rpc, metadata), needed, granted, listener)


@pytest.mark.parametrize(("rpc", "needed"), GRPC_ROUTES)
def test_grpc_with_certificates(tls_server, authority, clients, rpc, needed):
    def credentials(client):
        files = authority.cert, client.key, client.cert
        return grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))

    for granted in GRANTABLE_SCOPES:
        check_rpc(*call(tls_server.grpc, rpc, credentials=credentials(clients[granted])), needed, granted)
    code, _ = call(tls_server.grpc, rpc, credentials=credentials(clients["stranger"]))
    assert (code == grpc.StatusCode.UNAUTHENTICATED) == (needed != "health")


@pytest.mark.parametrize("listener", ["grpc", "admin_grpc"])
@pytest.mark.parametrize(("rpc", "needed"), GRPC_ROUTES)
def test_grpc_without_credentials(server, rpc, needed, listener):
    code, text = call(getattr(server, listener), rpc)
    assert (code == grpc.StatusCode.UNAUTHENTICATED) == (needed != "health"), text


def test_grpc_refuses_wrong_keys(server):
    for name, value in (("authorization", "Bearer wrong"), ("x-api-key", "wrong")):
        code, text = call(server.grpc, "ServerMetadata", [(name, value)])
        assert (code, text) == (grpc.StatusCode.UNAUTHENTICATED, "the API key is not valid")


@pytest.mark.parametrize("listener", ["metrics", "admin"])
def test_metrics(server, headers, listener):
    port = server.metrics_port if listener == "metrics" else server.admin_port
    assert ask(port, "GET", "/metrics")[0] == 401
    for (_, granted), given in headers.items():
        status, _, text = ask(port, "GET", "/metrics", given)
        assert status == (200 if granted in ("metrics", "admin") else 403)
        assert status == 403 or "nereid_access_denied_total{reason=" in text


# The console is where the control APIs are: on the admin listener.
@pytest.mark.parametrize("kind", CREDENTIALS)
@pytest.mark.parametrize(("method", "path", "needed"), CONSOLE_ROUTES)
def test_console(server, headers, method, path, needed, kind):
    for granted in GRANTABLE_SCOPES:
        status, reply_headers, text = begin(server.admin_port, method, path, headers[kind, granted])
        check_http(status, reply_headers, text, needed, granted, is_main=False)
        assert ask(server.http_port, method, path, headers[kind, granted])[0] == 404


@pytest.mark.parametrize(("method", "path", "needed"), CONSOLE_ROUTES)
def test_console_without_credentials_and_with_wrong_ones(server, method, path, needed):
    address = next(ADDRESSES)
    for given in ({}, bearer("wrong"), {"X-API-Key": digest(key_of("admin"))}):
        assert ask(server.admin_port, method, path, given, source=address)[0] == 401
        assert ask(server.admin_port, "POST", path, given, source=address)[0] == 401
    # The files of the page know nothing of the server.
    assert ask(server.admin_port, "GET", "/ui/", source=address)[0] in (200, 503)


def test_a_wrong_method_or_a_query_is_no_way_around(server):
    for method, path, needed in HTTP_ROUTES:
        if needed == "health":
            continue
        for verb, target in (("DELETE", path), ("GET", path + "?x=1"), ("POST", path.replace("/v2", "/%762"))):
            assert ask(server.admin_port, verb, target)[0] == 401, (verb, target)


def test_unmodified_clients_pass_with_a_header(server):
    data = np.array([1, 2], np.float32)
    key = f"Bearer {key_of('infer')}"
    for module, url, name in (
        (tritonclient.http, server.http, "Authorization"),
        (tritonclient.grpc, server.grpc, "authorization"),
    ):
        tensor = module.InferInput("INPUT0", [2], "FP32")
        tensor.set_data_from_numpy(data)
        with module.InferenceServerClient(url) as client:
            with pytest.raises(Exception, match="needs an API key or a token"):
                client.infer("m", [tensor])
            assert (client.infer("m", [tensor], headers={name: key}).as_numpy("OUTPUT0") == data).all()


def test_regions_of_shared_memory_are_for_those_with_the_scope(server):
    memory = shared_memory.SharedMemory(create=True, size=8)
    try:
        memory.buf[:8] = np.array([1, 2], np.float32).tobytes()
        region = json.dumps({"key": f"/{memory.name}", "offset": 0, "byte_size": 8}).encode()
        path = "/v2/systemsharedmemory/region/mine/register"
        assert ask(server.http_port, "POST", path, bearer(key_of("shared-memory")), region)[0] == 200
        place = {"shared_memory_region": "mine", "shared_memory_byte_size": 8}
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [2], "parameters": place}
        body = json.dumps({"inputs": [tensor]}).encode()
        infer = "/v2/models/m/infer"
        status, _, text = ask(server.http_port, "POST", infer, bearer(key_of("infer")), body)
        assert status != 200 and "Unable to find shared memory region: 'mine'" in text
        assert ask(server.http_port, "POST", infer, bearer(key_of("admin")), body)[0] == 200
    finally:
        memory.close()
        memory.unlink()


# --- what changes while a server runs ---


@pytest.fixture
def changing(require_server, tmp_path_factory, tmp_path):
    """A server of its own whose file the test replaces, and the path of that file."""
    file = write(tmp_path / "keys.json", rules())
    args = [f"--api-keys={file}", "--model-control-mode=explicit", "--load-model=*"]
    with servers.running(write_models(tmp_path_factory), args=args, log_dir=tmp_path) as running:
        yield running, file


def replace(server, file, content):
    """Replaces the file and waits until the server has read it."""
    count = server.log.count("was read again")
    write(file, content)
    servers.wait_until(lambda: server.log.count("was read again") > count, "the file is read again")


def scrape(server, name):
    _, _, text = ask(server.metrics_port, "GET", "/metrics", bearer(key_of("metrics")))
    return next(line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(name))


def test_a_changed_file_counts_at_once_and_a_broken_one_does_not(changing):
    server, file = changing
    infer = lambda key: ask(server.http_port, "POST", "/v2/models/m/infer", bearer(key), BODY)[0]  # noqa: E731
    assert infer(key_of("infer")) == 200
    write(file, '{"keys": [')
    server.wait_for_log("the old rules stay")
    assert infer(key_of("infer")) == 200
    assert scrape(server, "nereid_access_file_good") == "0"
    assert scrape(server, 'nereid_access_reloads_total{result="failure"}') == "1"
    without = [key for key in rules()["keys"] if key["id"] != "infer"]
    without.append({"id": "new", "sha256": digest("new-key"), "scopes": ["infer"]})
    replace(server, file, {"keys": without})
    assert infer("new-key") == 200
    assert infer(key_of("infer")) == 401
    assert scrape(server, "nereid_access_file_good") == "1"


def stream_of(server, key):
    channel = grpc.insecure_channel(server.grpc)
    client = tritonclient.grpc.InferenceServerClient(server.grpc)
    results = []
    client.start_stream(
        lambda result, error: results.append(error or result), headers={"authorization": f"Bearer {key}"}
    )

    def send(model):
        count = len(results)
        tensor = tritonclient.grpc.InferInput("INPUT0", [2], "FP32")
        tensor.set_data_from_numpy(np.array([1, 2], np.float32))
        client.async_stream_infer(model, [tensor])
        servers.wait_until(lambda: len(results) > count, "a response on the stream")
        return results[-1]

    return channel, client, send


def test_a_stream_may_use_only_the_models_of_its_key_and_ends_with_it(changing):
    server, file = changing
    limited = {"id": "res", "sha256": digest("res-key"), "scopes": ["infer"], "models": ["res*"]}
    replace(server, file, {"keys": [*rules()["keys"], limited]})
    channel, client, send = stream_of(server, "res-key")
    with channel, client:
        assert send("resnet").as_numpy("OUTPUT0") is not None
        assert "'res' may not use the model 'm'" in str(send("m"))
        assert send("resnet").as_numpy("OUTPUT0") is not None  # the stream goes on
        replace(server, file, rules())
        assert "the API key is not valid" in str(send("resnet"))


def test_a_key_for_some_models_sees_no_others(changing):
    server, file = changing
    limited = {
        "id": "res",
        "sha256": digest("res-key"),
        "scopes": ["infer", "metadata", "model-control", "trace-log", "metrics"],
        "models": ["res*"],
    }
    replace(server, file, {"keys": [*rules()["keys"], limited]})
    given = bearer("res-key")
    port = server.http_port
    index = json.loads(ask(port, "POST", "/v2/repository/index", given)[2])
    assert [entry["name"] for entry in index] == ["resnet"]
    statistics = json.loads(ask(port, "GET", "/v2/models/stats", given)[2])
    assert [entry["name"] for entry in statistics["model_stats"]] == ["resnet"]
    for method, path in (
        ("POST", "/v2/models/m/infer"),
        ("POST", "/v2/models/m/versions/1/infer"),
        ("POST", "/v2/models/%6d/infer"),
        ("POST", "/v2/models/nothing/infer"),
        ("POST", "/v2/models/m/generate"),
        ("GET", "/v2/models/m"),
        ("GET", "/v2/models/m/config"),
        ("GET", "/v2/models/m/stats"),
        ("POST", "/v2/repository/models/m/unload"),
        ("POST", "/v2/repository/models/m/load"),
    ):
        status, _, text = ask(port, method, path, given, BODY)
        assert status == 403 and "may not use the model" in text, path
    metadata = [("authorization", "Bearer res-key")]
    headers = dict(metadata)
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        assert [m.name for m in client.get_model_repository_index(headers=headers).models] == ["resnet"]
        assert [m.name for m in client.get_inference_statistics(headers=headers).model_stats] == ["resnet"]
        client.get_model_metadata("resnet", headers=headers)
        for refused in (
            lambda: client.get_model_metadata("m", headers=headers),
            lambda: client.get_model_config("m", headers=headers),
            lambda: client.get_inference_statistics("m", headers=headers),
            lambda: client.unload_model("m", headers=headers),
        ):
            with pytest.raises(Exception, match="may not use the model 'm'"):
                refused()
        with pytest.raises(Exception, match="this is about all models"):
            client.update_trace_settings(settings={"trace_rate": "7"}, headers=headers)
        client.update_trace_settings("resnet", settings={"trace_rate": "7"}, headers=headers)
    trace = lambda path: ask(port, "POST", path, given, b'{"trace_rate":"7"}')  # noqa: E731
    assert trace("/v2/trace/setting")[0] == 403
    assert trace("/v2/models/resnet/trace/setting")[0] == 200
    status, _, text = ask(server.metrics_port, "GET", "/metrics", given)
    assert status == 403 and "this is about all models" in text
    # Protobuf's parsers take the last of several values, and so must the check.
    twice = b"\x0a\x06resnet\x0a\x01m"
    code, text = call(server.grpc, "ModelMetadata", metadata, message=twice)
    assert (code, text) == (grpc.StatusCode.PERMISSION_DENIED, "'res' may not use the model 'm'")


def test_a_key_for_some_models_may_send_large_bodies_to_routes_that_name_none(changing):
    server, file = changing
    limited = {"id": "res", "sha256": digest("res-key"), "scopes": ["metadata"], "models": ["res*"]}
    replace(server, file, {"keys": [limited]})
    body = b"{}".ljust(70_000)
    for form in (body, iter([body])):  # of a known length, and in chunks
        status, _, text = ask(server.http_port, "POST", "/v2/repository/index", bearer("res-key"), form)
        assert status == 200, text
        assert [entry["name"] for entry in json.loads(text)] == ["resnet"]


def test_reasons_name_models_only_to_who_may_see_all(changing):
    server, file = changing
    limited = {"id": "res", "sha256": digest("res-key"), "scopes": ["metadata"], "models": ["res*"]}
    replace(server, file, {"keys": [*rules()["keys"], limited]})
    config = json.dumps({"parameters": {"config": json.dumps({"backend": "nobody"})}}).encode()
    path = "/v2/repository/models/m/load"
    ask(server.http_port, "POST", "/v2/repository/models/m/unload", bearer(key_of("admin")))
    assert ask(server.http_port, "POST", path, bearer(key_of("admin")), config)[0] == 400
    ready = lambda given: ask(server.http_port, "GET", "/v2/health/ready?verbose", given)  # noqa: E731
    status, _, text = ready(bearer(key_of("metadata")))
    assert status == 400 and "'m'" in text
    for given in ({}, bearer("res-key"), bearer(key_of("infer"))):
        status, _, text = ready(given)
        assert status == 400 and "'m'" not in text
        assert "told to who has the scope 'metadata' for all models" in text


def test_control_calls_leave_a_line_in_the_log(changing):
    server, _ = changing
    path = "/v2/repository/models/resnet/unload"
    assert ask(server.http_port, "POST", path, bearer(key_of("model-control")))[0] == 200
    server.wait_for_log(f"audit: 'POST {path}' by 'model-control' from '127.0.0.1': 200")
    assert ask(server.http_port, "POST", path, bearer(key_of("infer")))[0] == 403
    server.wait_for_log(f"audit: 'POST {path}' by 'infer' from '127.0.0.1': 403")
    assert ask(server.http_port, "POST", path)[0] == 401
    server.wait_for_log(f"audit: 'POST {path}' by 'anonymous' from '127.0.0.1': 401")
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.load_model("resnet", headers={"authorization": f"Bearer {key_of('admin')}"})
    rpc = "/inference.GRPCInferenceService/RepositoryModelLoad"
    server.wait_for_log(f"audit: '{rpc}' by 'admin' from '127.0.0.1': OK")


def test_who_tries_out_keys_is_cut_short_and_neighbours_are_not(changing):
    server, _ = changing
    address = next(ADDRESSES)
    attempt = lambda: ask(server.http_port, "GET", "/v2", bearer("guess"), source=address)  # noqa: E731
    for _ in range(30):
        assert attempt()[0] == 401
    status, headers, _ = attempt()
    assert status == 429
    assert 0 < int(headers["Retry-After"]) <= 60
    server.wait_for_log(f"requests with wrong credentials came from {address}")
    given = bearer(key_of("metadata"))
    assert ask(server.http_port, "GET", "/v2", given, source=address)[0] == 200
    assert ask(server.http_port, "GET", "/v2", bearer("guess"), source=next(ADDRESSES))[0] == 401
    assert ask(server.http_port, "GET", "/v2/health/live", source=address)[0] == 200


def test_a_large_body_without_a_key_is_refused(changing):
    server, _ = changing
    before = server.resident_bytes()
    for _ in range(4):
        assert ask(server.http_port, "POST", "/v2/models/m/infer", body=bytes(48 << 20))[0] == 401
    assert server.resident_bytes() - before < 32 << 20
    assert ask(server.http_port, "POST", "/v2/models/m/infer", bearer(key_of("infer")), BODY)[0] == 200


def test_tokens_that_are_not_right(server, issuer, tmp_path):
    good = issuer.token("may-metadata")
    other = tokens.Issuer(tmp_path)
    head, payload, signature = good.split(".")
    none = tokens.encode({"alg": "none"})
    wrong = {
        "signed by another key": other.token("may-metadata"),
        "expired": issuer.token("may-metadata", lasts=-3600),
        "not valid yet": issuer.token("may-metadata", nbf=int(time.time()) + 3600),
        "for others": issuer.token("may-metadata", aud="somebody"),
        "of another issuer": issuer.token("may-metadata", iss="https://evil.example.com/"),
        "without algorithm": f"{none}.{payload}.{signature}",
        "without signature": f"{none}.{payload}.",
        "with another payload": f"{head}.{tokens.encode({'iss': issuer.NAME, 'scope': 'may-admin'})}.{signature}",
        "symmetric": issuer.token("may-metadata", head={"alg": "HS256", "kid": "k1"}),
        "with an unknown key": issuer.token("may-metadata", head={"alg": "RS256", "kid": "k2"}),
    }
    address = next(ADDRESSES)
    for what, token in wrong.items():
        status, headers, _ = ask(server.http_port, "GET", "/v2", bearer(token), source=address)
        assert status == 401 and "invalid_token" in headers["WWW-Authenticate"], what
    assert ask(server.http_port, "GET", "/v2", bearer(good))[0] == 200


# --- the admin listener and the start ---


def test_the_control_apis_stay_on_the_main_ports_by_default(require_server, tmp_path_factory):
    args = ["--model-control-mode=explicit", "--load-model=*"]
    with servers.running(
        write_models(tmp_path_factory), args=args, log_dir=tmp_path_factory.mktemp("log")
    ) as server:
        assert ask(server.http_port, "POST", "/v2/repository/models/m/unload")[0] == 200
        server.wait_for_log("The control APIs are served on the HTTP and gRPC ports, as in Triton")
        server.wait_for_log("by 'anonymous' from '127.0.0.1': 200")


def test_an_admin_listener_without_keys_is_for_this_machine(require_server, tmp_path_factory):
    args = ["--model-control-mode=explicit", "--load-model=*", "--admin-port=0"]
    with servers.running(
        write_models(tmp_path_factory), args=args, log_dir=tmp_path_factory.mktemp("log")
    ) as server:
        server.wait_for_log("Started Admin Service at 127.0.0.1:")
        port = int(server.log.split("Started Admin Service at 127.0.0.1:")[1].split(";")[0])
        path = "/v2/repository/models/m/unload"
        assert ask(server.http_port, "POST", path)[0] == 403
        code, text = call(server.grpc, "RepositoryModelUnload")
        assert code == grpc.StatusCode.PERMISSION_DENIED and "admin listener" in text
        assert ask(server.http_port, "POST", "/v2/models/m/infer", body=BODY)[0] == 200
        assert ask(port, "POST", path)[0] == 200
        assert ask(port, "GET", "/metrics")[0] == 200


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--admin-address=0.0.0.0"], "--admin-address '0.0.0.0': without --api-keys everybody"),
        (["--api-keys=/nowhere/keys.json"], "--api-keys '/nowhere/keys.json': No such file"),
        (["--admin-port=x"], "expected a port"),
        (["--admin-address=unix:/tmp/admin", "--admin-grpc-port=0"], "'unix:/tmp/admin' serves HTTP only"),
    ],
)
def test_wrong_flags_end_the_start(empty_repository, args, error):
    run = servers.run_to_end([f"--model-repository={empty_repository}", *args])
    assert run.returncode == 1
    assert error in run.stdout


def test_a_wrong_file_ends_the_start_with_its_place(empty_repository, tmp_path):
    file = write(tmp_path / "keys.json", {"keys": [{"id": "a", "sha256": digest("x"), "scopes": ["infr"]}]})
    run = servers.run_to_end([f"--model-repository={empty_repository}", f"--api-keys={file}", "--http-port=0",
                              "--grpc-port=0", "--metrics-port=0"])  # fmt: skip
    assert run.returncode == 1
    assert "keys[0].scopes: there is no scope 'infr'" in run.stdout


# --- the commands ---


def test_keys_are_made_listed_and_revoked_by_a_command(changing, tmp_path):
    server, file = changing

    def run(*args, env=None):
        return servers.run_to_end(args, env=env)

    made = run("keys", "add", "ci", f"--file={file}", "--scope=infer", "--scope=metadata", "--model=res*")
    key = next(line for line in made.stdout.splitlines() if line.startswith("nrd_"))
    assert key not in file.read_text()
    given = {"NEREID_API_KEY": key, "NEREID_URL": f"http://{server.http}"}
    servers.wait_until(lambda: run("models", env=given).returncode == 0, "the new key works")
    assert "resnet" in run("models", env=given).stdout
    assert run("models", f"--api-key={key}", f"--url=http://{server.http}").returncode == 0
    refused = run("unload", "resnet", env=given)
    assert refused.returncode == 1 and "does not have the scope 'model-control'" in refused.stdout
    listed = json.loads(run("keys", "list", f"--file={file}", "--json").stdout)
    assert listed[-1]["id"] == "ci" and listed[-1]["models"] == ["res*"]
    assert run("keys", "revoke", "ci", f"--file={file}").returncode == 0
    servers.wait_until(lambda: run("models", env=given).returncode == 1, "the key is refused")
    assert run("keys", "revoke", "ci", f"--file={file}").returncode == 1


def test_a_key_goes_before_a_certificate(tls_server, authority, clients):
    for client, status in (("stranger", 401), ("infer", 403), ("metadata", 200)):
        context = context_of(authority, clients[client])
        assert ask(tls_server.http_port, "GET", "/v2", context=context)[0] == status
        assert ask(tls_server.http_port, "GET", "/v2", bearer("key"), context=context)[0] == 200
        path = "/v2/models/m/infer"
        assert ask(tls_server.http_port, "POST", path, bearer("key"), BODY, context)[0] == 403
