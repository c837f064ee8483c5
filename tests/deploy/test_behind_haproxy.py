# SPDX-License-Identifier: Apache-2.0
"""What must be the same through a balancer as without one: scheduling, for clients of one server, and traces."""

import balancers
import numpy as np
import pytest
from compat import driver, scenarios
from harness import models
from harness import server as servers
from harness.clients import Client
from harness.collector import Collector, collect

pytestmark = pytest.mark.newer

GROUP = 14
TRACE, PARENT = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169242424"


@pytest.fixture(scope="module", autouse=True)
def haproxy(require_server):
    if reason := balancers.missing("haproxy"):
        pytest.skip(f"deploy/proxies is NOT tested with it: {reason}")


def balance(running, folder):
    """HAProxy in front of one or more servers; the three of its file are these in turn."""
    ports = [(server.http_port, server.grpc_port) for server in running]
    balancer = balancers.Balancer("haproxy", folder, [ports[n % len(ports)] for n in range(3)])
    balancer.wait_until_it_passes()
    return balancer


class Behind:
    """A server as its clients see it through HAProxy; its metrics are its own."""

    def __init__(self, server, folder):
        self.server, self.balancer = server, balance([server], folder)
        self.grpc, self.scrape = self.balancer.grpc, server.scrape

    def stop(self):
        self.balancer.stop()
        self.server.stop()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    started = []

    def start(folder):
        server = servers.start(folder, log_dir=tmp_path_factory.mktemp("server"))
        started.append(Behind(server, tmp_path_factory.mktemp("haproxy")))
        return started[-1]

    outcomes = {}
    try:
        # All at once, requests on small machines wait for seconds in the balancer, which is as long as scenarios last.
        for at in range(0, len(scenarios.ALL), GROUP):
            group = scenarios.ALL[at : at + GROUP]
            outcomes |= driver.run_all(group, start, tmp_path_factory.mktemp("scenarios"), driver.RunBehind)
            started.pop().stop()
        yield outcomes
    finally:
        for one in started:
            one.stop()


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda s: f"{s.sentence}-{s.name}")
def test_scheduling(scenario, outcomes):
    driver.check(scenario, outcomes[scenario.model], has_order=False)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_trace_goes_on_in_every_replica(protocol, start_server, tmp_path):
    """The spans of all replicas belong to the client's trace, and say which replica they are of."""
    models.write_model(tmp_path / "models", "id", models.identity_config("INT32", [-1]))
    with Collector() as collector:
        running = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            flags = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=0", f"opentelemetry,url={collector.url}",
                     "opentelemetry,bsp_schedule_delay=50", f"opentelemetry,resource=service.name={name}"]  # fmt: skip
            running.append(
                start_server(
                    tmp_path / "models", args=[f"--trace-config={flag}" for flag in flags],
                    env={"no_proxy": "127.0.0.1"}, log_dir=tmp_path / name)
            )  # fmt: skip
        balancer = balance(running, tmp_path)
        try:
            client = Client(protocol, balancer)
            spans = {}
            for _ in range(60):
                inputs = [client.input("INPUT0", np.zeros(2, np.int32), "INT32")]
                client.infer("id", inputs, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
                resource, more = collect(collector, 3)
                spans.setdefault(resource["service.name"], []).extend(more)
                if len(spans) == 2:
                    break
            client.close()
        finally:
            balancer.stop()
            collector.shutdown()
    assert set(spans) == {"one", "two"}
    for found in spans.values():
        assert {span.trace_id.hex() for span in found} == {TRACE}
        roots = [span for span in found if span.name == "InferRequest"]
        assert roots and {span.parent_span_id.hex() for span in roots} == {PARENT}
