# SPDX-License-Identifier: Apache-2.0
"""A server that has no descriptors left for more connections still says how it is."""

import resource
import socket

import grpc
import psutil
import pytest
from harness import server as servers
from harness import wire
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer


def is_served(server):
    try:
        return wire.request(server, "GET", "/v2/models/id_FP32").status == 200
    except (OSError, EOFError):  # there is no room, or it was late
        return False


def test_health_is_answered_beside_many_idle_connections(require_server, repository_path):
    with servers.running(repository_path) as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (256, 256))
        idle = []
        for _ in range(700):
            connection = socket.create_connection(("127.0.0.1", server.http_port), 10)
            idle.append(connection)
        # All have been looked at: those for which there was no room were told so.
        assert b" 503 " in idle[-1].recv(100)
        servers.wait_until(server.is_ready, "health over HTTP")
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            assert stub.ServerLive(pb.ServerLiveRequest(), wait_for_ready=True, timeout=60).live
        # Idle ones make room for those who have something to say.
        servers.wait_until(lambda: is_served(server), "room for requests")
        assert psutil.Process(server.pid).num_fds() < 256
        for connection in idle:
            connection.close()
