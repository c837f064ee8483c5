# SPDX-License-Identifier: Apache-2.0
"""The rules for Prometheus: what promtool says of them, and that each alert is explained and tested."""

import re

import monitoring
import pytest
import yaml
from harness import server as servers

PROMETHEUS = monitoring.DEPLOY / "prometheus"
ALERTS = {alert["alert"]: alert for alert in monitoring.alerts()}


def headings(path):
    """The anchors of a document's headings, as they are made on the web."""
    found = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("what", [("rules", "rules.yml"), ("config", "prometheus.yml")], ids=lambda w: w[1])
def test_promtool_accepts_it(programs, what):
    kind, name = what
    status, said = monitoring.run("promtool", "check", kind, PROMETHEUS / name)
    assert status == 0, said


def test_each_alert_fires_with_its_cause_and_not_without(programs):
    status, said = monitoring.run("promtool", "test", "rules", PROMETHEUS / "rules_test.yml")
    assert status == 0, said


def test_the_exporter_accepts_its_configuration(programs):
    path = PROMETHEUS / "blackbox.yml"
    status, said = monitoring.run("prometheus-blackbox-exporter", "--config.check", f"--config.file={path}")
    assert status == 0, said


def test_every_alert_is_tested_when_it_fires_and_when_it_does_not():
    tested = {}
    for test in yaml.safe_load((PROMETHEUS / "rules_test.yml").read_text())["tests"]:
        # The time decides what the whole test is about.
        fires, quiet = set(), 0
        for check in test["promql_expr_test"]:
            assert check["expr"] == 'count by (alertname, instance) (ALERTS{alertstate="firing"})'
            quiet += not check["exp_samples"]
            for sample in check["exp_samples"]:
                fires |= set(re.findall(r'alertname="(\w+)"', sample["labels"]))
        fires |= {check["alertname"] for check in test.get("alert_rule_test", ())}
        for name in fires:
            tested[name] = max(tested.get(name, 0), quiet)
    # Before, and after.
    assert {name for name, quiet in tested.items() if quiet >= 2} == set(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_it_means_and_what_to_do(name):
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in ("critical", "warning")
    notes = alert["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert notes["description"].endswith((".", "{{ end }}")) and len(notes["description"].split()) > 10
    page, anchor = notes["runbook_url"].split("#")
    assert anchor == name.lower()
    assert anchor in headings(servers.ROOT / page)


def test_the_page_explains_no_alert_that_is_not_there():
    explained = {heading for heading in headings(servers.ROOT / "docs" / "dashboards.md") if heading.startswith("nereid")}
    assert explained == {name.lower() for name in ALERTS}
