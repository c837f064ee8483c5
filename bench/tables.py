# SPDX-License-Identifier: Apache-2.0
"""Turns the file of a run into tables: how many times better, which aims are met."""

import statistics

# What an aim or a column may name: its text, the figure of the samples, and which way is better.
# A ratio is theirs ÷ ours, or ours ÷ theirs where more is better: above 1 we are ahead.
RATIOS = {
    "C": ("CPU", "cpu_us", False),
    "T": ("throughput", "per_second", True),
    "L": ("p50", "p50_us", False),
    "L99": ("p99", "p99_us", False),
    "M": ("peak memory", "peak_mb", False),
    "S": ("context switches", "switches", False),
    "batch": ("mean batch", "batch", True),
    "ready": ("start", "ready_ms", False),
    "idle": ("idle memory", "idle_mb", False),
    "loaded": ("memory after load", "loaded_mb", False),
    "threads": ("threads", "threads", False),
    "loaded_threads": ("threads after load", "loaded_threads", False),
}
# Figures of ours alone.
VALUES = {
    "cpu_us": ("CPU µs", "µs"),
    "lost": ("lost", ""),
    "bytes_each": ("bytes each", "B"),
    "thread_count": ("threads after load", ""),
    "quiet_ratio": ("p99 ÷ quiet p99", ""),
}


def median(row, side, key):
    values = [sample[key] for sample in row["samples"].get(side, []) if sample.get(key) is not None]
    return statistics.median(values) if values else None


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"


def ratio(row, name):
    _, key, more_is_better = RATIOS[name]
    ours, theirs = median(row, "nereid", key), median(row, "reference", key)
    if not ours or not theirs:
        return None
    return ours / theirs if more_is_better else theirs / ours


def efficiency(row):
    """The limit ÷ ours: 1 is what the machine allows."""
    for key, more_is_better in (("cpu_us", False), ("ready_ms", False), ("per_second", True)):
        ours, floor = median(row, "nereid", key), median(row, "floor", key)
        if ours and floor:
            return ours / floor if more_is_better else floor / ours
    return None


def value_of(row, name):
    if name in RATIOS:
        return ratio(row, name)
    if name == "efficiency":
        ours, floor = median(row, "nereid", "per_second"), median(row, "floor", "per_second")
        return ours / floor if ours and floor else None
    if name == "thread_count":
        return median(row, "nereid", "loaded_threads")
    if name == "ready_floor":
        ours, floor = median(row, "nereid", "ready_ms"), median(row, "floor", "ready_ms")
        return ours / floor if ours and floor else None
    if name == "lost":
        values = [sample["lost"] for sample in row["samples"].get("nereid", [])]
        return max(values) if values else None
    return median(row, "nereid", name)


def limit_of(row, name):
    """What the limit itself would reach in our place."""
    if name in RATIOS:
        _, key, more_is_better = RATIOS[name]
        floor, theirs = median(row, "floor", key), median(row, "reference", key)
        if not floor or not theirs or name in ("M", "batch", "idle", "loaded", "threads", "loaded_threads"):
            return None
        return floor / theirs if more_is_better else theirs / floor
    return median(row, "floor", name) if name == "cpu_us" else None


def aim_text(aim):
    name, comparison, value = aim
    sign = {">=": "≥", "<=": "≤"}[comparison]
    if name in VALUES:
        label, unit = VALUES[name]
        return f"{label} {sign} {value:g} {unit}".strip()
    return f"{name} {sign} {value:g}"


def holds(value, aim):
    return value >= aim[2] if aim[1] == ">=" else value <= aim[2]


def judge(row):
    """(met, unmet, unknown): texts of the row's aims."""
    met, unmet, unknown = [], [], []
    for aim in row["aims"]:
        value = value_of(row, aim[0])
        if value is None:
            # A side that fails, or answers nothing, where the other does not needs no ratio.
            lost = "reference" in row["errors"] or median(row, "reference", "per_second") == 0
            lost = lost and "nereid" not in row["errors"]
            (met if lost else unknown).append(aim_text(aim))
            continue
        text, limit = f"{aim_text(aim)}: {number(value)}", limit_of(row, aim[0])
        is_ahead = limit is not None and (limit > value if aim[1] == ">=" else limit < value)
        if is_ahead and not holds(value, aim) and not holds(limit, aim):
            text += f", the limit itself: {number(limit)}"
        (met if holds(value, aim) else unmet).append(text)
    return met, unmet, unknown


def verdict(row):
    if not row["aims"]:
        return "–"
    met, unmet, unknown = judge(row)
    parts = [f"**not met** ({'; '.join(unmet)})"] if unmet else []
    if unknown:
        parts.append(f"not measured ({'; '.join(unknown)})")
    if not parts:
        return "met"
    return ", ".join(parts)


# --- Tables -----------------------------------------------------------------------------------


def cell(row, name):
    """Ours, theirs and how many times better ours is."""
    _, key, _ = RATIOS[name]
    ours, theirs = median(row, "nereid", key), median(row, "reference", key)
    if ours is None and theirs is None:
        return "–"
    times = ratio(row, name)
    if times is None:
        return f"{number(ours)} / {number(theirs)}"
    return f"**{times:.2f}×** {number(ours)} / {number(theirs)}"


def table(head, lines):
    rows = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(rows + ["| " + " | ".join(line) + " |" for line in lines])


def losses(row):
    """What each side lost, where any did."""
    texts = []
    for side in ("nereid", "reference"):
        samples = row["samples"].get(side, [])
        lost, all_ = (sum(sample.get(key) or 0 for sample in samples) for key in ("lost", "responses"))
        if lost:
            name = "ours" if side == "nereid" else "the reference"
            texts.append(f"{name} lost {lost:,.0f} of {lost + all_:,.0f}")
        if side in row["errors"]:
            name = "ours" if side == "nereid" else "the reference"
            texts.append(f"{name} failed: {row['errors'][side].splitlines()[0][:120]}")
    return f" ({'; '.join(texts)})" if texts else ""


def load_table(rows):
    head = ["load", "server CPU µs", "rate/s", "p50 µs", "p99 µs", "peak MB", "context switches",
            "untuned reference: CPU, rate", "limit: CPU µs", "efficiency", "aim"]
    lines = []
    for row in rows:
        cells = [cell(row, name) for name in ("C", "T", "L", "L99", "M", "S")]
        floor = median(row, "floor", "cpu_us")
        share = efficiency(row)
        title = row["title"] if row["tool"] in ("http_load", "grpc_load") else row["key"]
        if row["samples"].get("nereid") and "batch" in row["samples"]["nereid"][0]:
            title += f"; mean batch {number(median(row, 'nereid', 'batch'))} / {number(median(row, 'reference', 'batch'))}"
        untuned = " / ".join(number(median(row, "defaults", key)) for key in ("cpu_us", "per_second"))
        lines.append([title + losses(row), *cells, untuned, number(floor), number(share), verdict(row)])
    return table(head, lines)


def start_table(rows):
    head = ["repository", "ready ms", "limit ms", "idle MB", "MB after load", "threads", "threads after load",
            "p99 µs", "aim"]
    lines = []
    for row in rows:
        cells = [cell(row, name) for name in ("ready", "idle", "loaded", "threads", "loaded_threads", "L99")]
        cells.insert(1, number(median(row, "floor", "ready_ms")))
        lines.append([row["title"] + losses(row), *cells, verdict(row)])
    return table(head, lines)


def value_table(rows, key, label):
    lines = []
    for row in rows:
        cells = [number(median(row, side, key)) for side in ("nereid", "reference", "defaults")]
        lines.append([row["title"] + losses(row), *cells, verdict(row)])
    return table([label, "Nereid", "reference", "reference, defaults", "aim"], lines)


LEGEND = (
    "A cell: **how many times better** ours / the tuned reference's. C is the ratio of server CPU per "
    "request, T that of throughput, L of the median latency, L99 of the 99th percentile, M of peak memory."
)
TITLES = {
    1: "Identity, 16 floats, HTTP",
    2: "Identity, 16 floats, gRPC",
    3: "1,000 floats as JSON",
    4: "Identity, 1 to 16 MB",
    5: "System shared memory",
    6: "ONNX models with dynamic batching",
    7: "Python models",
    8: "Ensembles of three steps",
    9: "Sequences",
    10: "Decoupled streams (costs and rates are per response)",
    11: "Response cache hits",
    12: "Many models",
    13: "Idle connections (bytes each)",
    14: "Real models, as they come",
}


def summary(rows):
    """One line for each number: how far the rows with an aim are."""
    lines = []
    for number_ in sorted({row["row"] for row in rows}):
        counts, open_ = [0, 0], []
        for row in rows:
            if row["row"] != number_:
                continue
            met, unmet, unknown = judge(row)
            counts[0] += len(met)
            counts[1] += len(met) + len(unmet) + len(unknown)
            open_ += [f"{row['title']}: {text}" for text in unmet + [f"{text}: not measured" for text in unknown]]
        state = "all met" if counts[0] == counts[1] else f"{counts[0]} of {counts[1]} met"
        lines.append([str(number_), TITLES[number_], state, "; ".join(open_) or "–"])
    return table(["#", "work", "aims", "not met"], lines)


def sections(rows):
    """Markdown with a heading and a table for each number."""
    parts = []
    for number_ in sorted({row["row"] for row in rows}):
        chosen = [row for row in rows if row["row"] == number_]
        parts.append(f"### {number_}. {TITLES[number_]}")
        if number_ == 13:
            parts.append(value_table(chosen, "bytes_each", "connections"))
        elif number_ == 12:
            parts.append(start_table([row for row in chosen if "hot" not in row["title"]]))
            hot = [row for row in chosen if "hot" in row["title"]]
            if hot:
                parts.append(value_table(hot, "quiet_ratio", "p99 while loading ÷ quiet"))
        else:
            parts.append(load_table(chosen))
    return "\n\n".join(parts)


def describe(content):
    machine, sides = content["machine"], content["sides"]
    texts = []
    for name, side in sides.items():
        arguments = " ".join(a for a in side["arguments"] if not a.startswith("--cache-directory"))
        version = content.get("versions", {}).get(name, "")
        texts.append(f"{name} {version} ({arguments or 'no arguments'})")
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, Linux "
        f"{machine['kernel']}; server on core {content['server_core']}, client on core "
        f"{content['client_core']}; medians of {content['rounds']} rounds of {content['seconds']} s; "
        f"load average before: {content['load_average']:.1f}; {', '.join(texts)}; commit {content['commit'][:12]}, {content['started']}."
    )


def as_text(content):
    parts = [describe(content), LEGEND, sections(content["rows"])]
    for title, lines in (("Skipped", content["skipped"]), ("Failed", content["failures"])):
        if lines:
            parts.append(f"{title}:\n" + "\n".join(f"- {line}" for line in lines))
    return "\n\n".join(part for part in parts if part) + "\n"


def merge(contents):
    """The rows of several runs, the last of each, in the order of their numbers."""
    merged = {}
    for content in contents:
        for row in content["rows"]:
            merged[row["key"]] = row
    return sorted(merged.values(), key=lambda row: row["row"])
