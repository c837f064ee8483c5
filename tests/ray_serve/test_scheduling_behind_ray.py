# SPDX-License-Identifier: Apache-2.0
"""What docs/scheduling.md promises, through Ray Serve's proxy and a replica of nereid.ray.

Left out are the scenarios in which requests must arrive within parts of a second, because each takes Ray several
milliseconds of processor time, and those that clients of HTTP cannot ask for."""

import concurrent.futures
import json
import pathlib
import sys
import urllib.request

import pytest
import tritonclient.http as httpclient
from compat import driver, scenarios
from harness import server as servers
from tritonclient.utils import InferenceServerException

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import cluster as clusters  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.skipif(servers.REFERENCE, reason="about this server's package")]

SCENARIOS = [scenario for scenario in scenarios.DYNAMIC if not scenario.cancel]
APP = "scenarios"


class Replica:
    """The only one of the application, as its clients see it."""

    def __init__(self, cluster):
        self.url = cluster.url(APP)

    def scrape(self):
        body = json.dumps({"value": 0}).encode()
        with urllib.request.urlopen(f"http://{self.url}/v2/models/metrics_page/generate", body, timeout=60) as reply:
            return servers.read_metrics(json.load(reply)["output"])


class RunBehindRay(driver.RunBehind):
    """Each request on a thread of its own: the client for HTTP calls back from the one that asks it to."""

    library = httpclient

    def __init__(self, scenario, server, gauge):
        self.url = server.url
        super().__init__(scenario, server, gauge)
        self.pool = concurrent.futures.ThreadPoolExecutor(scenario.instances + len(scenario.sends))

    def connect(self, server):
        return httpclient.InferenceServerClient(server.url)

    def send(self, send):
        self.pool.submit(self.ask, send)

    def ask(self, send):
        client = httpclient.InferenceServerClient(self.url, network_timeout=120)
        try:
            client.infer(self.scenario.model, self.inputs(send), **self.options(send))
            error = None
        except InferenceServerException as refused:
            error = refused
        self.answered(send.id)(None, error)
        client.close()

    def statistics(self):
        return self.client.get_inference_statistics(self.scenario.model)


@pytest.fixture(scope="module")
def outcomes(require_server):
    if reason := clusters.missing():
        pytest.skip(f"nereid.ray is NOT tested: {reason}")
    running = clusters.Cluster(lambda folder: driver.write(SCENARIOS, folder / APP))
    try:
        running.ask("run", app=APP)
        yield driver.run_on(Replica(running), SCENARIOS, RunBehindRay)
    finally:
        running.stop()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.sentence}-{s.name}")
def test_scheduling(scenario, outcomes):
    driver.check(scenario, outcomes[scenario.model], has_order=False)
