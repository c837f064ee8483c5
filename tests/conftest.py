# SPDX-License-Identifier: Apache-2.0
"""Fixtures of every test that talks to a running server; see harness/server.py for which one."""

import os
import pathlib
import sys

import pytest
from xdist.scheduler import LoadScopeScheduling

# Before anything imports onnxruntime, whose telemetry is on otherwise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

from harness import models, repository, transports  # noqa: E402
from harness import server as servers  # noqa: E402
from harness.clients import Client  # noqa: E402


# Folders whose tests share what they install or start; of all others, each file is by itself.
ONE_AT_A_TIME = ("packages", "deploy")


class ByPlace(LoadScopeScheduling):
    """Gives all tests of a place to the same worker, one after the other."""

    def _split_scope(self, nodeid):
        path = pathlib.PurePath(nodeid.partition("::")[0])
        return str(path.parent if path.parent.name in ONE_AT_A_TIME else path)


def pytest_xdist_make_scheduler(config, log):
    return ByPlace(config, log)


def pytest_collection_modifyitems(items):
    for item in items:
        if servers.REFERENCE and item.get_closest_marker("newer"):
            item.add_marker(pytest.mark.skip(reason="not in the release of the reference server"))


def pytest_report_header():
    return f"server under test: {servers.binary()}, backends: {servers.backends()}"


@pytest.fixture(scope="session")
def require_server():
    """Fails, and does not skip, when there is no server to test: a green run must mean something."""
    if not servers.binary().exists():
        pytest.fail(f"no server at {servers.binary()}: build it, or set NEREID_BUILD", pytrace=False)


@pytest.fixture(scope="session")
def repository_path(tmp_path_factory):
    """The repository of the shared server."""
    path = tmp_path_factory.mktemp("repository")
    repository.write(path, with_onnx=servers.has_backend("onnxruntime"))
    return path


@pytest.fixture(scope="session")
def server(require_server, repository_path, tmp_path_factory):
    """The server that most tests share. Whoever changes its state starts one of their own."""
    with servers.running(repository_path, log_dir=tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module", params=transports.ALL)
def any_server(request, require_server, repository_path, tmp_path_factory):
    """A server of the shared repository over each transport in turn, without API keys and with them."""
    transport = transports.ALL[request.param]()
    with servers.running(
        repository_path, transport=transport, log_dir=tmp_path_factory.mktemp("server")
    ) as running:
        yield running
    transport.close()


@pytest.fixture
def start_server(require_server, tmp_path):
    """Starts servers that end with the test, which also checks that each exits with status 0."""
    started = []

    def start(*repositories, **options):
        options.setdefault("log_dir", tmp_path)
        server = servers.start(*repositories, **options)
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture
def empty_repository(tmp_path):
    path = tmp_path / "models"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def onnx(require_server):
    """Asked for by tests that need the ONNX Runtime backend."""
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime backend")
    return models


@pytest.fixture(params=["http", "grpc"])
def kind(request):
    """The protocol that a test's clients use."""
    return request.param


@pytest.fixture
def client_of():
    """Makes harness.clients.Client of a kind for a server; all are closed at the end of the test."""
    clients = []

    def make(kind, server):
        clients.append(Client(kind, server))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
