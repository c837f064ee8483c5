# SPDX-License-Identifier: Apache-2.0
"""Many clients at once: every one gets its own answer, and the metrics count what they counted.

The load comes from asyncio, so that a thousand clients cost one thread.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import threading

import grpc
import numpy as np
import onnxruntime
import pytest
from harness import h2, models, wire
from harness.clients import Client
from tritonclient.grpc import service_pb2, service_pb2_grpc

CLIENTS = 1000
REQUESTS_EACH = 5


@pytest.fixture(scope="module")
def oracle(onnx):
    """What `digits` answers to one image, computed by onnxruntime in this process."""
    path = models.EXAMPLES / "digits" / "1" / "model.onnx"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def answer(images):
        return session.run(["label", "probabilities"], {"pixels": images})

    return answer


def image(number):
    """An image that no other client sends."""
    return np.random.default_rng(number).integers(0, 17, (1, 64)).astype(np.float32)


def tensor(content, datatype):
    return np.frombuffer(content, datatype)


def http_request(number):
    body, headers = wire.infer_body([("pixels", "FP32", [1, 64], image(number).tobytes())], id=str(number))
    text = json.loads(body[: int(headers["Inference-Header-Content-Length"])])
    text["outputs"] = [
        {"name": name, "parameters": {"binary_data": True}} for name in ("label", "probabilities")
    ]
    head = json.dumps(text).encode()
    return wire.encode(
        "POST",
        "/v2/models/digits/infer",
        head + image(number).tobytes(),
        {"Inference-Header-Content-Length": str(len(head))},
    )


async def http_answer(reader):
    """(id, label, probabilities) of the next reply."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in head[1:] if line)}
    body = await reader.readexactly(int(headers["content-length"]))
    assert head[0].split(" ")[1] == "200", body
    length = int(headers["inference-header-content-length"])
    content, offset, values = json.loads(body[:length]), length, {}
    for output in content["outputs"]:
        size = output["parameters"]["binary_data_size"]
        kind = np.int64 if output["datatype"] == "INT64" else np.float32
        values[output["name"]] = tensor(body[offset : offset + size], kind)
        offset += size
    return content["id"], values["label"], values["probabilities"]


async def http_client(server, number, gate, answers):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.http_port)
    await gate.wait()
    for i in range(REQUESTS_EACH):
        tag = number * REQUESTS_EACH + i
        writer.write(http_request(tag))
        answers[tag] = await http_answer(reader)
    writer.close()


def grpc_request(number):
    request = service_pb2.ModelInferRequest(model_name="digits", id=str(number))
    request.inputs.add(name="pixels", datatype="FP32", shape=[1, 64])
    request.raw_input_contents.append(image(number).tobytes())
    return request


async def grpc_client(server, number, gate, answers):
    # Without this option all channels of a process would share one connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(server.grpc, options) as channel:
        await channel.channel_ready()
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        await gate.wait()
        for i in range(REQUESTS_EACH):
            tag = number * REQUESTS_EACH + i
            reply = await stub.ModelInfer(grpc_request(tag), timeout=120)
            contents = dict(zip([o.name for o in reply.outputs], reply.raw_output_contents))
            answers[tag] = (
                reply.id,
                tensor(contents["label"], np.int64),
                tensor(contents["probabilities"], np.float32),
            )


async def all_clients(client, server, count):
    gate, answers = asyncio.Event(), {}
    tasks = [asyncio.create_task(client(server, number, gate, answers)) for number in range(count)]
    # Let them connect, so that they all start at once.
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    return answers


def check(answers, oracle):
    labels, probabilities = oracle(np.concatenate([image(tag) for tag in sorted(answers)]))
    for row, tag in enumerate(sorted(answers)):
        name, label, probability = answers[tag]
        assert name == str(tag), "the answer to another request"
        np.testing.assert_allclose(probability, probabilities[row], rtol=1e-4, atol=1e-5)
        assert label[0] == labels.reshape(-1)[row]


@pytest.mark.slow
@pytest.mark.parametrize("client", [http_client, grpc_client], ids=["http", "grpc"])
def test_a_thousand_clients_each_get_their_own_answer(server, oracle, client):
    answers = asyncio.run(all_clients(client, server, CLIENTS))
    assert len(answers) == CLIENTS * REQUESTS_EACH
    check(answers, oracle)


def test_both_protocols_at_once(server, oracle):
    async def both():
        return await asyncio.gather(
            all_clients(http_client, server, 100), all_clients(grpc_client, server, 100)
        )

    for answers in asyncio.run(both()):
        check(answers, oracle)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_requests_of_sixteen_clients_are_batched_and_counted(server, onnx, kind):
    client_count, each = 16, 100
    before = server.scrape()
    batch_sizes = [1 + i % 3 for i in range(client_count)]
    errors = []
    barrier = threading.Barrier(client_count)

    def work(number):
        try:
            client = Client(kind, server)
            pixels = np.concatenate([image(number)] * batch_sizes[number])
            barrier.wait(timeout=60)
            for _ in range(each):
                result = client.infer("digits", [client.input("pixels", pixels, "FP32")])
                assert result.as_numpy("label").shape[0] == batch_sizes[number]
            client.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(client_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors

    after = server.scrape()

    def grown(name):
        return after[(name, "digits")] - before[(name, "digits")]

    requests, inferences = client_count * each, sum(batch_sizes) * each
    assert grown("nv_inference_request_success") == requests
    assert grown("nv_inference_request_failure") == 0
    assert grown("nv_inference_count") == inferences
    assert grown("nv_inference_exec_count") <= requests


@pytest.mark.newer
def test_batches_grow_to_what_is_waiting(server, oracle, onnx):
    """Sixteen connections that ask at the same moment, again and again.

    A client in Python is too slow to keep sixteen requests waiting; so the server is held while
    they are sent.
    """
    before, rounds, answers = server.scrape(), 50, {}
    connections = [wire.Connection(server) for _ in range(16)]
    requests = [http_request(tag) for tag in range(16)]
    for _ in range(rounds):
        server.signal(signal.SIGSTOP)
        try:
            for connection, request in zip(connections, requests):
                connection.send(request)
        finally:
            server.signal(signal.SIGCONT)
        for tag, connection in enumerate(connections):
            head, tail = wire.split_reply(connection.receive())
            sizes = {o["name"]: o["parameters"]["binary_data_size"] for o in head["outputs"]}
            assert [o["name"] for o in head["outputs"]] == ["label", "probabilities"]
            label, probabilities = tail[: sizes["label"]], tail[sizes["label"] :]
            answers[tag] = head["id"], tensor(label, np.int64), tensor(probabilities, np.float32)
        check(answers, oracle)
    for connection in connections:
        connection.socket.close()
    check_batching(before, server.scrape(), rounds * 16, most=0.5)


@pytest.mark.newer
@pytest.mark.skipif(shutil.which("h2load") is None, reason="h2load is not installed")
def test_batches_grow_over_grpc(server, onnx, tmp_path):
    message = grpc_request(1).SerializeToString()
    body = tmp_path / "body"
    body.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    before, count = server.scrape(), 8000
    command = ["h2load", "-n", str(count), "-c", "16", "-m", "1", "-d", str(body)]
    command += ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    command.append(f"http://{server.grpc}/inference.GRPCInferenceService/ModelInfer")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert f"{count} succeeded, 0 failed, 0 errored" in done.stdout, done.stdout + done.stderr
    check_batching(before, server.scrape(), count, most=0.8)


def check_batching(before, after, count, most):
    """Every request is counted once, and the model ran at most for this share of them."""

    def grown(name):
        return after[(name, "digits")] - before[(name, "digits")]

    assert grown("nv_inference_request_success") == count
    assert grown("nv_inference_count") == count
    assert grown("nv_inference_exec_count") <= count * most


def test_clients_that_leave_do_not_disturb_those_that_stay(server, oracle):
    async def run():
        gate, answers = asyncio.Event(), {}
        gate.set()

        async def leave(number):
            _, writer = await asyncio.open_connection("127.0.0.1", server.http_port)
            writer.write(http_request(number))
            await writer.drain()
            writer.transport.abort()

        await asyncio.gather(
            *(leave(100_000 + n) for n in range(200)),
            *(http_client(server, n, gate, answers) for n in range(50)),
        )
        return answers

    check(asyncio.run(run()), oracle)


def test_responses_leave_in_the_order_of_their_requests_if_configured(start_server, empty_repository):
    """D-14. By hand, because grpcio calls back in another order now and then."""
    count = 200
    config = models.identity_config("FP32", [-1], max_batch_size=1, extra="dynamic_batching { preserve_ordering: true }\n")
    models.write_model(empty_repository, "m", config.replace("count: 1", "count: 4"))
    server = start_server(empty_repository)
    request = service_pb2.ModelInferRequest(model_name="m")
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 1])
    request.raw_input_contents.append(np.zeros(1, np.float32).tobytes())
    connection = h2.Connection(server)
    for _ in range(10):
        first = connection.next_stream
        connection.send_calls("ModelInfer", h2.message(request.SerializeToString()), count)
        assert list(connection.await_ends(count)) == list(range(first, connection.next_stream, 2))
    connection.close()
