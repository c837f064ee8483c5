# SPDX-License-Identifier: Apache-2.0
"""The dashboard's file, without Grafana: that the script writes it, and that every panel is complete and in its place."""

import importlib.util
import itertools
import re

import dashboards
import pytest

PANELS = list(dashboards.panels())


def script():
    spec = importlib.util.spec_from_file_location("make_dashboard", dashboards.FOLDER / "make_dashboard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_script_writes():
    assert (dashboards.FOLDER / "nereid.json").read_text() == script().text(), "run deploy/grafana/make_dashboard.py"


def test_panels_have_numbers_of_their_own_and_do_not_cover_each_other():
    everything = [p for row in dashboards.dashboard()["panels"] for p in [row, *row.get("panels", ())]]
    numbers = [panel["id"] for panel in everything]
    assert len(set(numbers)) == len(numbers)
    for one, other in itertools.combinations([panel["gridPos"] for panel in everything], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in everything)


@pytest.mark.parametrize("panel", PANELS, ids=lambda p: p["title"])
def test_a_panel_is_described_and_has_a_unit(panel):
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults.get("unit") or panel["options"]["yAxis"]["unit"]
    assert panel["targets"]
    # Whoever imports the dashboard says where the data is.
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


def test_the_variables_are_those_that_queries_use():
    made = {variable["name"] for variable in dashboards.dashboard()["templating"]["list"]}
    used = {name for panel in PANELS for t in panel["targets"] for name in re.findall(r"\$(\w+)", t["expr"])}
    assert made == (used - {"__rate_interval"}) | {"datasource"}


def test_servers_without_a_model_can_be_chosen():
    queries = {v["name"]: v["query"]["query"] for v in dashboards.dashboard()["templating"]["list"] if v["type"] == "query"}
    for name in ("job", "instance"):
        assert re.search(r'__name__=~"[^"]*\bnereid_server_live\b', queries[name]), queries[name]


def test_what_belongs_to_a_server_or_a_model_is_chosen_by_the_variables():
    for panel in PANELS:
        for target in panel["targets"]:
            for selector in re.findall(r"(?:nv|nereid|process)_\w+\{([^}]*)\}", target["expr"]):
                assert 'job=~"$job", instance=~"$instance"' in selector, target["expr"]
            assert not re.search(r"\b(?:nv|nereid|process)_\w+(?![\w{])", re.sub(r'"[^"]*"', "", target["expr"])), target["expr"]
