# SPDX-License-Identifier: Apache-2.0
"""Bar charts as SVG: for each load the tuned reference, ours, and what the machine allows."""

import html
import pathlib
import sys

import tables

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import plot_style  # noqa: E402

SIDES = (("reference", "past"), ("nereid", "c1"), ("floor", "c3"))
NAMES = {"reference": "reference (tuned)", "nereid": "Nereid", "floor": "limit"}
LEFT, WIDTH, BAR, GAP, TOP = 330, 460, 7, 9, 56


def text(x, y, content, size=11, anchor="start"):
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{html.escape(content)}</text>'


def rect(x, y, width, height, color):
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" class="{color}"/>'


def chart(rows, key, title, more_is_better):
    """Bars relative to the larger of the two sides' medians of `key`, with the values beside them."""
    parts, y = [], TOP
    for row in rows:
        values = {side: tables.median(row, side, key) for side, _ in SIDES}
        if not values["nereid"] or not values["reference"]:
            continue
        most = max(value for value in values.values() if value)
        shown = [(side, color) for side, color in SIDES if values[side]]
        parts.append(text(LEFT - 8, y + BAR * len(shown) / 2 + 4, row["title"], anchor="end"))
        for i, (side, color) in enumerate(shown):
            width = max(values[side] / most * WIDTH, 1)
            parts.append(rect(LEFT, y + i * BAR, width, BAR - 1, color))
            parts.append(text(LEFT + width + 4, y + i * BAR + BAR - 1, tables.number(values[side]), 7))
        y += BAR * len(shown) + GAP
    legend, x = [], LEFT
    for side, color in SIDES:
        legend += [rect(x, 30, 10, 10, color), text(x + 14, 39, NAMES[side])]
        x += 130
    hint = "more is better" if more_is_better else "less is better"
    head = text(LEFT, 18, f"{title} ({hint})", 14)
    total = LEFT + WIDTH + 60
    return plot_style.svg(total, y + 4, "".join([head, *legend, *parts]))


def write(rows, folder):
    """Writes the charts and returns (file name, what it shows) of each."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = (
        ("cpu.svg", "cpu_us", "Server CPU per request or response, µs", False),
        ("rate.svg", "per_second", "Requests or responses per second", True),
        ("p99.svg", "p99_us", "99th percentile of the latency, µs", False),
    )
    chosen = [row for row in rows if row["row"] <= 11 and not row["tool"].startswith(("perf_analyzer", "h2load"))]
    for file, key, title, more_is_better in charts:
        (folder / file).write_text(chart(chosen, key, title, more_is_better))
    return [(file, title) for file, _, title, _ in charts]
