# SPDX-License-Identifier: Apache-2.0
"""The routes of OpenAI's API, with its own client."""

import asyncio
import hashlib
import json
import math
import socket

import hypothesis
import openai
import pytest
import requests
from harness import openai_models, python_models
from harness import server as servers
from hypothesis import strategies

pytestmark = pytest.mark.newer  # ours

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüß dich"}]
KEY = "the key of one client"
LIMITED_KEY = "sk-limited"
SERVED = ["chat", "echo", "embed", "ensemble", "parrot", "wrong"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    repository = tmp_path_factory.mktemp("openai")
    openai_models.write(repository)
    return repository


@pytest.fixture(scope="module")
def server(require_server, repository, tmp_path_factory):
    log_dir = tmp_path_factory.mktemp("log")
    with servers.running(repository, env=python_models.ENVIRONMENT, log_dir=log_dir) as running:
        yield running


def connect(server, kind=openai.OpenAI, key="none"):
    url = f"http://{server.http}/v1"
    return kind(base_url=url, api_key=key, max_retries=0, timeout=60 * servers.SLOWNESS)


@pytest.fixture(scope="module")
def client(server):
    with connect(server) as client:
        yield client


def post(server, path, body):
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return requests.post(f"http://{server.http}/v1/{path}", data=data, timeout=60 * servers.SLOWNESS)


def complete(client, prompt, model="echo", **options):
    return client.completions.create(model=model, prompt=prompt, **options)


def test_models(client):
    assert [model.id for model in client.models.list()] == SERVED
    model = client.models.retrieve("chat")
    assert (model.id, model.object, model.owned_by) == ("chat", "model", "nereid")
    with pytest.raises(openai.NotFoundError, match="no parameter 'openai'"):
        client.models.retrieve("unserved")
    with pytest.raises(openai.NotFoundError, match="'nobody'"):
        client.models.retrieve("nobody")


def test_chat_reaches_a_model_with_all_that_it_takes(client):
    answer = client.chat.completions.create(
        model="chat",
        messages=MESSAGES,
        temperature=0.5,
        max_completion_tokens=9,
        seed=-3,
        stop=["END", "\n"],
        top_p=0.25,
        response_format={"type": "json_object"},
        extra_body={"house_style": {"formal": True}, "unknown": [1, {}]},
    )
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert answer.model == "chat" and answer.created > 1_700_000_000
    assert answer._request_id == answer.id
    [choice] = answer.choices
    assert (choice.index, choice.finish_reason, choice.message.role) == (0, "length", "assistant")
    given = json.loads(choice.message.content)
    assert json.loads(given.pop("messages")[0]) == MESSAGES
    assert json.loads(given.pop("response_format")[0]) == {"type": "json_object"}
    assert json.loads(given.pop("house_style")[0]) == {"formal": True}
    assert given == {"temperature": [0.5], "max_tokens": [9], "seed": [-3], "stop": ["END", "\n"]}
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (11, 7, 18)


def test_a_model_without_messages_gets_a_prompt(client):
    answer = client.chat.completions.create(model="ensemble", messages=MESSAGES)
    assert answer.choices[0].message.content == "system: Be brief.\nuser: Grüß dich\nassistant:"
    assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("model", ["echo", "parrot"])
def test_completion_of_any_backend(client, model):
    answer = complete(client, "Ein schöner Tag 🌞", model)
    assert answer.object == "text_completion"
    assert answer.choices[0].text == "Ein schöner Tag 🌞"


def test_streams_join_to_the_same(client):
    """The model cuts characters apart, events do not."""
    prompt = "äöü €uro 🌞🌛 " * 20
    pieces = list(complete(client, prompt, stream=True, stream_options={"include_usage": True}))
    assert "".join(p.choices[0].text for p in pieces if p.choices) == prompt
    assert len({p.id for p in pieces}) == 1 and len(pieces) > 100
    *parts, last = pieces
    assert last.choices == [] and all(p.usage is None for p in parts)
    assert [p.choices[0].finish_reason for p in parts] == [None] * (len(parts) - 1) + ["stop"]
    tokens = math.ceil(len(prompt.encode()) / 3)
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (60, tokens)
    assert complete(client, prompt).usage == last.usage


def test_chats_stream_deltas(client):
    deltas = [
        piece.choices[0].delta
        for piece in client.chat.completions.create(model="echo", messages=MESSAGES, stream=True)
    ]
    assert deltas[0].role == "assistant" and not any(delta.role for delta in deltas[1:])
    text = "".join(delta.content or "" for delta in deltas)
    assert text == "system: Be brief.\nuser: Grüß dich\nassistant:"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("stop", "seen"),
    [("dd", "aabbcc"), (["ee", "bcc"], "aab"), (["aabbccddeeff!"], "aabbccddeeff"), ("f", "aabbccddee")],
)
def test_stop_sequences_across_pieces(client, stream, stop, seen):
    answer = complete(client, "aabbccddeeff", stop=stop, stream=stream)
    if stream:
        pieces = [piece.choices[0] for piece in answer]
        assert "".join(piece.text for piece in pieces) == seen
        assert pieces[-1].finish_reason == "stop"
    else:
        assert answer.choices[0].text == seen


@pytest.mark.parametrize("stream", [False, True])
def test_tools(client, stream):
    function = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "function", "function": function}, {"type": "function", "function": {"name": "time"}}]
    answer = client.chat.completions.create(model="chat", messages=MESSAGES, tools=tools, stream=stream)
    if stream:
        *parts, last = [piece.choices[0] for piece in answer]
        calls = [call for part in parts for call in part.delta.tool_calls or []]
        assert [call.index for call in calls] == [0, 1]
        assert last.finish_reason == "tool_calls"
    else:
        [choice] = answer.choices
        assert choice.finish_reason == "tool_calls" and choice.message.content is None
        calls = choice.message.tool_calls
    assert [(c.id, c.function.name, c.function.arguments) for c in calls] == [
        ("call-0", "weather", '{"i":0}'),
        ("call-1", "time", '{"i":1}'),
    ]


@pytest.mark.parametrize("encoding", [None, "float"])
def test_embeddings(client, encoding):
    """Without an encoding, the client asks for base64 and decodes it."""
    options = {} if encoding is None else {"encoding_format": encoding}
    answer = client.embeddings.create(model="embed", input="größer", **options)
    assert answer.object == "list" and answer.model == "embed"
    [item] = answer.data
    assert item.object == "embedding"
    assert item.embedding == pytest.approx([6, 1, 1 / 3, 0])
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (5, 5)


def test_embeddings_of_lists_are_batched_and_in_order(client):
    answer = client.embeddings.create(model="embed", input=["x" * n for n in range(10)], dimensions=3)
    assert [item.index for item in answer.data] == list(range(10))
    assert [item.embedding[0] for item in answer.data] == list(range(10))
    assert [item.embedding[1] for item in answer.data] == [4] * 8 + [2] * 2
    assert {item.embedding[3] for item in answer.data} == {3}
    assert answer.usage.prompt_tokens == 3 * 5


def test_calls_count_as_requests_of_the_model(server, client):
    def count():
        stats = requests.get(f"http://{server.http}/v2/models/parrot/stats", timeout=30).json()
        return stats["model_stats"][0]["inference_stats"]["success"]["count"]

    before = count()
    for _ in range(3):
        complete(client, "x", "parrot")
    assert count() == before + 3


def test_many_streams_at_once_mix_nothing(server):
    texts = [f"stream {i} says {i * 7919} ä🌞 " * (3 + i % 5) for i in range(64)]

    async def ask(client, text):
        pieces = await client.completions.create(model="echo", prompt=text, stream=True)
        return "".join([piece.choices[0].text async for piece in pieces])

    async def ask_all():
        async with connect(server, openai.AsyncOpenAI) as client:
            return await asyncio.gather(*(ask(client, text) for text in texts))

    assert asyncio.run(ask_all()) == texts


# Errors.


def test_errors_have_the_form_that_clients_know(server, client):
    with pytest.raises(openai.NotFoundError) as caught:
        complete(client, "x", "nobody")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert caught.value.type == "invalid_request_error" and "'nobody'" in caught.value.message
    with pytest.raises(openai.NotFoundError, match="does not serve 'embeddings'"):
        client.embeddings.create(model="chat", input="x")
    with pytest.raises(openai.BadRequestError, match="it broke"):
        complete(client, "fail")
    with pytest.raises(openai.BadRequestError, match="it broke"):
        complete(client, "fail", stream=True)
    with pytest.raises(openai.InternalServerError, match="it broke"):
        complete(client, "break")
    reply = requests.get(f"http://{server.http}/v1/completions", timeout=30)
    assert reply.status_code == 405 and reply.json()["error"]["message"] == "Method Not Allowed"


def test_an_error_in_a_stream_ends_it(client):
    seen = []
    with pytest.raises(openai.APIError, match="it broke"):
        for piece in complete(client, "break", stream=True):
            seen.append(piece.choices[0].text)
    assert seen == ["whole "]


def test_a_wrong_contract_is_named(server, client):
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="wrong", messages=MESSAGES)
    assert "parameter 'openai' of model 'wrong': 'chat' needs an input 'text_input'" in caught.value.message


def test_what_the_server_or_the_model_cannot_do_is_refused(client):
    for options, param in (
        ({"n": 2}, "n"),
        ({"best_of": 3}, "best_of"),
        ({"logprobs": 1}, "logprobs"),
        ({"echo": True}, "echo"),
        ({"suffix": "x"}, "suffix"),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            complete(client, "x", **options)
        assert caught.value.param == param
    tools = [{"type": "function", "function": {"name": "f"}}]
    with pytest.raises(openai.BadRequestError, match="no input of that name"):
        client.chat.completions.create(model="echo", messages=MESSAGES, tools=tools)


@pytest.mark.parametrize("body", ["", "{", "[1]", "7", '{"model":}', '{"model":"echo","prompt":"x"', b"\xff\xfe"])
@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings"])
def test_what_is_no_json_object_is_refused(server, path, body):
    reply = post(server, path, body)
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("open_, close", ["[]", ("{\"a\":", "}")])
def test_deep_json_is_refused(server, open_, close):
    depth = 100_000
    reply = post(server, "completions", f'{{"model":"echo","prompt":{open_ * depth}1{close * depth}}}')
    assert reply.status_code == 400 and "deeper than 100 levels" in reply.text


VALUES = {
    "string": "x",
    "integer": 1,
    "number": 0.5,
    "boolean": False,
    "array": [],
    "list": ["x"],
    "object": {},
    "nested": [[1]],
}
# What each field takes; everything else has to be refused.
TYPES = {
    "model": {"string"},
    "user": {"string"},
    "messages": set(),
    "stream": {"boolean"},
    "stream_options": set(),  # not without a stream
    "max_tokens": {"integer"},
    "max_completion_tokens": {"integer"},
    "temperature": {"integer", "number"},
    "top_p": {"integer", "number"},
    "n": {"integer"},
    "seed": {"integer"},
    "presence_penalty": {"integer", "number"},
    "frequency_penalty": {"integer", "number"},
    "logit_bias": {"object"},
    "logprobs": {"boolean"},
    "top_logprobs": {"integer"},
    "stop": {"string", "array", "list"},
    "tools": {"array", "list", "nested"},
    "tool_choice": {"string", "object"},
    "parallel_tool_calls": {"boolean"},
    "response_format": {"object"},
    "metadata": {"object"},
}


@pytest.mark.parametrize("field", TYPES)
def test_fields_of_wrong_types_are_named(server, field):
    for kind, value in VALUES.items():
        reply = post(server, "chat/completions", {"model": "chat", "messages": MESSAGES, field: value})
        if kind not in TYPES[field]:
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, field), (kind, reply.text)
        elif field not in ("model", "tools"):
            assert reply.status_code == 200, (kind, reply.text)


json_values = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: strategies.lists(inner, max_size=3)
    | strategies.dictionaries(strategies.sampled_from(["type", "text", "role", "content", "function", "name"]), inner),
    max_leaves=6,
)


@hypothesis.given(
    strategies.sampled_from(["chat/completions", "completions", "embeddings"]),
    strategies.sampled_from(["chat", "echo", "embed", "ensemble"]),
    strategies.dictionaries(strategies.sampled_from([*TYPES, "prompt", "input", "encoding_format"]), json_values),
)
@hypothesis.settings(max_examples=150, derandomize=True, deadline=None, database=None)
def test_no_body_is_the_servers_fault(server, path, model, fields):
    body = {"messages": MESSAGES, "prompt": "x", "input": "x", "model": model} | fields
    reply = post(server, path, body)
    # What a model makes of odd tools is its own business.
    if "tools" not in fields:
        assert reply.status_code in (200, 400, 404), (body, reply.text)


# Clients that leave.


def test_a_client_that_leaves_a_stream_cancels_the_request(client, tmp_path):
    stream = complete(client, f"forever {tmp_path / 'cancelled'}", stream=True)
    assert next(iter(stream)).choices[0].text == "and "
    stream.close()
    servers.wait_until((tmp_path / "cancelled").exists, "the model to be cancelled")


def test_a_client_that_leaves_while_it_waits_cancels_the_request(server, tmp_path):
    body = json.dumps({"model": "echo", "prompt": f"forever {tmp_path / 'cancelled'}"})
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
        connection.sendall((head + body).encode())
        servers.wait_until((tmp_path / "cancelled.begun").exists, "the model to begin")
    servers.wait_until((tmp_path / "cancelled").exists, "the model to be cancelled")


def test_a_stop_sequence_cancels_the_request(client, tmp_path):
    answer = complete(client, f"forever {tmp_path / 'cancelled'}", stop="on on")
    assert answer.choices[0].text == "and "
    servers.wait_until((tmp_path / "cancelled").exists, "the model to be cancelled")


# Who may.


@pytest.fixture(scope="module")
def guarded(require_server, repository, tmp_path_factory):
    """A server that knows one client, who may use some models, one request at a time."""
    folder = tmp_path_factory.mktemp("keys")
    rule = {
        "id": "one",
        "sha256": hashlib.sha256(KEY.encode()).hexdigest(),
        "scopes": ["infer"],
        "models": ["echo", "parrot", "unserved"],
    }
    limited = {
        "id": "two",
        "sha256": hashlib.sha256(LIMITED_KEY.encode()).hexdigest(),
        "scopes": ["infer"],
        "limits": {"requests_per_second": 50},
    }
    (folder / "keys.json").write_text(json.dumps({"keys": [rule, limited]}))
    args = [
        f"--api-keys={folder / 'keys.json'}",
        "--max-requests-per-model=1",
        "--http-max-input-size=1000",
        "--http-cors-allow-origin=https://page.example",
        f"--trace-config=triton,file={folder / 'trace'}",
        "--trace-config=triton,log-frequency=1",
        "--trace-config=rate=1",
        "--trace-config=level=TIMESTAMPS",
    ]
    with servers.running(
        repository, args=args, env=python_models.ENVIRONMENT, log_dir=tmp_path_factory.mktemp("log")
    ) as running:
        running.traces = folder
        yield running


def test_keys_and_lists_of_models(guarded):
    with pytest.raises(openai.AuthenticationError) as caught:
        connect(guarded, key="wrong").models.list()
    assert caught.value.code == "invalid_api_key"
    client = connect(guarded, key=KEY)
    assert [model.id for model in client.models.list()] == ["echo", "parrot"]
    assert complete(client, "x").choices[0].text == "x"
    for call in (
        lambda: client.models.retrieve("chat"),
        lambda: client.chat.completions.create(model="chat", messages=MESSAGES),
        lambda: client.embeddings.create(model="embed", input="x"),
    ):
        with pytest.raises(openai.PermissionDeniedError, match="may not use the model"):
            call()


def test_a_client_with_a_rate_is_told_what_is_left(guarded):
    client = connect(guarded, key=LIMITED_KEY)
    completions = client.completions.with_raw_response
    chat = client.chat.completions.with_raw_response
    for reply in (
        completions.create(model="echo", prompt="x"),
        completions.create(model="echo", prompt="x", stream=True),
        chat.create(model="chat", messages=MESSAGES),
        client.embeddings.with_raw_response.create(model="embed", input="x"),
    ):
        assert reply.headers["RateLimit-Limit"] == "50"
        assert 0 <= int(reply.headers["RateLimit-Remaining"]) < 50
        assert reply.headers["RateLimit-Reset"] == "1"
        reply.parse()


def test_limits_hold(guarded, tmp_path):
    client = connect(guarded, key=KEY)
    with pytest.raises(openai.BadRequestError, match="--http-max-input-size"):
        complete(client, "x" * 1000)
    stream = complete(client, f"forever {tmp_path / 'cancelled'}", stream=True)
    next(iter(stream))
    with pytest.raises(openai.InternalServerError, match="--max-requests-per-model") as caught:
        complete(client, "x")
    assert caught.value.status_code == 503 and int(caught.value.response.headers["Retry-After"]) > 0
    stream.close()
    servers.wait_until((tmp_path / "cancelled").exists, "the model to be cancelled")


def test_requests_are_traced_under_the_id_of_the_answer(guarded):
    answer = complete(connect(guarded, key=KEY), "x")
    servers.wait_until(
        lambda: any(answer.id in file.read_text() for file in guarded.traces.glob("trace*")), "the trace"
    )


def test_pages_of_other_origins(guarded):
    url = f"http://{guarded.http}/v1/chat/completions"
    reply = requests.options(
        url, headers={"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}, timeout=30
    )
    assert reply.status_code == 200
    assert reply.headers["Access-Control-Allow-Origin"] == "https://page.example"
