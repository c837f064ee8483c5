#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the structure of the sources and holds it against the bars that this project has set itself.

Prints a table of gates (what is measured, the bar, today's figure, whether the bar is held), what stands behind
each bar that is missed, and with --modules the size and the test ratio of each module. Nothing is built, and
everything is read in a few seconds. What a check refuses outright (check_includes.py, check_sizes.py) is here as
well, so that one table shows all.

usage: tools/measure.py [--modules] [--strict] [ROOT]

  --modules   a second table: one row for each module and plug-in
  --strict    exit status 1 when a bar is missed
"""

import argparse
import collections
import dataclasses
import pathlib
import re
import sys

import check_includes
import check_sizes
import cpp_reader

PROJECT = pathlib.Path(__file__).resolve().parent.parent
RUN = 12  # lines that make a repeated run
MUTEX = re.compile(r"^\s*(?:mutable\s+|static\s+)*((?:\w+::)*Mutex|std::\w*mutex)\s+(\w+)", re.M)
# The annotated locks themselves.
LOCKS = re.compile(r"(^|/)mutex\.h$")
# Locks without an annotation, by file and name, and why clang has nothing to check there.
LONE_LOCKS = {
    ("src/engine/engine.h", "polling_"): "makes one poll wait for another and guards no field",
    ("src/schedule/ensemble_runs.h", "mutex_"): "for the wait until the buckets are empty, which have locks of their own",
    ("src/base/stack_trace.cc", "reading_mutex"): "for one reading at a time; what is read is written by a signal handler",
    ("src/core/execution_mark.cc", "slots_mutex"): "keeps names still while they are read; signal handlers read the slots",
    ("src/isolation/channel.h", "ring_mutex_"): "for one writer of a ring, which lies in shared memory",
    ("src/net/connection.h", "mutex_"): "for the wait until an atomic count is zero",
}
# A variable that outlives every object: static, thread-local or of a namespace, and not constant.
STATIC = re.compile(
    r"^\s*(?:(?:inline|constinit|static|thread_local)\s+)*(?:static|thread_local)\s+"
    r"(?!const\b|constexpr\b|inline\b|constinit\b|static\b|thread_local\b)[\w:]+(?:<[^()]*>)?[\s*&]+(?:const\s+)?\w+\s*(?:=|\{|;|$)"
)
GLOBAL = re.compile(
    r"^(?!return|using|namespace|typedef|extern|friend|const\b|constexpr|static_assert)[\w:]+(?:<[^()]*>)?[\s*&]+\w+(?:\s*=[^;(]*|\{[^;]*\})?;$"
)
# Where such variables may stand, and what they are.
PROCESS_WIDE = {
    "src/base/log.cc": "the log",
    "src/base/buffer.cc": "the pool of buffers",
    "src/base/object_pool": "the pools of objects",
    "src/base/budget": "a thread's share of units",
    "src/base/heartbeat.h": "the kernel's number of this thread",
    "src/base/no_wait.h": "whether this thread may wait",
    "src/base/stack_trace.cc": "the stack that a signal handler reads",
    "src/base/per_thread.h": "a thread's share of a pool",
    "src/base/quick_exit.cc": "what the process removes when it ends",
    "src/core/statistics.cc": "slots of counters, of which a thread has its own",
    "src/core/execution_mark.cc": "what executes, for the report of a crash, which is a signal handler",
    "src/core/release_scope.h": "the execution that is in progress on this thread",
    "src/schedule/ensemble_run.cc": "whether this thread handles events of ensembles",
    "src/engine/published.h": "tells published values apart",
    "src/http_client/curl_library.cc": "libcurl, which is opened once",
    "src/memory/fault_guard": "the SIGBUS handler",
    "src/observe/custom_metrics.cc": "families of metrics that plug-ins make; their C API names no server",
    "src/observe/trace_context.cc": "random numbers of a thread",
    "src/http_client/retry.cc": "random numbers of a thread",
    "src/net/http1/http1_connection.cc": "random numbers of a thread",
    "src/net/reactor.cc": "the reactor of this thread",
    "src/schedule/cache_key.cc": "hashing contexts of a thread",
    "src/plugins/backend_host/api_backend.cc": "a handle without anything behind it",
    "src/schedule/wake_signal.cc": "condition variables that outlive their owners; a late notification is harmless",
    "src/schedule/direct_source.cc": "a sink without a state",
    "src/schedule/step_limiter.cc": "places given on this thread",
    "src/capi/inference_call.cc": "the submission that is in progress on this thread; a sink that drops everything",
    "src/capi/trace.cc": "numbers of traces",
    "src/access/gate.cc": "tells gates apart in what a thread keeps of them",
    "src/app/crash_report.cc": "the report of a crash, which is a signal handler",
    "src/app/run.cc": "the alarm of a process that ends",
    "src/app/frontends_api/": "getopt, whose state belongs to the process",
    "backends/": "a plug-in belongs to the process that loads it",
    "python/": "an extension module belongs to its interpreter",
}


@dataclasses.dataclass
class Gate:
    name: str
    bar: str
    now: str
    holds: bool
    details: list = dataclasses.field(default_factory=list)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def share(part, whole):
    return part / whole if whole else 0.0


class Sources:
    """Everything that is counted, read once."""

    def __init__(self, root):
        self.root = root
        self.texts = dict(check_sizes.sources(root))
        self.read = {name: cpp_reader.read(text) for name, text in self.texts.items()}
        self.code = {name: cpp_reader.blank(text) for name, text in self.texts.items()}
        self.product = [name for name in self.texts if not check_sizes.TESTS.search(name)]

    def lines(self, names):
        return sum(self.texts[name].count("\n") for name in names)

    def under(self, *folders, product=True):
        chosen = self.product if product else set(self.texts) - set(self.product)
        return [name for name in chosen if name.startswith(folders)]

    def test_ratio(self, folder):
        return share(self.lines(self.under(folder, product=False)), self.lines(self.under(folder)))

    def functions(self, names):
        return [(name, function) for name in names for function in self.read[name][0]]


def edges(sources):
    """{module: the modules that its product files include}, by leaf."""
    found = collections.defaultdict(set)
    leaves = {folder.split("/")[-1] for folder in check_includes.MODULES}
    for name in sources.under("src/"):
        own = module_of(name).split("/")[-1]
        for match in re.finditer(r'^\s*#\s*include\s+"([^/"]+)/', sources.texts[name], re.M):
            if match[1] in leaves and match[1] != own:
                found[own].add(match[1])
    return found


def module_of(name):
    """The folder of the module or plug-in that a file belongs to."""
    parts = name.split("/")
    if parts[0] != "src":
        return "/".join(parts[:2])
    for length in range(len(parts) - 1, 1, -1):
        if "/".join(parts[1:length]) in check_includes.MODULES:
            return "/".join(parts[:length])
    return "/".join(parts[:2])


def cycles(graph):
    """Modules that lie on a cycle."""

    def reaches(start, goal):
        seen, waiting = set(), [start]
        while waiting:
            for following in graph.get(waiting.pop(), ()):
                if following == goal:
                    return True
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return False

    return sorted(node for node in graph if reaches(node, node))


def modules_and_includes(sources):
    graph = edges(sources)
    round_trips = cycles(graph)
    findings = check_includes.Check(sources.root).run()
    sleeps = [finding for finding in findings if re.search(r"sleep|yield", finding)]
    others = [finding for finding in findings if finding not in sleeps]
    names = f"{len(graph)} modules, {sum(map(len, graph.values()))} edges"
    yield Gate("module cycles", "0", f"{len(round_trips)} ({names})", not round_trips, round_trips)
    yield Gate("illegal includes, other findings of check_includes", "0", str(len(others)), not others, others)
    yield Gate("sleeps and yields outside of their list", "0", str(len(sleeps)), not sleeps, sleeps)


def sizes(sources):
    for title, folders, bar, most in (("src", ("src/",), 271, 2), ("plug-ins", ("backends/", "caches/", "agents/"), 240, 1)):
        names = sources.under(*folders)
        lengths = {name: sources.lines([name]) for name in names}
        values = list(lengths.values())
        now = f"{percentile(values, 0.5)} / {percentile(values, 0.9)} / {max(values, default=0)}"
        yield Gate(f"{title}: lines of a file, p50 / p90 / max", f"p90 <= {bar}", now, percentile(values, 0.9) <= bar)
        long = [f"{name}: {lines} lines" for name, lines in lengths.items() if lines > check_sizes.REVIEW_FILE]
        yield Gate(f"{title}: files over {check_sizes.REVIEW_FILE} lines", f"<= {most}", str(len(long)), len(long) <= most, long)


def functions(sources):
    for title, folders, bar in (("src", ("src/",), 0.0023), ("plug-ins", ("backends/", "caches/", "agents/"), 0.0012)):
        all_of_them = sources.functions(sources.under(*folders))
        count = len(all_of_them)

        def longer(limit):
            return [f"{n}:{f.first}: {f.last - f.first + 1} lines" for n, f in all_of_them if f.last - f.first + 1 > limit]

        over, far_over = longer(check_sizes.REVIEW_FUNCTION), longer(check_sizes.MAX_FUNCTION)
        yield Gate(f"{title}: functions over 60 lines", "<= 0.03 %", f"{len(over)} of {count}", share(len(over), count) <= 0.0003, over)
        yield Gate(f"{title}: functions over 100 lines", "0", str(len(far_over)), not far_over, far_over)
        wide = [f"{n}:{f.first}: {f.parameters} parameters" for n, f in all_of_them if f.parameters > 6]
        now = f"{len(wide)} ({100 * share(len(wide), count):.2f} %)"
        yield Gate(f"{title}: functions with more than 6 parameters", f"<= {100 * bar:.2f} %", now, share(len(wide), count) <= bar, wide)


def classes(sources):
    found = check_sizes.budgets(sources.read)
    over = {(name, text): f"{file}:{line}: {text}" for file, line, name, text in check_sizes.over_budget(found)}
    without = [text for (name, _), text in over.items() if name not in check_sizes.OVER_BUDGET]
    excused = len({name for name, _ in over}) - len({name for name, _ in over if name not in check_sizes.OVER_BUDGET})
    yield Gate("classes over their budget without a reason", "0", f"{len(without)} ({excused} with one)", not without, without)

    total, undocumented = 0, []
    for name in sources.product:
        if not name.endswith(".h"):
            continue
        lines = sources.texts[name].split("\n")
        for one in sources.read[name][1]:
            total += 1
            if not re.match(r"\s*(//|\*|/\*)", lines[one.first - 2]):
                undocumented.append(f"{name}:{one.first}: {one.kind} {one.scope[-1]}")
    documented = 1 - share(len(undocumented), total)
    now = f"{100 * documented:.1f} % of {total}"
    yield Gate("classes and structs in headers with a comment", ">= 95 %", now, documented >= 0.95, sorted(undocumented))


def conditionals(sources):
    names = sources.under("src/", "backends/", "caches/", "agents/")
    found = sum(len(re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b", sources.texts[name], re.M)) for name in names)
    outside = [n for n in sources.under("src/") if not n.startswith("src/abi/")]
    now = 1000 * share(found, sources.lines(names))
    own = sum(len(re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b", sources.texts[name], re.M)) for name in outside)
    yield Gate("preprocessor conditionals in 1,000 lines", "<= 0.5", f"{now:.2f} ({found}; {own} in src outside of abi)", now <= 0.5)


def locks(sources):
    total, unannotated, recursive = 0, [], []
    for name in sources.product:
        code = sources.code[name]
        recursive += [f"{name}: {word}" for word in re.findall(r"\brecursive\w*_mutex\b", code)]
        if LOCKS.search(name):
            continue
        bodies = [(f.first, f.last) for f in sources.read[name][0]]
        for match in MUTEX.finditer(code):
            total += 1
            line = code.count("\n", 0, match.start(2)) + 1
            is_local = any(first < line <= last for first, last in bodies)
            named = re.search(rf"NEREID_\w+\([^)]*\b{match[2]}\b", code)
            known = match[1].endswith("Mutex") and (named or is_local)
            if not known and (name, match[2]) not in LONE_LOCKS:
                unannotated.append(f"{name}:{line}: {match[1]} {match[2]}")
    yield Gate("locks that clang cannot check", "0", f"{len(unannotated)} of {total}", not unannotated, unannotated)
    yield Gate("recursive locks", "0", str(len(recursive)), not recursive, recursive)
    orders = collections.Counter({name: len(re.findall(r"\bmemory_order", sources.code[name])) for name in sources.product})
    most = [f"{name}: {count}" for name, count in orders.most_common(10)]
    yield Gate("explicit memory orders", "<= 150", str(orders.total()), orders.total() <= 150, most)


def process_wide(sources):
    found, places = [], set()
    for name in sources.product:
        for number, line in enumerate(sources.code[name].split("\n"), 1):
            if STATIC.match(line) or name.endswith(".cc") and GLOBAL.match(line):
                place = next((place for place in PROCESS_WIDE if name.startswith(place)), None)
                if place is None:
                    found.append(f"{name}:{number}: {line.strip()}")
                else:
                    places.add(place)
    yield Gate("process-wide state outside of its list", "0", f"{len(found)} ({len(places)} places listed)", not found, found)


def repeats(sources):
    """Runs of code in src/ that occur twice to the letter, blanks and comments aside. (Plug-ins repeat the
    signatures of the C functions that each of them has.)"""
    seen, found, past = {}, [], {}
    for name in sources.under("src/"):
        code = cpp_reader.without_comments(sources.texts[name]).split("\n")
        lines = [(n, " ".join(text.split())) for n, text in enumerate(code, 1) if text.strip() and text[0] != "#"]
        for at in range(len(lines) - RUN + 1):
            run = "\n".join(text for _, text in lines[at : at + RUN])
            if run in seen and lines[at][0] > past.get(name, 0):
                found.append(f"{name}:{lines[at][0]} and {seen[run]}")
                past[name] = lines[at + RUN - 1][0]
            seen.setdefault(run, f"{name}:{lines[at][0]}")
    yield Gate(f"src: runs of {RUN} lines that occur twice", "0", str(len(found)), not found, found)


def tests(sources):
    for title, folder, bar in (
        ("src", "src/", 0.5),
        ("engine", "src/engine/", 0.5),
        ("backends/python", "backends/python/", 0.4),
        ("frontends/grpc", "src/frontends/grpc/", 0.4),
    ):
        ratio = sources.test_ratio(folder)
        yield Gate(f"{title}: lines of unit tests to a line of code", f">= {bar}", f"{ratio:.2f}", ratio >= bar)


MEASURES = (modules_and_includes, sizes, functions, conditionals, classes, locks, process_wide, repeats, tests)


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_modules(sources):
    rows = [("module", "files", "lines", "p90", "max", "tests/code")]
    for module in sorted({module_of(name) for name in sources.product}):
        nested = [other + "/" for other in map("src/{}".format, check_includes.MODULES) if other.startswith(module + "/")]
        names = [name for name in sources.texts if name.startswith(module + "/") and not name.startswith(tuple(nested))]
        own = [name for name in names if not check_sizes.TESTS.search(name)]
        lengths = [sources.lines([name]) for name in own]
        ratio = share(sources.lines(names) - sum(lengths), sum(lengths))
        rows.append((module, str(len(own)), str(sum(lengths)), str(percentile(lengths, 0.9)), str(max(lengths)), f"{ratio:.2f}"))
    print_table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=PROJECT)
    arguments = parser.parse_args()

    sources = Sources(arguments.root.resolve())
    gates = [gate for measure in MEASURES for gate in measure(sources)]
    print_table([("gate", "bar", "now", "holds")] + [(g.name, g.bar, g.now, "yes" if g.holds else "NO") for g in gates])
    for gate in gates:
        if not gate.holds and gate.details:
            print(f"\n{gate.name}:", *gate.details, sep="\n  ")
    if arguments.modules:
        print()
        print_modules(sources)
    if arguments.strict and not all(gate.holds for gate in gates):
        sys.exit(1)


if __name__ == "__main__":
    main()
