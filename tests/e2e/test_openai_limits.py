# SPDX-License-Identifier: Apache-2.0
"""What clients and models can make the routes of OpenAI's API hold (S23): large bodies, clients that do not read, and
answers without an end."""

import json
import socket

import pytest
from harness import openai_models, python_models, wire
from harness import server as servers

pytestmark = pytest.mark.newer

MIB = 1 << 20
BACKLOG = 1 * MIB
TEXT = openai_models.TEXT

# "text": sends text, "calls": calls of tools, each as fast as it can until it is cancelled; "open": a call of a tool
# whose text does not end, in pieces. Then it makes the file that the prompt names.
TALKER = '''
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0].decode()
            threading.Thread(target=self.answer, args=(request.get_response_sender(), prompt)).start()

    def answer(self, sender, prompt):
        kind, path = prompt.removeprefix("user: ").split()[:2]
        while not sender.is_cancelled():
            text = "x" * 65536 if kind == "text" else ""
            call = {"function": {"name": "f", "arguments": "y" * 65536}}
            calls = {"text": "", "calls": json.dumps([call]), "open": '[{"function": {"name": "' + "z" * 65536}[kind]
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("text_output", np.array([text.encode()], object)),
                pb_utils.Tensor("tool_calls", np.array([calls.encode()], object))]))
        open(path, "w").close()
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''
TALKER_CONFIG = f"""
max_batch_size: 0
model_transaction_policy {{ decoupled: true }}
input [ {{ name: "text_input" {TEXT} }}, {{ name: "tools" {TEXT} optional: true }} ]
output [ {{ name: "text_output" {TEXT} }}, {{ name: "tool_calls" {TEXT} }} ]
parameters {{ key: "openai" value {{ string_value: "chat,completions" }} }}
"""


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    openai_models.write(repository)
    python_models.write(repository, "talker", TALKER, TALKER_CONFIG)
    args = ["--model-control-mode=explicit", "--load-model=parrot", "--load-model=talker",
            f"--max-stream-backlog={BACKLOG}"]  # fmt: skip
    with servers.running(
        repository, args=args, env=python_models.ENVIRONMENT, log_dir=tmp_path_factory.mktemp("log")
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def server_is_as_before(server):
    before = server.resident_bytes()
    yield
    assert server.process.poll() is None
    assert complete(server, "parrot", "x").json()["choices"][0]["text"] == "x"
    if not servers.is_sanitized():
        servers.wait_until(lambda: server.resident_bytes() - before < 64 * MIB, "memory goes back", timeout=30)


def complete(server, model, prompt, **more):
    return wire.request(server, "POST", "/v1/completions", json.dumps({"model": model, "prompt": prompt, **more}))


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings"])
@pytest.mark.parametrize("size", [65 * MIB, 400 * MIB])
def test_s23_a_body_beyond_the_limit_is_not_kept(server, path, size):
    before = server.resident_bytes()
    with wire.Connection(server, timeout=60 * servers.SLOWNESS) as connection:
        connection.send(connection.encode("POST", f"/v1/{path}", b"", {"Content-Length": str(size)}))
        for _ in range(size // MIB):
            connection.send(b" " * MIB)
            if not servers.is_sanitized():
                assert server.resident_bytes() - before < 80 * MIB
        reply = connection.receive()
    assert reply.status == 400 and "maximum allowed input size of 67108864 bytes" in reply.error


def test_s23_a_body_of_almost_64_mebibytes_is_served_and_forgotten(server):
    for _ in range(3):
        reply = complete(server, "parrot", "x", metadata={"note": "y" * (63 * MIB)})
        assert reply.status == 200 and reply.json()["choices"][0]["text"] == "x"


@pytest.mark.parametrize("members", [
    '"prompt":' + "[" * 30_000_000,
    '"messages":' + '[{"role":"user","content":"x"},' * 500_000,
    '"prompt":"' + "\\ud83c" * 5_000_000 + '"',
    '"stop":[' + '"x",' * 5_000_000 + '"x"],"prompt":"x"',
], ids=["nested", "open", "half characters", "stops"])  # fmt: skip
def test_s23_large_bodies_that_are_wrong_are_told(server, members):
    reply = wire.request(server, "POST", "/v1/completions", '{"model":"parrot",' + members + "}")
    assert reply.status == 400 and reply.error


@pytest.mark.parametrize("kind", ["text", "calls"])
def test_s23_a_client_that_never_reads_is_left(server, tmp_path, kind):
    before = server.resident_bytes()
    messages = [{"role": "user", "content": f"{kind} {tmp_path / 'done'}"}]
    body = json.dumps({"model": "talker", "messages": messages, "stream": True}).encode()
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", server.http_port))
        reader.sendall(wire.encode("POST", "/v1/chat/completions", body))
        most = 0

        def is_left():
            nonlocal most
            most = max(most, server.resident_bytes() - before)
            # Others are served meanwhile.
            assert complete(server, "parrot", "x").status == 200
            return (tmp_path / "done").exists()

        servers.wait_until(is_left, "the model to be cancelled", timeout=60)
    if not servers.is_sanitized():
        assert most < 32 * MIB


def test_s23_an_answer_without_an_end_is_given_up(server, tmp_path):
    """A client that wants it whole would have the server collect it."""
    before = server.resident_bytes()
    for kind in ("text", "calls"):
        done = tmp_path / kind
        reply = complete(server, "talker", f"{kind} {done}")
        assert reply.status == 500 and f"has more than {BACKLOG} bytes" in reply.error, reply
        servers.wait_until(done.exists, "the model to be cancelled")
    if not servers.is_sanitized():
        assert server.resident_bytes() - before < 32 * MIB


@pytest.mark.parametrize("stream", [False, True])
def test_s23_a_call_of_a_tool_that_never_closes_is_an_error(server, tmp_path, stream):
    tools = [{"type": "function", "function": {"name": "f"}}]
    messages = [{"role": "user", "content": f"open {tmp_path / 'done'}"}]
    body = {"model": "talker", "messages": messages, "tools": tools, "stream": stream}
    reply = wire.request(server, "POST", "/v1/chat/completions", json.dumps(body))
    assert reply.status == 500 and "tool_calls" in reply.error, reply
    servers.wait_until((tmp_path / "done").exists, "the model to be cancelled")
