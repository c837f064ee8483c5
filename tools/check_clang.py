#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads our C++ sources with clang: its thread-safety analysis, or everything that .clang-tidy asks for.

The thread-safety analysis finds a field that is touched without the lock that guards it, and a function that
is called without the locks that it requires. It runs inside clang-tidy, which comes as a Python package, so
that no second compiler is needed. Nothing is compiled: the compile commands of a build say how each file is
read. A file is left out where neither it nor any header that it includes has an annotation, since nothing
can be found there. Precompiled headers are not used, so each file must include what it needs.

usage: tools/check_clang.py [--tidy] [--clang-tidy PROGRAM] [--jobs N] [--list] [BUILD] [FILE...]

  BUILD     the folder of compile_commands.json (default: build/release); the target `proto` must be built
  FILE...   only these files
  --tidy    all checks of .clang-tidy and all warnings, over each file by itself, tests included
  --list    prints the files that would be read, and reads none

Where the build compiles several sources of a module as one (a unity build), they are read as one, too, which takes
less than half of the time, unless --tidy or FILE... is given.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("src", "backends", "caches", "agents", "python")
TESTS = re.compile(r"_(test|bench|fuzz)\.cc$|/(testing|test_plugin|test_cuda)/")
ANNOTATION = re.compile(r"\b[A-Z]\w*_(?:GUARDED_BY|REQUIRES|EXCLUDES|ACQUIRE|RELEASE)\(")
# A file of CMake's that includes the sources of one batch.
UNITY = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
# The macros themselves.
DEFINITION = re.compile(r"^#define .*", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
# What of a compiler's command decides how a file is read.
FLAG = re.compile(r"-(?:[IDU].+|std=.+|m.+|W(?!error).+)$")
FLAG_WITH_VALUE = ("-I", "-D", "-U", "-isystem")
CLANG_FLAGS = [
    "-Wthread-safety",
    # Some warnings have a name in g++ only.
    "-Wno-unknown-warning-option",
    # RapidJSON 1.1 has a member function template that clang 19 refuses unless its body is only looked at
    # when it is used.
    "-fdelayed-template-parsing",
    "-Wno-delayed-template-parsing-in-cxx20",
]
THREAD_SAFETY = [
    "--config={}",
    # Without a check of its own clang-tidy reads nothing; one about another language costs nothing.
    "--checks=-*,clang-diagnostic-thread-safety*,objc-super-self",
    "--warnings-as-errors=*",
    "--header-filter=.*",
]
# A test may copy what it likes.
OF_TESTS = ["--checks=-performance-*"]
COUNTS = re.compile(r"^(?:\d+ warnings?.*(?:generated|treated as errors?)\.?|Suppressed .*|Use -header-filter=.*)\n?", re.M)


def flags_of(entry):
    """The flags of an entry of compile_commands.json that clang needs as well."""
    words = entry["arguments"] if "arguments" in entry else shlex.split(entry["command"])
    flags, words = [], iter(words[1:])
    for word in words:
        if word == "-include" or word == "-o":
            next(words)
        elif word in FLAG_WITH_VALUE:
            flags += [word, next(words)]
        elif FLAG.match(word):
            flags.append(word)
    return flags


def include_folders(entry):
    """The folders where a file's headers of this project are looked for."""
    flags = flags_of(entry)
    folders = [flag[2:] for flag in flags if flag.startswith("-I") and len(flag) > 2]
    folders += [value for flag, value in zip(flags, flags[1:]) if flag == "-I"]
    return [os.path.join(entry["directory"], folder) for folder in folders]


@functools.cache
def scan(path):
    """Whether a file has an annotation, and what it includes."""
    text = pathlib.Path(path).read_text(errors="replace")
    return bool(ANNOTATION.search(DEFINITION.sub("", text))), INCLUDE.findall(text)


def sees_annotations(path, folders):
    """Whether a file, or a header of ours that it includes at any depth, has an annotation."""
    seen, waiting = set(), [path]
    while waiting:
        path = waiting.pop()
        annotated, names = scan(path)
        if annotated:
            return True
        for name in names:
            for folder in [os.path.dirname(path), *folders]:
                found = os.path.join(folder, name)
                if os.path.isfile(found):
                    found = os.path.realpath(found)
                    if found not in seen:
                        seen.add(found)
                        waiting.append(found)
                    break
    return False


def sources_of(entry):
    """The sources that are compiled with an entry of compile_commands.json: one, or those of a unity build."""
    path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
    if UNITY.search(path):
        return [os.path.realpath(name) for name in scan(path)[1]]
    return [path]


def chosen(options):
    """What to read: a name to call it by, and an entry like those of compile_commands.json."""
    named = {os.path.realpath(file) for file in options.files}
    for entry in json.loads((options.build / "compile_commands.json").read_text()):
        wanted = []
        for path in sources_of(entry):
            name = os.path.relpath(path, options.root)
            if not name.endswith(".cc") or not name.startswith(tuple(part + "/" for part in PARTS)):
                continue
            if named and path not in named:
                continue
            if options.tidy or not TESTS.search(name) and sees_annotations(path, include_folders(entry)):
                wanted.append((name, path))
        if wanted and not named and not options.tidy:
            yield " ".join(name for name, _ in wanted), entry
            continue
        for name, path in wanted:
            yield name, entry | {"file": path}


def read(options, name, entry):
    """What clang has to say about one file; empty where that is nothing."""
    checks = ([] if TESTS.search(name) is None else OF_TESTS) if options.tidy else THREAD_SAFETY
    command = [options.clang_tidy, "--quiet", *checks, entry["file"], "--"]
    command += ["-xc++", *flags_of(entry), *CLANG_FLAGS]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return (done.stdout + COUNTS.sub("", done.stderr)).strip() or f"{entry['file']}: clang-tidy failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=PROJECT / "build/release")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--tidy", action="store_true")
    parser.add_argument("--clang-tidy", default=PROJECT / ".venv/bin/clang-tidy")
    parser.add_argument("--root", type=pathlib.Path, default=PROJECT, help="the sources, for tests of this check")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    options.root = options.root.resolve()

    files = list(chosen(options))
    if options.list:
        print(*(name for name, _ in files), sep="\n")
        return
    # A finding in a header is reported with every file that includes it, and shown once.
    failed, shown = 0, set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for findings in pool.map(lambda file: read(options, *file), files):
            failed += bool(findings)
            if findings and findings not in shown:
                shown.add(findings)
                print(findings, flush=True)
    count = sum(len(name.split()) for name, _ in files)
    print(f"{count} files read, {failed} with findings")
    sys.exit(1 if failed or not files else 0)


if __name__ == "__main__":
    main()
