# SPDX-License-Identifier: Apache-2.0
"""The generate extension: JSON in, JSON or server-sent events out, with clients that leave or sleep."""

import asyncio
import gzip
import json
import socket
import threading
import time

import aiohttp
import pytest
import requests
import sseclient

from harness import models, wire
from harness import server as servers
from harness.decoupled import write_iterative, write_repeat, write_square

NOT_ONE = (
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses"
)


def write_texts(repository):
    config = (
        'backend: "identity"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('INPUT0', 'BYTES', [1, -1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'BYTES', [1, -1])} ]\n"
    )
    models.write_model(repository, "texts", config)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("generate")
    write_repeat(repository)
    write_square(repository)
    write_square(repository, "failing", CUSTOM_FAIL_COUNT=1)
    write_square(repository, "slow", CUSTOM_INFER_DELAY_NS=20_000_000)
    write_iterative(repository)
    write_texts(repository)
    models.write_model(
        repository, "floats", models.identity_config("FP32", [-1], max_batch_size=8)
    )
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("log")) as running:
        yield running


def post(server, model, action, body, **options):
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    options.setdefault("timeout", 30 * servers.SLOWNESS)
    return requests.post(f"http://{server.http}/v2/models/{model}/{action}", data=data, **options)


def generate(server, model, body, **options):
    return post(server, model, "generate", body, **options)


def events(server, model, body, **options):
    """The events of a stream as they come, parsed."""
    reply = post(server, model, "generate_stream", body, stream=True, **options)
    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8", reply.text
    for event in sseclient.SSEClient(reply).events():
        yield json.loads(event.data)


def repeat(values, delay_ms=0):
    return {"IN": values, "DELAY": [delay_ms] * len(values), "WAIT": 0}


def test_one_answer(server):
    reply = generate(server, "texts", {"INPUT0": "hello"})
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.json() == {"OUTPUT0": "hello", "model_name": "texts", "model_version": "1"}


def test_lists_stay_lists_and_single_elements_become_scalars(server):
    assert generate(server, "texts", {"INPUT0": ["a", "b"]}).json()["OUTPUT0"] == ["a", "b"]
    assert generate(server, "texts", {"INPUT0": ["a"]}).json()["OUTPUT0"] == "a"
    assert generate(server, "floats", {"INPUT0": [1, 2.5]}).json()["OUTPUT0"] == [1.0, 2.5]


@pytest.mark.newer  # 2.51 takes them too; 2.73 forgets their shape
def test_empty_lists_are_empty_tensors(server):
    assert generate(server, "texts", {"INPUT0": []}).json()["OUTPUT0"] == []


def test_versions_and_ids(server):
    reply = post(server, "texts", "versions/1/generate", {"INPUT0": "x", "id": "42"})
    assert reply.json()["id"] == "42"
    assert "id" not in generate(server, "texts", {"INPUT0": "x", "id": ""}).json()


def test_stream(server):
    answers = list(events(server, "repeat", repeat([5, 6, 7]) | {"id": "s"}))
    assert [a["OUT"] for a in answers] == [5, 6, 7]
    assert [a["IDX"] for a in answers] == [0, 1, 2]
    assert {a["id"] for a in answers} == {"s"}


def test_answers_of_a_stream_come_one_by_one(server):
    """The first one comes at once, not after the minute that all of them take."""
    stream = events(server, "slow", {"IN": 3000}, timeout=10 * servers.SLOWNESS)
    assert next(stream)["OUT"] == 3000


def test_a_model_that_answers_once_streams_one_event(server):
    assert [a["OUTPUT0"] for a in events(server, "texts", {"INPUT0": "x"})] == ["x"]


def test_iterative_sequences(server):
    assert [a["OUTPUT"] for a in events(server, "iterative", {"INPUT": 3})] == [2, 1, 0]
    assert generate(server, "iterative", {"INPUT": 1}).json()["OUTPUT"] == 0


def test_parameters_may_stand_in_an_object_of_their_own(server):
    reply = generate(server, "texts", {"parameters": {"INPUT0": "x", "temperature": 0.5}})
    assert reply.json()["OUTPUT0"] == "x"


@pytest.mark.newer  # the reference sends this error with status 200
@pytest.mark.parametrize("values", [[], [1, 2]])
def test_generate_wants_exactly_one_response(server, values):
    body = repeat(values)
    reply = generate(server, "repeat", body)
    assert reply.status_code == 500
    assert reply.json() == {"error": NOT_ONE}


def test_generate_of_a_decoupled_model_that_answers_once(server):
    assert generate(server, "repeat", repeat([9])).json()["OUT"] == 9


def test_a_stream_without_answers_ends_well(server):
    reply = post(server, "square", "generate_stream", {"IN": 0})
    assert (reply.status_code, reply.content) == (200, b"")


def test_errors_in_a_stream(server):
    first, second = events(server, "failing", {"IN": 2})
    assert {"OUT" in first, "OUT" in second} == {True, False}
    # The first answer decides the status.
    reply = post(server, "failing", "generate_stream", {"IN": 1})
    assert reply.status_code >= 400
    assert reply.text.startswith('data: {"error":')
    assert generate(server, "failing", {"IN": 1}).status_code == reply.status_code


REFUSED = [
    ("{}", 400, "expected 1 inputs but got 0 inputs for model 'texts'"),
    ("", 500, "failed to parse the request JSON buffer: The document is empty. at 0"),
    ('{"INPUT0":', 500, "failed to parse the request JSON buffer"),
    ("[]", 500, "attempt to get members for non-object"),
    ('{"INPUT0":1}', 500, "attempt to access JSON non-string as string"),
    ('{"INPUT0":{"a":"b"}}', 500, "attempt to access JSON non-string as string"),
    ('{"INPUT0":"x","o":{"a":1}}', 400, "parameter 'o' has invalid type"),
    ('{"INPUT0":"x","o":[1]}', 400, "parameter 'o' has invalid type"),
    ('{"INPUT0":"x","o":null}', 400, "parameter 'o' has invalid type"),
    (
        '{"INPUT0":"x","parameters":{"o":{}}}',
        400,
        "Converting keyword: 'parameters': parameter 'o' has invalid type.",
    ),
    ('{"INPUT0":"x","parameters":1}', 500, "Expected JSON object for keyword: 'parameters'"),
    ('{"INPUT0":"x","id":1}', 500, "Unable to parse 'id'"),
    ('{"INPUT0":"x","INPUT0":"y"}', 400, "input 'INPUT0' already exists in request"),
]


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
@pytest.mark.parametrize("body, status, text", REFUSED)
def test_refused_requests(server, action, body, status, text):
    reply = post(server, "texts", action, body)
    assert reply.status_code == status
    assert reply.headers["Content-Type"] == "application/json"
    assert text in reply.json()["error"]


def test_a_list_that_does_not_fit_the_shape(server):
    reply = generate(server, "repeat", {"IN": [1], "DELAY": [0], "WAIT": [1, 2]})
    assert reply.status_code == 400
    text = "The schema can not convert input 'WAIT' to tensor with proper shape"
    assert reply.json() == {"error": text}


def test_unknown_models_and_wrong_methods(server):
    reply = generate(server, "none", {})
    assert reply.status_code == 404
    assert reply.json() == {"error": "Request for unknown model: 'none' is not found"}
    reply = requests.get(f"http://{server.http}/v2/models/texts/generate_stream", timeout=30)
    assert reply.status_code == 405


def test_bodies_are_not_compressed(server):
    body = gzip.compress(b'{"INPUT0":"x"}')
    reply = generate(server, "texts", body, headers={"Content-Encoding": "gzip"})
    assert reply.status_code == 400
    text = "Unsupported content-encoding, only 'identity' is supported."
    assert reply.json() == {"error": text}
    reply = generate(server, "texts", '{"INPUT0":"x"}', headers={"Content-Encoding": "identity"})
    assert reply.json()["OUTPUT0"] == "x"


def test_connections_are_kept_after_streams(server):
    body = json.dumps(repeat([1, 2]))
    with wire.Connection(server) as connection:
        for _ in range(3):
            reply = connection.request("POST", "/v2/models/repeat/generate_stream", body)
            assert reply.headers["transfer-encoding"] == "chunked"
            assert reply.body.count(b"data: ") == 2
        assert connection.request("GET", "/v2/health/live").status == 200


def test_texts_that_would_break_a_frame(server):
    """S06 for streams: what a model writes cannot begin an event of its own."""
    text = 'a\n\ndata: {"forged":1}\r\n\r\n\u2028\x00'
    reply = post(server, "texts", "generate_stream", {"INPUT0": text})
    lines = reply.content.split(b"\n\n")
    assert len(lines) == 2 and lines[1] == b""
    assert json.loads(lines[0][len(b"data: ") :])["OUTPUT0"] == text


@pytest.mark.newer
def test_security_s18_nesting(server):
    deep = "[" * 120 + '"x"' + "]" * 120
    reply = generate(server, "texts", f'{{"INPUT0":{deep}}}')
    assert reply.status_code == 400
    assert reply.json()["error"] == "JSON nesting depth exceeds maximum allowed limit (100)"
    deep = "[" * 50 + '"x"' + "]" * 50
    assert generate(server, "texts", f'{{"INPUT0":{deep}}}').json()["OUTPUT0"] == "x"
    endless = '{"x":' + "[" * 250_000
    assert generate(server, "texts", endless).status_code == 500
    closed = '{"x":' + "[" * 250_000 + "]" * 250_000 + "}"
    assert generate(server, "texts", closed).status_code == 400
    assert server.is_live()


@pytest.mark.newer
def test_security_s11_chunks(server):
    head = b"POST /v2/models/texts/generate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with wire.Connection(server) as connection:
        connection.send(head)
        try:
            connection.send(b"1\r\nA\r\n" * 70_000)
        except OSError:
            pass  # closed while we were sending
        reply = connection.receive()
        assert reply.status == 400
        assert "65536 non-empty chunks" in reply.error
        assert connection.is_closed_by_server()


@pytest.mark.newer
def test_security_s17_sizes(server):
    reply = generate(server, "texts", b'{"INPUT0":"' + b"a" * (65 << 20) + b'"}')
    assert reply.status_code == 400
    assert "bytes exceeds the maximum allowed input size of" in reply.json()["error"]
    many = ",".join(f'"p{i}":{i}' for i in range(200_000))
    start = time.monotonic()
    reply = generate(server, "texts", '{"INPUT0":"x",' + many + "}")
    assert reply.status_code == 400
    assert reply.json() == {"error": "a request may have at most 1024 parameters"}
    # Found by counting, not by looking for each among all.
    assert time.monotonic() - start < 20 * servers.SLOWNESS
    inputs = [{"name": "INPUT0", "shape": [1, 1], "datatype": "BYTES", "data": ["x"]}]
    body = {"inputs": inputs, "parameters": {f"p{i}": i for i in range(200_000)}}
    reply = post(server, "texts", "infer", body)
    assert reply.json() == {"error": "a request may have at most 1024 parameters"}
    assert server.is_live()


@pytest.mark.newer
def test_security_s29_reserved_keys(server):
    for body in ({"INPUT0": "x", "triton_a": 1}, {"INPUT0": "x", "parameters": {"triton_a": 1}}):
        reply = generate(server, "texts", body)
        assert reply.status_code == 400
        assert "reserved" in reply.json()["error"]


def test_many_clients_at_once(server):
    async def stream(session, i):
        values = [i, i + 1, i + 2]
        url = f"http://{server.http}/v2/models/repeat/generate_stream"
        async with session.post(url, json=repeat(values, delay_ms=i % 3)) as reply:
            text = await reply.text()
        answers = [json.loads(line[6:]) for line in text.split("\n\n") if line]
        assert [a["OUT"] for a in answers] == values

    async def single(session, i):
        url = f"http://{server.http}/v2/models/texts/generate"
        async with session.post(url, json={"INPUT0": str(i)}) as reply:
            assert (await reply.json())["OUTPUT0"] == str(i)

    async def everyone():
        connector = aiohttp.TCPConnector(limit=50)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(
                *(stream(session, i) for i in range(200)), *(single(session, i) for i in range(200))
            )

    asyncio.run(everyone())




@pytest.mark.newer
@pytest.mark.parametrize("more", ["", "\r\n", wire.encode("GET", "/v2").decode()], ids=["nothing", "line", "request"])
def test_a_client_that_leaves_cancels_its_request(server, more):
    """A minute of answers, which must not be computed once their client has left, whatever it had
    sent after its request."""

    def count():
        statistics = requests.get(f"http://{server.http}/v2/models/slow/stats", timeout=30).json()
        responses = statistics["model_stats"][0]["response_stats"]
        return sum(r.get("cancel", {}).get("count", 0) for r in responses.values())

    before = count()
    with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
        body = json.dumps({"IN": 3000})
        path = "/v2/models/slow/generate_stream"
        connection.sendall(wire.encode("POST", path, body) + more.encode())
        assert b"200" in connection.recv(100)
    servers.wait_until(lambda: count() > before, "the model to see that its client has left")


def test_clients_that_leave_at_any_moment(server):
    def come_and_go(answers):
        with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
            body = json.dumps(repeat([1] * 20, delay_ms=1))
            path = "/v2/models/repeat/generate_stream"
            connection.sendall(wire.encode("POST", path, body))
            got = b""
            while got.count(b"data: ") < answers:
                got += connection.recv(1 << 16)

    threads = [threading.Thread(target=come_and_go, args=(i % 20,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a["OUT"] for a in events(server, "repeat", repeat([4]))] == [4]


@pytest.mark.newer
def test_security_s23_a_client_that_does_not_read(server):
    """A hundred megabytes of answers for a client that takes none: they are not kept for it."""
    before = server.resident_bytes()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.http_port))
        body = json.dumps({"IN": 2_000_000})
        connection.sendall(wire.encode("POST", "/v2/models/square/generate_stream", body))
        sizes = [before]

        def steady():
            assert all(server.is_ready() for _ in range(20))  # time in which answers could pile up
            sizes.append(server.resident_bytes())
            return len(sizes) > 10 and max(sizes[-5:]) - min(sizes[-5:]) < 1 << 20

        servers.wait_until(steady, "the server to keep what it keeps")
        assert max(sizes) - before < 32 << 20 or servers.is_sanitized()
        # It is held back, not lost: whoever reads on gets on.
        got = b""
        connection.settimeout(30 * servers.SLOWNESS)
        while len(got) < 4 << 20:
            data = connection.recv(1 << 20)
            assert data
            got += data
    assert got.count(b"data: ") > 50_000
    assert [a["OUT"] for a in events(server, "square", {"IN": 2})] == [2, 2]
