# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/scale.md, and their places in it."""

import re
import statistics

from scale import TABLES, table


def parameters_table(parameters):
    rows = [
        ("work of a replica for a request", parameters.replica_cpu),
        ("work of HAProxy for a request", parameters.balancer_cpu),
        ("work of the load generator for a request", parameters.client_cpu),
        ("way from one program to the next", parameters.hop),
        ("execution of `eager`, for the batch", parameters.fixed),
        ("execution of `eager`, for each row", parameters.per_row),
    ]
    return table(["parameter", "µs"], [(name, f"{value * 1e6:,.0f}") for name, value in rows])


def comparison_table(compared):
    rows = []
    for one in compared:
        cells = [one.point.model, one.point.front, one.point.load]
        for figure, scale, digits in (("per_second", 1, 0), ("p50", 1e3, 2), ("p99", 1e3, 2)):
            measured, simulated = one.measured[figure] * scale, one.simulated[figure] * scale
            error = "fitted" if one.point.is_fitted and figure != "p99" else f"{one.error(figure):+.1%}"
            if figure == "p99" and one.spread > 0.1:
                error += " (unstable)"
            cells.append(f"{measured:,.{digits}f} / {simulated:,.{digits}f}: {error}")
        rows.append(cells)
    head = ["model", "asked", "load", "requests/s", "median, ms", "p99, ms"]
    return table(head, rows)


def run_text(measured):
    """On what, and how, the loads were measured."""
    machine = measured["machine"]
    loads = [round_["load_average"] for rounds in measured["points"].values() for round_ in rounds]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['kernel']}; medians of "
        f"{measured['rounds']} rounds; load average {min(loads):.1f} to {max(loads):.1f}, median {statistics.median(loads):.1f}; "
        f"commit {measured['commit'][:12]}."
    )


def filled(text, contents):
    """The document with each content between the markers of its name."""
    for name, content in contents.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the document wants {begin} and {end} once each")
        text = re.sub(f"{begin}.*?{end}", lambda _, whole=f"{begin}\n\n{content}\n\n{end}": whole, text, flags=re.DOTALL)
    return text


def write(document, measured, parameters, compared):
    contents = {
        "parameters": parameters_table(parameters),
        "comparison": f"{comparison_table(compared)}\n\n{run_text(measured)}",
        **{name: make(measured, parameters) for name, make in TABLES.items()},
    }
    document.write_text(filled(document.read_text(), contents))
