# SPDX-License-Identifier: Apache-2.0
"""Clients that come, go and change things at the same time. Rows S10 and S16 are of the security cases;
the sanitizers' builds run these tests, too."""

import concurrent.futures
import random
import threading
import uuid

import grpc
import numpy as np
import psutil
import pytest
import tritonclient.http as httpclient
from harness import models
from harness import server as servers
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException, shared_memory

# What clients may be told while a model comes and goes.
EXPECTED = ("no available versions", "is not at ready state", "is not found", "Request cancelled")


def request(number):
    message = service_pb2.ModelInferRequest(model_name="m", id=str(number))
    message.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
    message.raw_input_contents.append(np.full(4, number, np.float32).tobytes())
    return message


def leave_streams(server, seed, count, problems):
    """Opens streams one after another and leaves each of them at a moment of chance."""
    rng = random.Random(seed)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for _ in range(count):
            metadata = (("triton_grpc_error", "true"),) if rng.random() < 0.5 else ()
            numbers = list(range(rng.randrange(1, 20)))
            call = stub.ModelStreamInfer(iter([request(number) for number in numbers]), metadata=metadata)
            leaves_after = rng.randrange(len(numbers) + 2)
            try:
                for got, reply in enumerate(call):
                    if reply.error_message:
                        if not any(text in reply.error_message for text in EXPECTED):
                            problems.append(reply.error_message)
                    else:
                        number = float(reply.infer_response.id)
                        if set(np.frombuffer(reply.infer_response.raw_output_contents[0], np.float32)) != {number}:
                            problems.append(f"another's answer to {number}")
                    if got >= leaves_after:
                        break
            except grpc.RpcError as error:
                if not any(text in error.details() for text in EXPECTED):
                    problems.append(f"{error.code()}: {error.details()}")
            call.cancel()


@pytest.mark.newer
def test_s16_streams_that_are_left_while_their_model_comes_and_goes(empty_repository, start_server):
    models.write_model(empty_repository, "m",
                       models.identity_config("FP32", [-1], max_batch_size=8, extra="dynamic_batching { }\n"))
    server = start_server(empty_repository, args=["--model-control-mode=explicit", "--load-model=m"])
    problems, over = [], threading.Event()

    def come_and_go():
        client = httpclient.InferenceServerClient(server.http)
        while not over.is_set():
            client.unload_model("m")
            client.load_model("m")
        client.close()

    changer = threading.Thread(target=come_and_go)
    changer.start()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        clients = [pool.submit(leave_streams, server, seed, 150, problems) for seed in range(4)]
        concurrent.futures.wait(clients)
    over.set()
    changer.join()
    for client in clients:
        client.result()
    assert problems == []
    assert server.is_ready()
    servers.wait_until(lambda: server.scrape()[("nv_inference_pending_request_count", "m")] == 0,
                       "nothing to be left waiting")


@pytest.mark.newer
def test_s10_the_same_regions_come_and_go(start_server, empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository, args=["--allow-client-shm=true"])
    process = psutil.Process(server.pid)
    key = f"/nereid_races_{uuid.uuid4().hex}"
    region = shared_memory.create_shared_memory_region("races", key, 4096)

    def work(seed):
        rng = random.Random(seed)
        client = httpclient.InferenceServerClient(server.http)
        for _ in range(150):
            name = f"r{rng.randrange(3)}"
            try:
                rng.choice([
                    lambda: client.register_system_shared_memory(name, key, 4096),  # noqa: B023
                    lambda: client.unregister_system_shared_memory(name),  # noqa: B023
                    client.get_system_shared_memory_status,
                ])()
            except InferenceServerException as error:
                assert "already" in str(error), error
        client.close()

    try:
        work(0)
        before = process.num_fds()
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            for done in [pool.submit(work, seed) for seed in range(32)]:
                done.result()
        with httpclient.InferenceServerClient(server.http) as client:
            client.unregister_system_shared_memory()
            assert client.get_system_shared_memory_status() == []
        servers.wait_until(lambda: process.num_fds() <= before + 2, "all descriptors to be closed")
    finally:
        shared_memory.destroy_shared_memory_region(region)
