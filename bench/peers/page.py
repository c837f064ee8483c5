# SPDX-License-Identifier: Apache-2.0
"""The tables and the plot that come of the measurements."""

import plots
import tables
from catalogue import BY_NAME, PEERS
from measuring import CLIENTS, median
from workloads import WORKLOADS

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
PLOT = "peers.svg"
TITLES = {peer.name: peer.title for peer in PEERS + BY_NAME}


class Column:
    """One figure of the servers. `path` leads to it in a sample."""

    def __init__(self, title, path, is_more_better=False, scale=1.0):
        self.title, self.path, self.is_more_better, self.scale = title, path, is_more_better, scale

    def values(self, samples):
        """{server: median}, of those that were measured."""
        found = {name: median(of_server, *self.path) for name, of_server in samples.items()}
        return {name: value * self.scale for name, value in found.items() if value is not None}


def columns(form):
    """(heading, columns whose figures share a cell)."""

    def loads(title, key, is_more_better=False, scale=1.0):
        parts = []
        for clients in CLIENTS:
            path = ("loads", form, str(clients), key)
            parts.append(Column(f"{title}, {clients} client{'s' * (clients > 1)}", path, is_more_better, scale))
        return f"{title}: {', '.join(map(str, CLIENTS))} clients", parts

    found = [
        loads("requests/s", "per_second", True),
        loads("p50 ms", "p50_us", scale=1e-3),
        loads("p99 ms", "p99_us", scale=1e-3),
        loads("CPU µs/request", "cpu_us"),
    ]
    if form == "JSON":
        found.append(("memory MB", [Column("memory", ("memory_mb",))]))
        found.append(("start to first answer, s", [Column("start to first answer", ("start_ms",), scale=1e-3)]))
    return found


def best(values, is_more_better):
    return (max if is_more_better else min)(values.values()) if values else None


def form_table(content, workload, form):
    """The table of one workload in one form, or None if nothing of it was measured."""
    samples = content["samples"].get(workload.name, {})
    headed = columns(form)
    figures = {column: column.values(samples) for _, parts in headed for column in parts}
    names = [peer.name for peer in PEERS + BY_NAME if any(peer.name in values for values in figures.values())]
    if not names:
        return None
    with_lines = form == "JSON"
    written = {name: content["lines"][workload.name][name] for name in names}
    lines = []
    for name in names:
        cells = [f"{TITLES[name]} {content['versions'].get(name, '')}".strip()]
        for _, parts in headed:
            cells.append(" · ".join(_cell(figures[c].get(name), best(figures[c], c.is_more_better)) for c in parts))
        if with_lines:
            cells.append(_cell(written[name], min(written.values()), "{:.0f}"))
        lines.append(cells)
    head = ["server", *(title for title, _ in headed), *(["lines written"] if with_lines else [])]
    return tables.table(head, lines)


def _cell(value, first, form=None):
    if value is None:
        return "–"
    text = form.format(value) if form else tables.number(value)
    return f"**{text}**" if value == first else text


def not_first(content):
    """The figures in which another server is ahead of Nereid, each with both."""
    found = []
    for workload in WORKLOADS:
        samples = content["samples"].get(workload.name, {})
        for form in workload.forms:
            for column in (column for _, parts in columns(form) for column in parts):
                title = f"{workload.title}, {form}: {column.title}"
                found += _behind(title, column.values(samples), column.is_more_better)
        lines = {name: content["lines"][workload.name][name] for name in samples}
        found += _behind(f"{workload.title}: lines written", lines, False)
    return found


def _behind(title, values, is_more_better):
    first = best(values, is_more_better)
    if "nereid" not in values or values["nereid"] == first:
        return []
    name = next(name for name, value in values.items() if value == first)
    return [f"{title}: {TITLES[name]} {tables.number(first)}, Nereid {tables.number(values['nereid'])}"]


def describe(content):
    machine = content["machine"]
    rounds = {len(of_server) for samples in content["samples"].values() for of_server in samples.values()}
    times = f"{min(rounds)} to {max(rounds)}" if len(rounds) > 1 else str(max(rounds, default=0))
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['kernel']}; "
        f"server on core {content['server_core']}, client on core {content['client_core']}; medians of {times} "
        f"rounds, each with loads of {content['seconds']:g} s after {content['warmup']:g} s that do not count; "
        f"load average before: {', '.join(f'{load:.1f}' for load in content['load_average'])}; "
        f"{', '.join(content['started'])}."
    )


def text(content):
    """The generated part of the document."""
    parts = []
    for workload in WORKLOADS:
        for form in workload.forms:
            table = form_table(content, workload, form)
            if table:
                what = "JSON" if form == "JSON" else "binary tensors, of the servers whose protocol has them"
                parts += [f"### {workload.title}, {what}", table]
    behind = not_first(content)
    if behind:
        parts.append("Where Nereid is not first:\n" + "\n".join(f"- {line}" for line in behind))
    elif any("nereid" in samples for samples in content["samples"].values()):
        parts.append("Nereid is first in every column.")
    return "\n\n".join([*parts, describe(content)]) + "\n"


# --- The plot ---------------------------------------------------------------------------------

COLORS = ("past", "c5", "c1")
LEFT, WIDTH, BAR, GAP, ROW_GAP = 90, 330, 11, 60, 10


def plot(content):
    """Bars of requests/s and of CPU per request: a column for each, a group of bars for each server."""
    parts, bottom = [], 60
    for i, (key, title, hint) in enumerate(
        (("per_second", "Requests/s", "more is better"), ("cpu_us", "CPU per request, µs", "less is better"))
    ):
        x, y = LEFT + i * (WIDTH + GAP + LEFT), 60
        parts.append(plots.text(x, 18, f"{title} ({hint})", 14))
        for workload in WORKLOADS:
            parts.append(plots.text(x, y, f"{workload.title}, JSON", 12))
            y = _bars(parts, content["samples"].get(workload.name, {}), key, x, y + 8) + 24
        bottom = max(bottom, y)
    for i, clients in enumerate(CLIENTS):
        x = LEFT + i * 100
        parts.append(plots.rect(x, 28, 10, 10, COLORS[i]))
        parts.append(plots.text(x + 14, 37, f"{clients} client{'s' * (clients > 1)}"))
    total = 2 * (LEFT + WIDTH + GAP)
    return plots.plot_style.svg(total, bottom, "".join(parts))


def _bars(parts, samples, key, x, y):
    def value(name, clients):
        return median(samples.get(name, []), "loads", "JSON", str(clients), key)

    names = [peer.name for peer in PEERS + BY_NAME if peer.name in samples]
    most = max((value(name, clients) or 0 for name in names for clients in CLIENTS), default=0) or 1
    for name in names:
        parts.append(plots.text(x - 8, y + BAR * len(CLIENTS) / 2 + 4, TITLES[name], anchor="end"))
        for i, clients in enumerate(CLIENTS):
            figure = value(name, clients)
            if figure is None:
                continue
            width = max(figure / most * WIDTH, 1)
            parts.append(plots.rect(x, y + i * BAR, width, BAR - 1, COLORS[i]))
            parts.append(plots.text(x + width + 4, y + i * BAR + BAR - 2, tables.number(figure), 9))
        y += BAR * len(CLIENTS) + ROW_GAP
    return y


def write(content, document):
    """Puts the tables between the markers of the document and the plot beside it."""
    before, begin, rest = document.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{document} lacks the markers {BEGIN} and {END}")
    folder = document.parent / "performance"
    folder.mkdir(exist_ok=True)
    (folder / PLOT).write_text(plot(content))
    image = f"![Requests per second and CPU per request of six servers](performance/{PLOT})"
    document.write_text(f"{before}{BEGIN}\n\n{image}\n\n{text(content)}\n{END}{after}")
