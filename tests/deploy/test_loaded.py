# SPDX-License-Identifier: Apache-2.0
"""Prometheus scrapes loaded servers: the dashboard's queries answer, and alerts fire with their causes and clear after
them. long_run.py does the same with one cause after the other, for as long as it is told."""

import contextlib
import math
import time
import urllib.request

import causes
import dashboards
import monitoring
import pytest
import scene
from harness import cuda
from harness import server as servers

pytestmark = pytest.mark.newer

# Minutes of the rules are fifths of a second here.
FACTOR, INTERVAL_S = 300, 0.2
ALERTS = {alert["alert"] for alert in monitoring.alerts()}
# What tells of memory needs a machine that lets tests mount a file over /proc/meminfo.
OF_MEMORY = causes.PLAIN[causes.the_machine_has_no_memory_left]


@pytest.fixture(scope="module")
def loaded(require_server, onnx, programs, tmp_path_factory):
    if servers.is_sanitized():
        pytest.skip("what is scraped five times a second must not be slowed down")
    if not cuda.is_there() or cuda.IS_REAL:
        pytest.skip("the tests' CUDA driver is not built")
    made = scene.Scene(tmp_path_factory.mktemp("scene"), FACTOR, INTERVAL_S)
    yield made
    made.close()


def unanswered(prometheus):
    """(panel, query) of the dashboard without a series that has a value."""
    found = []
    for panel, expression in dashboards.queries(f"{round(5 * INTERVAL_S * 1000)}ms"):
        if not any(not math.isnan(value) for _, value in prometheus.query(expression)):
            found.append((panel, expression))
    return found


def test_every_cause_has_its_alerts():
    made = set().union(*causes.PLAIN.values(), *causes.BLINDING.values())
    assert made == ALERTS


def test_nothing_fires_on_a_server_that_is_only_loaded(loaded):
    old = f"nv_inference_count{{model='batched'}} offset {loaded.duration(15)} > 0"
    servers.wait_until(lambda: loaded.prometheus.query(old), "data of a quarter of an hour")
    lately = f"last_over_time(ALERTS{{alertstate='firing'}}[{loaded.duration(10)}])"
    # A page that comes a fifth of a second late on a busy machine is a server that was down for a minute.
    servers.wait_until(lambda: loaded.prometheus.query(lately) == [], "ten minutes without an alert")
    assert loaded.load.failures == []


def test_every_alert_fires_with_its_cause_and_clears_after_it(loaded):
    made = causes.possible(loaded)
    with contextlib.ExitStack() as stack:
        begin = time.monotonic()
        for cause in made:
            stack.enter_context(cause(loaded))
        wait_for(loaded, set().union(*made.values()), begin)
        # Now that everything has happened, every panel has something to show.
        wait_for_answers(loaded)
    wait_for_quiet(loaded)
    if not loaded.machine.is_possible:
        pytest.skip(f"all but {sorted(OF_MEMORY)} fired and cleared: this machine lets tests mount nothing")


def test_alerts_about_the_monitoring_fire_and_clear(loaded):
    with contextlib.ExitStack() as stack:
        begin = time.monotonic()
        for cause in causes.BLINDING:
            stack.enter_context(cause(loaded))
        wait_for(loaded, set().union(*causes.BLINDING.values()), begin)
    wait_for_quiet(loaded)


def test_rules_and_dashboard_name_families_that_servers_have(loaded):
    expressions = [rule["expr"] for rule in monitoring.rules()]
    expressions += [expression for _, expression in dashboards.queries("1s")]
    named = set().union(*map(dashboards.families, expressions))
    assert "nereid_stuck_threads" in named and "nv_inference_count" in named
    missing = named

    def are_there():
        nonlocal missing
        pages = "".join(metrics_page(server) for server in loaded.servers.values())
        missing = {name for name in named if f"# TYPE {name} " not in pages}
        return not missing

    # Some families of a model are there once it has had its first request.
    try:
        servers.wait_until(are_there, "all families")
    except AssertionError:
        pytest.fail(f"no server has these families: {sorted(missing)}")


def metrics_page(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as page:
        return page.read().decode()


def wait_for(loaded, alerts, begin):
    """Waits until each of the alerts has fired. Some fire for a while only, such as that of a restart."""
    missing = []

    def have_fired():
        missing[:] = sorted(alerts - loaded.prometheus.fired(time.monotonic() - begin))
        return not missing

    try:
        servers.wait_until(have_fired, "all alerts", timeout=60)
    except AssertionError:
        pytest.fail(f"these alerts did not fire: {missing}")


def wait_for_answers(loaded):
    try:
        servers.wait_until(lambda: not unanswered(loaded.prometheus), "answers")
    except AssertionError:
        pytest.fail(f"without an answer: {unanswered(loaded.prometheus)}")


def wait_for_quiet(loaded):
    try:
        servers.wait_until(lambda: not loaded.prometheus.fired(), "no alerts", timeout=60)
    except AssertionError:
        pytest.fail(f"these alerts did not clear: {sorted(loaded.prometheus.fired())}")
