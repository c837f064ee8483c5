# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what is in flight is finished, and the process ends with status 0."""

import concurrent.futures
import http.client
import json
import queue
import re
import signal
import socket
import threading

import grpc
import numpy as np
import pytest
from harness import models, trouble, wire
from harness import server as servers
from harness.clients import Client
from tritonclient.grpc import service_pb2, service_pb2_grpc


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1], 1, 8))
    return empty_repository


def ask(kind, server, command):
    client = Client(kind, server)
    result = client.infer("gated", [trouble.tensor(client, command)])
    assert result.as_numpy("DONE").tolist() == [command]
    return True


def pending(server):
    """Requests that have arrived and are not yet executed."""
    return server.scrape()[("nv_inference_pending_request_count", "gated")]


@pytest.mark.newer
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_requests_in_flight_are_answered(empty_repository, start_server, kind, number):
    trouble.write(empty_repository, "gated")
    server = start_server(empty_repository, args=["--exit-timeout-secs=120"])
    ask(kind, server, trouble.NOTHING)
    what = {"http": "HTTP service connections", "grpc": "gRPC service connections and inference handlers"}[kind]
    # One executes and the other waits until the gate is opened, so that the server has them for as long as that takes.
    with concurrent.futures.ThreadPoolExecutor() as pool, trouble.closed_gate(empty_repository, "gated"):
        requests = [pool.submit(ask, kind, server, trouble.WAIT)]
        with trouble.waiting_at_gate(empty_repository, "gated"):
            requests.append(pool.submit(ask, kind, server, trouble.NOTHING))
            servers.wait_until(lambda: pending(server) == 1, "the second request to wait")
            server.signal(number)
            server.wait_for_log("Model 'gated' (version 1) has 2 in-flight inferences")
            servers.wait_until(lambda: re.search(rf"Timeout \d+: Found [1-9]\d* {what}", server.log), what)
        assert all(request.result(timeout=60) for request in requests)
    assert server.wait() == 0


@pytest.mark.newer
def test_idle_connections_do_not_hold_the_server(repository, start_server):
    server = start_server(repository)
    with wire.Connection(server) as idle, socket.create_connection(("127.0.0.1", server.grpc_port)):
        assert idle.request("GET", "/v2/health/live").status == 200
        server.signal()
        assert server.wait(timeout=20) == 0


@pytest.mark.newer
def test_a_half_sent_request_does_not_hold_the_server(repository, start_server):
    server = start_server(repository)
    with wire.Connection(server) as connection:
        connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        assert server.is_live()
        server.signal()
        assert server.wait(timeout=20) == 0


@pytest.mark.newer
def test_a_second_start_on_the_same_ports_works_at_once(repository, start_server):
    first = start_server(repository)
    with wire.Connection(first) as connection:
        assert connection.request("GET", "/v2/health/live").status == 200
        first.stop()
    args = [
        f"--http-port={first.http_port}",
        f"--grpc-port={first.grpc_port}",
        f"--metrics-port={first.metrics_port}",
    ]
    second = start_server(repository, args=args, wait=False)
    second.http_port, second.http = first.http_port, first.http
    servers.wait_until(second.is_ready, "the second server is ready on the same port")


@pytest.mark.newer
def test_an_open_stream_is_ended_once_its_requests_are(repository, start_server):
    trouble.write(repository, "gated")
    server = start_server(repository, args=["--exit-timeout-secs=120"])
    requests = queue.Queue()
    with grpc.insecure_channel(server.grpc) as channel, trouble.closed_gate(repository, "gated"):
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        idle = stub.ModelStreamInfer(iter(queue.Queue().get, None))
        busy = stub.ModelStreamInfer(iter(requests.get, None))
        request = service_pb2.ModelInferRequest(model_name="gated")
        request.inputs.add(name="COMMAND", datatype="INT32", shape=[1]).contents.int_contents.append(trouble.WAIT)
        requests.put(request)
        with trouble.waiting_at_gate(repository, "gated"):
            server.signal()
            server.wait_for_log("Model 'gated' (version 1) has 1 in-flight inferences")
        answer = next(busy)
        assert answer.infer_response.raw_output_contents[0] == np.int32(trouble.WAIT).tobytes()
        for stream in (idle, busy):
            with pytest.raises(grpc.RpcError) as caught:
                next(stream)
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
            assert "shutting down" in caught.value.details()
        requests.put(None)
        assert server.wait(timeout=60) == 0


class HttpClient:
    """One connection to the first of some servers, or to the next one when told to close it."""

    def __init__(self, ports):
        self.ports = list(ports)
        self.connection = None

    def ask(self):
        """The version of the model that responded."""
        body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]}]}'
        while self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=60)
            try:
                self.connection.connect()
            except ConnectionRefusedError:
                self.leave()
        self.connection.request("POST", "/v2/models/quick/infer", body)
        with self.connection.getresponse() as response:
            assert response.status == 200
            result = json.loads(response.read())
        if response.headers.get("Connection") == "close":
            self.leave()
        assert result["outputs"][0]["data"] == [1.0]
        return result["model_version"]

    def leave(self):
        self.connection.close()
        self.connection = None
        self.ports.pop(0)


class GrpcClient:
    """One channel with the addresses of all servers: the library leaves one that sends GOAWAY."""

    def __init__(self, ports):
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(f"ipv4:{addresses}"))

    def ask(self):
        """The version of the model that responded."""
        request = service_pb2.ModelInferRequest(model_name="quick")
        request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 1]).contents.fp32_contents.append(1)
        response = self.stub.ModelInfer(request, timeout=60)
        assert np.frombuffer(response.raw_output_contents[0], np.float32) == [1]
        return response.model_version


@pytest.mark.newer
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_stop_under_load_loses_no_request(tmp_path, start_server, kind):
    """Of clients that follow Connection: close and GOAWAY; without --drain-secs."""
    running = []
    for version in (1, 2):
        config = models.identity_config("FP32", [-1], 1, 8)
        models.write_model(tmp_path / str(version), "quick", config, {str(version): {}})
        running.append(start_server(tmp_path / str(version)))
    ports = [server.http_port if kind == "http" else server.grpc_port for server in running]
    have_begun = threading.Barrier(9, timeout=60)

    def work():
        client = (HttpClient if kind == "http" else GrpcClient)(ports)
        for _ in range(20):
            assert client.ask() == "1"
        have_begun.wait()
        while client.ask() == "1":
            pass
        for _ in range(20):
            assert client.ask() == "2"

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        workers = [pool.submit(work) for _ in range(8)]
        have_begun.wait()
        running[0].signal()
        for worker in workers:
            worker.result(timeout=60)
    assert running[0].wait() == 0
