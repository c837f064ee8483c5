#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps files, functions and classes of our C++ small enough to read.

A file of more than 1,000 lines fails. A function of more than 100 lines and a class over its budget are
reported, and fail with --strict. The budget of a class is 20 data members and 500 lines.

- Lines are those of its definition and of its methods, over all the files in which these are defined;
  functions beside the class do not count.
- The data members of a nested class count for the nested class alone, its lines for both.
- A struct that only carries values (options, settings, a row of a table) may have as many fields as it likes.
  It is a class for this check as soon as it has a method that changes it, or a lock, an atomic, a thread or a
  guarded field.
- Tests have no budget.

OVER_BUDGET names the classes that may be larger, each with the reason; a name that is not needed is reported.

usage: tools/check_sizes.py [--strict] [--summary] [ROOT]
"""

import argparse
import dataclasses
import pathlib
import re
import sys

import cpp_reader

PROJECT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("src", "backends", "caches", "agents", "python")
MAX_FILE, REVIEW_FILE = 1000, 600
MAX_FUNCTION, REVIEW_FUNCTION = 100, 60
MAX_FIELDS, MAX_CLASS = 20, 500
# As long as the ABI is.
GIVEN = "src/abi/triton/"
TESTS = re.compile(r"_(test|bench|fuzz|fixture)\.|(^|/)(test_\w+\.|(testing|test_plugin|test_cuda|tests)/)")

# Names without nereid::, and why they may be over the budget.
OVER_BUDGET = {
    "core::Request": "what the client asked and what each stage notes about it: a second object would be a second "
    "allocation or a pointer to follow on every step of a request",
    "engine::Engine": "the composition of a server; its polling and its readiness are the parts that could leave",
    "schedule::Sequence": "without methods that change it; it stands in four intrusive lists of SequenceTable",
}


def sources(root):
    """(path from the root, text) of every C and C++ file of ours."""
    for part in PARTS:
        for path in sorted((root / part).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".h", ".cc", ".c") and not name.startswith(GIVEN):
                yield name, path.read_text(errors="replace")


@dataclasses.dataclass
class Budget:
    """What a class has used of its budget, over all files."""

    file: str
    line: int
    name: str
    fields: int
    has_state: bool
    lines: int


def budgets(files):
    """The budget of every class in {path: (functions, classes)}; tests are left out."""

    def key(name, scope):
        # Plug-ins may name their classes alike, and so may files the ones that they keep to themselves.
        return (name if "" in scope else "/".join(name.split("/")[: 1 if name.startswith("src/") else 2]), scope)

    found, definitions = {}, {}
    for name, (_, classes) in files.items():
        for one in () if TESTS.search(name) else classes:
            title = "::".join(part for part in one.scope if part and part != "nereid")
            found[key(name, one.scope)] = Budget(
                name, one.first, title, one.fields, one.kind == "class" or one.has_state, one.last - one.first + 1
            )
            definitions.setdefault(name, []).append((one.first, one.last))
    for name, (functions, _) in files.items():
        for function in functions:
            if any(first <= function.first <= last for first, last in definitions.get(name, ())):
                continue
            for depth in range(1, len(function.scope) + 1):
                if owner := found.get(key(name, function.scope[:depth])):
                    owner.lines += function.last - function.first + 1
    return list(found.values())


def over_budget(found):
    """What is wrong with each class over its budget, as (file, line, name, text)."""
    for one in found:
        if one.has_state and one.fields > MAX_FIELDS:
            yield one.file, one.line, one.name, f"{one.name} has {one.fields} data members; the limit is {MAX_FIELDS}"
        if one.lines > MAX_CLASS:
            yield one.file, one.line, one.name, f"{one.name} has {one.lines} lines; the limit is {MAX_CLASS}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="long functions and classes over their budget fail, too")
    parser.add_argument("--summary", action="store_true", help="print the numbers as well")
    parser.add_argument("root", nargs="?", default=PROJECT)
    arguments = parser.parse_args()
    root = pathlib.Path(arguments.root).resolve()

    failures, reports, file_sizes, function_sizes, files = [], [], [], [], {}
    for name, text in sources(root):
        lines = text.count("\n")
        file_sizes.append(lines)
        if lines > MAX_FILE:
            failures.append(f"{name}:1: {lines} lines in a file; the limit is {MAX_FILE}")
        files[name] = cpp_reader.read(text)
        for function in files[name][0]:
            size = function.last - function.first + 1
            function_sizes.append(size)
            if size > MAX_FUNCTION and not re.match(r"TEST(_F|_P)?\b", function.head):
                reports.append(
                    f"{name}:{function.first}: {size} lines in a function; the limit is {MAX_FUNCTION}: {function.head[:80]}"
                )

    classes = budgets(files)
    reasons = dict(OVER_BUDGET) if root == PROJECT else {}
    for file, line, name, text in over_budget(classes):
        if name not in OVER_BUDGET:
            reports.append(f"{file}:{line}: {text}")
        reasons.pop(name, None)
    reports += [f"tools/check_sizes.py:1: {name} is within its budget and needs no reason" for name in reasons]

    print(*failures, *reports, sep="\n", end="\n" if failures or reports else "")
    if arguments.summary and file_sizes:
        file_sizes.sort()
        print(
            f"{len(file_sizes)} files, 90% up to {file_sizes[len(file_sizes) * 9 // 10]} lines, "
            f"{sum(s > REVIEW_FILE for s in file_sizes)} over {REVIEW_FILE}; "
            f"{len(function_sizes)} functions, {sum(s > REVIEW_FUNCTION for s in function_sizes)} over {REVIEW_FUNCTION}; "
            f"{len(classes)} classes and structs, {len(OVER_BUDGET)} with a reason to be over their budget"
        )
    if failures or (arguments.strict and reports):
        sys.exit(1)


if __name__ == "__main__":
    main()
