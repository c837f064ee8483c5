#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the fuzzers with clang's libFuzzer, runs them, and says what they did and found.

Each target (x_fuzz.cc beside x.cc) starts from its seeds, from the inputs that are kept in tests/fuzz/corpus, and from
what earlier runs found in build/fuzz/corpus. An input that breaks it is kept in build/fuzz/findings/TARGET; run
build/fuzz/fuzzers/TARGET_fuzz FILE to see it again. Each target's row is printed when its time is over, and put into
build/fuzz/report.json, so that a run of hours that is interrupted has not been in vain.

usage: ./x fuzz [--minutes 30] [--jobs 2] [--keep] [--list] [TARGET...]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
KEPT = ROOT / "tests" / "fuzz" / "corpus"
# What is kept in the repository of one target.
MAX_KEPT_BYTES = 48 << 10
MAX_KEPT_INPUT = 2 << 10
# An input that takes longer, or more memory, is a finding.
SECONDS_PER_INPUT = 25
MEGABYTES = 3000


class Failure(Exception):
    """What went wrong and what to do, for the user."""


def targets():
    """The names of all targets, by their sources."""
    found = {}
    for folder in ("src", "backends", "caches"):
        for path in (ROOT / folder).rglob("*_fuzz.cc"):
            name = path.name.removesuffix("_fuzz.cc")
            if name in found:
                raise Failure(f"two targets have the name {name}: {found[name]} and {path}")
            found[name] = path
    return found


def compiler():
    """A clang++ that has libFuzzer."""
    names = [os.environ["CXX"]] if "CXX" in os.environ else ["clang++-19", "clang++"]
    names = [name for name in names if shutil.which(name)]
    if not names:
        raise Failure("there is no clang++: install clang-19, or set CXX")
    source = "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [names[0], *os.environ.get("CXXFLAGS", "").split(), "-fsanitize=fuzzer,address,undefined", "-x", "c++", "-",
             "-o", f"{folder}/a.out"], input=source, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{names[0]} cannot link libFuzzer; on Debian it is in libclang-rt-19-dev:\n{done.stderr}")
    return names[0]


def build(names):
    made_with = compiler()
    environment = {**os.environ, "CXX": made_with, "CC": made_with.replace("clang++", "clang")}
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        environment.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
    jobs = str(os.cpu_count() or 1)
    for command in (["cmake", "--preset", "fuzz"],
                    ["cmake", "--build", "--preset", "fuzz", "--parallel", jobs,
                     "--target", *(f"{name}_fuzz" for name in names)]):
        if subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr).returncode != 0:
            raise Failure(f"this did not work: {' '.join(command)}")


def read_corpus(path):
    """The inputs in one of the repository's files; tests/fuzz/corpus.h says how they are written."""
    inputs, rest = [], path.read_bytes() if path.exists() else b""
    while rest:
        size, _, rest = rest.partition(b"\n")
        inputs.append(rest[: int(size)])
        rest = rest[int(size) + 1:]
    return inputs


def write_corpus(path, inputs):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(b"%d\n%s\n" % (len(content), content) for content in inputs))


class Target:
    """One fuzzer, and its folders below build/fuzz."""

    def __init__(self, name):
        self.name = name
        self.program = BUILD / "fuzzers" / f"{name}_fuzz"
        self.corpus = BUILD / "corpus" / name
        self.findings = BUILD / "findings" / name
        self.log = BUILD / "logs" / f"{name}.txt"

    def prepare(self):
        for folder in (self.corpus, self.findings, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([self.program], env={**os.environ, "NEREID_FUZZ_SEEDS": str(self.corpus)}, check=True,
                       capture_output=True)
        for number, content in enumerate(read_corpus(KEPT / self.name)):
            (self.corpus / f"kept-{number}").write_bytes(content)

    def run(self, seconds):
        """Fuzzes for that long; returns what is to be reported."""
        before = set(self.findings.iterdir())
        with open(self.log, "wb") as log:
            status = subprocess.run(
                [self.program, self.corpus, f"-max_total_time={seconds}", "-print_final_stats=1", "-use_value_profile=1",
                 f"-timeout={SECONDS_PER_INPUT}", f"-rss_limit_mb={MEGABYTES}", f"-artifact_prefix={self.findings}/"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode
        text = self.log.read_text(errors="replace")
        found = sorted(str(path.relative_to(ROOT)) for path in set(self.findings.iterdir()) - before)
        if status != 0 and not found:
            found = [f"exit status {status}: {self.log.relative_to(ROOT)}"]
        files = list(self.corpus.iterdir())
        return {
            "target": self.name,
            "executions": last_number(r"stat::number_of_executed_units: (\d+)", text) or last_number(r"^#(\d+)", text),
            "edges": last_number(r" cov: (\d+)", text),
            "of_edges": last_number(r"\((\d+) inline 8-bit counters\)", text),
            "corpus": len(files),
            "corpus_bytes": sum(path.stat().st_size for path in files),
            "seconds": last_number(r"Done \d+ runs in (\d+) second", text),
            "findings": found,
        }

    def keep(self):
        """Puts the fewest inputs that reach everything, as far as there is room, into the repository."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([self.program, "-set_cover_merge=1", f"-max_len={MAX_KEPT_INPUT}",
                            f"-artifact_prefix={self.findings}/", folder, self.corpus],
                           check=True, capture_output=True)
            inputs = sorted((path.read_bytes() for path in pathlib.Path(folder).iterdir()),
                            key=lambda content: (len(content), content))
        kept, room = [], MAX_KEPT_BYTES
        for content in inputs:
            room -= len(content) + 6
            if room < 0:
                break
            kept.append(content)
        # A target that breaks at once has reached nothing.
        if kept:
            write_corpus(KEPT / self.name, kept)
        return len(kept)


def last_number(pattern, text):
    found = re.findall(pattern, text, re.M)
    return int(found[-1]) if found else 0


def print_header():
    print(f"{'target':<18}{'executions':>12}{'seconds':>9}{'edges':>8}{'of all':>8}{'corpus':>8}{'KB':>8}  findings",
          flush=True)


def print_row(row):
    share = 100 * row["edges"] / row["of_edges"] if row["of_edges"] else 0
    print(f"{row['target']:<18}{row['executions']:>12,}{row['seconds']:>9}{row['edges']:>8}{share:>7.1f}%"
          f"{row['corpus']:>8}{row['corpus_bytes'] / 1000:>8.1f}  {', '.join(row['findings']) or 'none'}", flush=True)


def add_to_report(path, row):
    """Puts the row into the JSON file, in the place of what an earlier run said of that target."""
    rows = json.loads(path.read_text()) if path.exists() else []
    rows = [other for other in rows if other["target"] != row["target"]] + [row]
    path.write_text(json.dumps(rows, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="./x fuzz", description="Fuzzes the parsers of the server.")
    parser.add_argument("--minutes", type=float, default=30, help="for each target (default: 30)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at a time")
    parser.add_argument("--keep", action="store_true", help="then put the best inputs into tests/fuzz/corpus")
    parser.add_argument("--list", action="store_true", help="only name the targets")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    arguments = parser.parse_args()
    known = targets()
    if arguments.list:
        for name, path in sorted(known.items()):
            print(f"{name:<18}{path.relative_to(ROOT)}")
        return 0
    unknown = set(arguments.targets) - set(known)
    if unknown:
        raise Failure(f"there is no target {', '.join(sorted(unknown))}; ./x fuzz --list names them")
    names = arguments.targets or sorted(known)
    build(names)
    chosen = [Target(name) for name in names]
    for target in chosen:
        target.prepare()
    seconds = max(1, int(arguments.minutes * 60))
    report, has_findings = BUILD / "report.json", False
    print_header()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for run in concurrent.futures.as_completed([pool.submit(target.run, seconds) for target in chosen]):
            print_row(run.result())
            add_to_report(report, run.result())
            has_findings = has_findings or bool(run.result()["findings"])
    if arguments.keep:
        for target in chosen:
            target.keep()
    print(f"{report.relative_to(ROOT)}; logs are in {BUILD.relative_to(ROOT) / 'logs'}")
    return 1 if has_findings else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"tools/run_fuzzers.py: {failure}")
