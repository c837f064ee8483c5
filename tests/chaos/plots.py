# SPDX-License-Identifier: Apache-2.0
"""Draws what was recorded of a run as SVG: a panel for each measure, and a lane for each kind of trouble."""

import html
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import plot_style  # noqa: E402

WIDTH, PANEL, LANE, GAP, LEFT, RIGHT, TOP = 960, 110, 14, 34, 150, 16, 50
# The colour of each kind of trouble.
MARK = "c3"
# What each panel shows: its title, the lines with their colours and, where there are several, what they are, and whether
# its scale is logarithmic.
PANELS = (
    ("resident memory, MB", (("resident MB", "c5", ""),), False),
    ("latency, ms:", (("p50 ms", "c1", "half of the responses are faster"), ("p99 ms", "c2", "99 % are faster")), True),
    ("right responses per second", (("rate", "c1", ""),), False),
    ("file descriptors", (("descriptors", "c5", ""),), False),
    ("threads:", (("threads", "c5", "of the server"), ("workers", "c6", "workers of Python models")), False),
)


def _text(x, y, text, **attributes):
    return _marked(x, y, html.escape(text), **attributes)


def _marked(x, y, content, **attributes):
    """A text with elements in it; "class" is a word of Python's."""
    more = "".join(f' {name.rstrip("_").replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{more}>{content}</text>'


def _number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


class _Scale:
    """From values to heights of a panel."""

    def __init__(self, values, is_logarithmic):
        self.is_logarithmic = is_logarithmic
        self.most = max(values, default=1) * 1.08 or 1
        self.least = max(min(values, default=0.1) * 0.9, 1e-3) if is_logarithmic else 0

    def share(self, value):
        if not self.is_logarithmic:
            return value / self.most
        return math.log(max(value, self.least) / self.least) / math.log(self.most / self.least)

    def marks(self):
        if not self.is_logarithmic:
            return [0, self.most / 2, self.most]
        first, last = math.ceil(math.log10(self.least)), math.floor(math.log10(self.most))
        return [10.0**power for power in range(first, last + 1)] or [self.least, self.most]


class Picture:
    """Collects the parts of a picture from top to bottom; all have the same time below them."""

    def __init__(self, seconds):
        self._seconds, self._parts, self._top = seconds, [], TOP

    def _x(self, seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * min(seconds, self._seconds) / self._seconds

    def panel(self, title, lines, is_logarithmic, samples):
        top, bottom = self._top, self._top + PANEL
        scale = _Scale([sample[name] for name, _, _ in lines for sample in samples if name in sample], is_logarithmic)
        keys = [plot_style.swatch(colour) + html.escape(words) for _, colour, words in lines if words]
        head = f'<tspan font-weight="600">{html.escape(title)}</tspan>'
        self._parts.append(_marked(LEFT, top - 8, "\N{NO-BREAK SPACE} ".join([head, *keys])))
        for mark in scale.marks():
            y = bottom - PANEL * scale.share(mark)
            self._parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            self._parts.append(_text(LEFT - 8, y + 4, _number(mark), text_anchor="end", class_="muted"))
        for name, colour, _ in lines:
            points = " ".join(f"{self._x(sample['seconds']):.1f},{bottom - PANEL * scale.share(sample[name]):.1f}"
                              for sample in samples if name in sample)
            self._parts.append(f'<polyline points="{points}" class="{colour}" stroke-width="1.5"/>')
        self._top = bottom + GAP

    def lanes(self, events):
        """One lane for each kind of trouble, with a mark for each time it was there."""
        kinds = sorted({name for _, name, _ in events})
        if kinds:
            self._parts.append(_text(LEFT, self._top - 8, "troubles", font_weight=600))
        for lane, kind in enumerate(kinds):
            y = self._top + lane * LANE
            self._parts.append(_text(LEFT - 8, y + 10, kind, text_anchor="end", class_="muted", font_size=11))
            for seconds, name, length in events:
                if name == kind:
                    width = max(1.5, self._x(seconds + length) - self._x(seconds))
                    self._parts.append(
                        f'<rect x="{self._x(seconds):.1f}" y="{y + 2}" width="{width:.1f}" height="{LANE - 4}" '
                        f'class="{MARK}"><title>{html.escape(name)}, {seconds:.0f} s</title></rect>')
        self._top += len(kinds) * LANE + 20

    def finish(self, title):
        for share in (0, 0.25, 0.5, 0.75, 1):
            self._parts.append(_text(self._x(self._seconds * share), self._top, f"{self._seconds * share / 60:.1f} min",
                                     text_anchor="end" if share == 1 else "middle", class_="muted"))
        parts = ["", _text(LEFT, 20, title, font_size=14, font_weight=600), *self._parts, ""]
        return plot_style.svg(WIDTH, self._top + 14, "\n".join(parts))


def draw(report):
    """The picture of a run, from its report (run.py)."""
    samples, previous = [dict(sample) for sample in report["samples"]], 0.0
    for sample in samples:
        sample["rate"] = sample["responses"] / max(sample["seconds"] - previous, 0.001)
        previous = sample["seconds"]
    picture = Picture(max((sample["seconds"] for sample in samples), default=1))
    for title, lines, is_logarithmic in PANELS:
        picture.panel(title, lines, is_logarithmic, samples)
    picture.lanes(report["events"])
    right = report["counts"].get("right responses", 0)
    return picture.finish(f"{report['kind']}, seed {report['seed']}: {right:,} right responses, "
                          f"{len(report['problems'])} problems, {len(report['events'])} troubles")
