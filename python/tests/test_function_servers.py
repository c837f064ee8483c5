# SPDX-License-Identifier: Apache-2.0
"""Servers of functions: the ports that they choose, and how often they start."""

import socket

import pytest

import nereid
from nereid._functions import _serve

OFF = {"http_port": None, "grpc_port": None, "metrics_port": None}


@nereid.model
def same(x: int) -> int:
    return x


@pytest.fixture
def usual(monkeypatch):
    """Three free ports in place of 8000, 8001 and 8002."""
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        ports = []
        for held in (one, two, three):
            held.bind(("127.0.0.1", 0))
            ports.append(held.getsockname()[1])
    defaults = {name: _serve._Usual(port) for name, port in zip(("http_port", "grpc_port", "metrics_port"), ports)}
    monkeypatch.setattr(nereid.serve, "__kwdefaults__", {**nereid.serve.__kwdefaults__, **defaults})
    return ports


@pytest.mark.parametrize("text", [False, True])
def test_a_usual_port_gives_way_to_one_that_was_chosen_for_another_service(usual, capfd, text):
    _, grpc, metrics = usual
    with nereid.serve(same, block=False, http_port=str(grpc) if text else grpc) as server:
        assert (server.http_port, server.metrics_port) == (grpc, metrics)
        assert server.grpc_port not in (None, *usual)
        assert f"port {grpc} is taken by HTTP: gRPC is on port {server.grpc_port}" in capfd.readouterr().err
        assert server.infer(same, x=1) == 1


def test_all_usual_ports_give_way(usual):
    http, grpc, metrics = usual
    with nereid.serve(same, block=False, metrics_port=http, grpc_port=metrics) as server:
        assert (server.grpc_port, server.metrics_port) == (metrics, http)
        assert server.http_port not in (None, *usual)


@pytest.mark.parametrize("port", ["x", "", 8000.5, True, [8000]])
def test_what_is_no_port_is_an_error_that_names_the_setting(port):
    with pytest.raises(nereid.InvalidArgumentError, match="grpc_port must be a port from 0 to 65535"):
        nereid.serve(same, block=False, **{**OFF, "grpc_port": port})


def test_a_port_chosen_for_two_services_is_an_error(usual):
    http, grpc, _ = usual
    with pytest.raises(nereid.TritonError, match=str(grpc)):
        nereid.serve(same, block=False, http_port=grpc, grpc_port=grpc)


def test_a_server_that_was_stopped_does_not_start_without_its_functions():
    server = nereid.serve(same, block=False, **OFF)
    server.stop()
    with pytest.raises(nereid.InvalidArgumentError, match="was stopped and cannot start again"):
        server.start()
    with pytest.raises(nereid.InvalidArgumentError, match="cannot start again"), server:
        pass
    assert not server.is_running()
    with nereid.serve(same, block=False, **OFF) as another:
        assert another is not server and another.infer(same, x=1) == 1


def test_a_server_that_runs_says_so_when_it_is_started_again():
    with nereid.serve(same, block=False, **OFF) as server:
        with pytest.raises(nereid.InvalidArgumentError, match="already started"):
            server.start()
        assert server.infer(same, x=1) == 1
