#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps files and functions of src/ and backends/ small enough to read.

A file of more than 1,000 lines fails, a function of more than 100 lines is reported (and fails with
--strict). Functions are found by their braces, without a compiler: a block at namespace or class
level whose head has parentheses is one.

usage: tools/check_sizes.py [--strict] [--summary] [ROOT]
"""

import argparse
import pathlib
import re
import sys

MAX_FILE, REVIEW_FILE = 1000, 600
MAX_FUNCTION, REVIEW_FUNCTION = 100, 60

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/            # comments
    |R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"  # raw strings
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'  # strings and characters
    |^[ \t]*\#(?:\\\n|[^\n])*         # preprocessor lines
    """,
    re.S | re.X | re.M,
)
TYPE = re.compile(r"\b(namespace|class|struct|enum|union)\b[^()]*$|\bextern\s*$")
# A digit separator, which would otherwise open a character.
SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")


def blank(text):
    """The text without comments, strings and preprocessor lines; line breaks stay."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), SEPARATOR.sub("_", text))


def functions(text):
    """(first line, last line, head) of every function body at namespace or class level."""
    text = blank(text)
    scopes = []  # "type" where declarations stand, otherwise the start of a function, or None inside one
    head_start, line = 0, 1
    for position, character in enumerate(text):
        if character == "\n":
            line += 1
        elif character == "{":
            head = text[head_start:position].strip()
            outside = all(scope == "type" for scope in scopes)
            if outside and (TYPE.search(head) or not head):
                scopes.append("type")
            elif outside and "(" in head:
                scopes.append((line - head.count("\n"), " ".join(head.split())))
            else:
                scopes.append(None)
            head_start = position + 1
        elif character == "}":
            scope = scopes.pop() if scopes else None
            if isinstance(scope, tuple):
                yield scope[0], line, scope[1]
            head_start = position + 1
        elif character == ";":
            head_start = position + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="long functions fail, too")
    parser.add_argument("--summary", action="store_true", help="print the numbers as well")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    root = pathlib.Path(arguments.root).resolve()

    failures, reports, file_sizes, function_sizes = [], [], [], []
    for path in sorted(p for part in ("src", "backends") for p in (root / part).rglob("*") if p.suffix in (".h", ".cc")):
        name, text = path.relative_to(root), path.read_text(errors="replace")
        lines = text.count("\n")
        file_sizes.append(lines)
        if name.as_posix().startswith("src/abi/triton/"):
            continue  # as long as the ABI is
        if lines > MAX_FILE:
            failures.append(f"{name}:1: {lines} lines in a file; the limit is {MAX_FILE}")
        for first, last, head in functions(text):
            size = last - first + 1
            function_sizes.append(size)
            if size > MAX_FUNCTION and not re.match(r"TEST(_F|_P)?\b", head):
                reports.append(f"{name}:{first}: {size} lines in a function; the limit is {MAX_FUNCTION}: {head[:80]}")

    print(*failures, *reports, sep="\n", end="\n" if failures or reports else "")
    if arguments.summary and file_sizes:
        file_sizes.sort()
        print(
            f"{len(file_sizes)} files, 90% up to {file_sizes[len(file_sizes) * 9 // 10]} lines, "
            f"{sum(s > REVIEW_FILE for s in file_sizes)} over {REVIEW_FILE}; "
            f"{len(function_sizes)} functions, {sum(s > REVIEW_FUNCTION for s in function_sizes)} over {REVIEW_FUNCTION}"
        )
    if failures or (arguments.strict and reports):
        sys.exit(1)


if __name__ == "__main__":
    main()
