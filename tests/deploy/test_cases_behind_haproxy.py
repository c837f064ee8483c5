# SPDX-License-Identifier: Apache-2.0
"""The cases of compat/cases through HAProxy: clients see the same protocols as without a balancer."""

import balancers
import pytest
from compat import protocol
from compat.kinds import Pool
from harness import transports
from test_behind_haproxy import balance

pytestmark = pytest.mark.newer

CASES = [(file, case) for file, case in protocol.load() if not any("command" in step["request"] for step in protocol.steps(case))]


class Front:
    """HAProxy in front of a server, as the cases see a server."""

    def __init__(self, server, folder):
        self.process = server.process
        self.balancer = balance([server], folder)
        self.http_port, self.grpc = self.balancer.http_port, self.balancer.grpc
        self.transport = transports.Tcp()

    def connect(self, service, timeout=30):
        return self.transport.connect(self, service, timeout)


@pytest.fixture(scope="module")
def get_front(require_server, repository_path, tmp_path_factory):
    """get_front(kind): HAProxy in front of a server of that kind."""
    if reason := balancers.missing("haproxy"):
        pytest.skip(f"deploy/proxies is NOT tested with it: {reason}")
    pool = Pool(lambda kind: tmp_path_factory.mktemp(kind), repository_path)
    fronts = {}

    def get(kind):
        if kind not in fronts:
            fronts[kind] = Front(pool.get(kind), tmp_path_factory.mktemp("haproxy"))
        return fronts[kind]

    yield get
    for front in fronts.values():
        front.balancer.stop()
    pool.stop()


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{file}: {case['name']}") for file, case in CASES])
def test_case(case, get_front):
    protocol.run(case, get_front)
