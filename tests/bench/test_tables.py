# SPDX-License-Identifier: Apache-2.0
"""What the bench concludes from measurements: ratios, aims, and what it says of a side that failed."""

import pathlib
import sys
import xml.etree.ElementTree

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import plots  # noqa: E402
import tables  # noqa: E402


def row(ours, theirs, aims=(), errors=None, floor=()):
    samples = {"nereid": ours, "reference": theirs, "floor": list(floor)}
    return {
        "row": 1, "title": "a load", "key": "a load (http_load)", "tool": "http_load",
        "samples": samples, "errors": errors or {}, "aims": [list(aim) for aim in aims],
    }


def sample(cpu=10.0, rate=1000.0, **more):
    return {"cpu_us": cpu, "per_second": rate, "p50_us": 5, "p99_us": 9, "peak_mb": 1, "switches": 1, **more}


def test_a_ratio_above_one_means_that_we_are_ahead():
    entry = row([sample(cpu=10, rate=400)], [sample(cpu=40, rate=100)])
    assert tables.ratio(entry, "C") == 4
    assert tables.ratio(entry, "T") == 4


def test_the_median_of_the_rounds_counts():
    entry = row([sample(cpu=value) for value in (10, 11, 900)], [sample(cpu=44)])
    assert tables.ratio(entry, "C") == 4


@pytest.mark.parametrize(
    ("aims", "verdict"),
    [
        ([("C", ">=", 4)], "met"),
        ([("C", ">=", 4), ("cpu_us", "<=", 9)], "**not met** (CPU µs ≤ 9 µs: 10.0)"),
        ([("batch", ">=", 1.5)], "not measured (batch ≥ 1.5)"),
        ([], "–"),
    ],
)
def test_an_aim_is_met_or_not_or_not_measured(aims, verdict):
    assert tables.verdict(row([sample()], [sample(cpu=40)], aims)) == verdict


def test_the_worst_round_decides_what_was_lost():
    entry = row([sample(lost=0), sample(lost=3)], [sample()], [("lost", "<=", 0)])
    assert tables.verdict(entry) == "**not met** (lost ≤ 0: 3.0)"


def test_a_side_that_failed_is_told_of():
    entry = row([sample(lost=0, responses=10)], [], [("T", ">=", 8)], {"reference": "it hung"})
    assert "the reference failed: it hung" in tables.losses(entry)
    assert tables.verdict(entry) == "met"
    entry = row([sample(lost=0)], [sample(rate=0, lost=10)], [("T", ">=", 8)])
    assert tables.verdict(entry) == "met"
    entry = row([], [sample()], [("T", ">=", 8)], {"nereid": "it hung"})
    assert tables.verdict(entry) == "not measured (T ≥ 8)"


def test_efficiency_is_the_limit_over_ours():
    entry = row([sample(cpu=10)], [], floor=[sample(cpu=4)])
    assert tables.efficiency(entry) == 0.4


def test_an_aim_that_the_limit_misses_too_says_so():
    entry = row([sample(cpu=10)], [sample(cpu=40)], [("C", ">=", 6)], floor=[sample(cpu=8)])
    assert tables.verdict(entry) == "**not met** (C ≥ 6: 4.0, the limit itself: 5.0)"
    # A floor program that is slower than we are is no limit.
    entry = row([sample(cpu=10)], [sample(cpu=40)], [("C", ">=", 6)], floor=[sample(cpu=12)])
    assert tables.verdict(entry) == "**not met** (C ≥ 6: 4.0)"


def test_of_several_runs_the_last_one_of_a_row_counts():
    first, second = row([sample(cpu=1)], []), row([sample(cpu=2)], [])
    (merged,) = tables.merge([{"rows": [first]}, {"rows": [second]}])
    assert merged is second


def test_a_chart_has_a_bar_of_each_side_in_a_colour_of_either_scheme():
    chart = plots.chart([row([sample(cpu=10)], [sample(cpu=40)], floor=[sample(cpu=5)])], "cpu_us", "CPU <µs>", False)
    root = xml.etree.ElementTree.fromstring(chart)
    bars = [(bar.get("class"), bar.get("width")) for bar in root.iter("{http://www.w3.org/2000/svg}rect")][4:]
    assert bars == [("past", "460.0"), ("c1", "115.0"), ("c3", "57.5")]
    style = root.find("{http://www.w3.org/2000/svg}style").text
    light, dark = style.split("@media(prefers-color-scheme:dark)")
    assert all(f".{name}{{fill:" in scheme for name, _ in bars for scheme in (light, dark))
