# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/scale.md, and their places in it."""

import re
import statistics

from sim.scale import TABLES, table


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
            error = "fitted" if figure == one.point.fitted else f"{one.error(figure):+.1%}"
            cells.append(f"{measured:,.{digits}f} / {simulated:,.{digits}f}: {error}")
        rows.append(cells)
    head = ["model", "asked", "load", "requests/s", "median, ms", "p99, ms"]
    return table(head, rows)


def cold_table(compared):
    load, counts = compared
    rows = []
    for count, (measured, simulated) in counts.items():
        error = f"fitted: {load:.2f} s beside the download" if count == 1 else f"{simulated / measured - 1:+.1%}"
        rows.append([count, f"{measured:.2f} / {simulated:.2f}: {error}"])
    return table(["replicas that start together", "until the last is ready, s"], rows)


def run_text(measured):
    """On what, and how, the loads were measured."""
    machine = measured["machine"]
    points = measured["points"].values()
    rounds = max(len(found) for found in points)
    loads = [statistics.median(found[number]["load_average"] for found in points if number < len(found)) for number in range(rounds)]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['kernel']}; commit "
        f"{measured['commit'][:12]}; medians of {rounds} rounds; load average in each: {', '.join(f'{load:.1f}' for load in loads)}."
    )


def filled(text, contents):
    """The document with each content between the markers of its name."""
    for name, content in contents.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the document wants {begin} and {end} once each")
        text = re.sub(f"{begin}.*?{end}", lambda _, whole=f"{begin}\n\n{content}\n\n{end}": whole, text, flags=re.DOTALL)
    return text


def write(document, measured, parameters, compared, cold):
    contents = {
        "parameters": parameters_table(parameters),
        "comparison": f"{comparison_table(compared)}\n\n{run_text(measured)}",
        "cold": cold_table(cold),
        **{name: make(measured, parameters) for name, make in TABLES.items()},
    }
    document.write_text(filled(document.read_text(), contents))
