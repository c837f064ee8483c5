# SPDX-License-Identifier: Apache-2.0
"""The cases of compat/cases through each balancer of deploy/proxies: clients see the same protocols as without one."""

import balancers
import pytest
from compat import kinds, protocol
from harness import server as servers

pytestmark = pytest.mark.newer


@pytest.fixture(scope="module")
def get_front(require_server, repository_path, tmp_path_factory):
    """get_front(balancer, kind): a balancer in front of a server of that kind, which is its own because cases change it."""
    fronts = {}

    def start(balancer, kind):
        folder = tmp_path_factory.mktemp(kind)
        repository, args = kinds.KINDS[kind](folder, repository_path)
        # Balancers send nothing to a server that is not ready, as it is else after cases of models that cannot be loaded.
        server = servers.start(repository, args=[*args, "--strict-readiness=false"], log_dir=folder)
        front = balancers.Balancer(balancer, tmp_path_factory.mktemp(balancer), [(server.http_port, server.grpc_port)] * 3)
        front.wait_until_it_passes()
        return server, front

    def get(balancer, kind):
        if reason := balancers.missing(balancer):
            pytest.skip(f"deploy/proxies is NOT tested with it: {reason}")
        if (balancer, kind) not in fronts:
            fronts[balancer, kind] = start(balancer, kind)
        front = fronts[balancer, kind][1]
        return protocol.Front(front.http_port, front.grpc)

    yield get
    for server, front in fronts.values():
        front.stop()
        server.stop()


def is_served(balancer, case):
    """Envoy asks for health over gRPC and has no key for it."""
    return balancer != "envoy" or case["server"] != "restricted" or not any("rpc" in s["request"] for s in protocol.steps(case))


def parameters():
    for balancer in balancers.KINDS:
        for file, case in protocol.load():
            if any("command" in step["request"] for step in protocol.steps(case)) or not is_served(balancer, case):
                continue
            yield pytest.param(balancer, case, id=f"{balancer}: {file}: {case['name']}")


@pytest.mark.parametrize(("balancer", "case"), parameters())
def test_case(balancer, case, get_front):
    protocol.run(case, lambda kind: get_front(balancer, kind))
