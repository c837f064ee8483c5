#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes down the C ABI that the headers in src/abi declare, or compares it with a table.

The table has one line for each thing that a program compiled against the headers depends on:

    header triton/core/tritonserver.h
    constant NAME VALUE                   enum constants and version numbers
    enum NAME SIZE ALIGNMENT SIGN         types of enum constants, as they are compiled
    export NAME RESULT (PARAMETERS)       functions that the server exports
    import NAME RESULT (PARAMETERS)       functions that a plug-in may export
    callback NAME RESULT (PARAMETERS)     function pointer types

All structs of the headers are opaque; one with members would not be understood here, which fails.

Names and signatures are read from the headers' text, values from a C program that is made here and
run, so that they are what a compiler sees.

    abi_table.py --include src/abi --write tests/abi/abi_table.txt
    abi_table.py --include src/abi --compare tests/abi/abi_table.txt
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

HEADERS = [
    "triton/core/tritonserver.h",
    "triton/core/tritonbackend.h",
    "triton/core/tritoncache.h",
    "triton/core/tritonrepoagent.h",
]

# Declared with TRITONBACKEND_ISPEC in the published header, but a function of the server.
EXPORTED_DESPITE_ISPEC = {"TRITONBACKEND_InferenceResponseOutputByName"}


def statements(text):
    """Splits a header into its declarations, without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    text = text.replace('extern "C" {', "")
    depth, current = 0, ""
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == ";" and depth == 0:
            yield " ".join(current.split())
            current = ""
        else:
            current += char


def type_of(parameter):
    """The type of a parameter as the ABI sees it: without its name and top-level const."""
    parameter = re.sub(r"\bstruct ", "", parameter.strip())
    if parameter == "void":
        return parameter
    match = re.fullmatch(r"(.*[\s*])\w+", parameter)
    result = (match.group(1) if match else parameter).strip()
    return result if "*" in result else result.removeprefix("const ")


def signature(result, parameters):
    result = re.sub(r"\bstruct ", "", result).strip()
    return f"{result} ({', '.join(type_of(p) for p in parameters.split(','))})"


def read_header(path):
    """Returns (constants, enums, functions): names, names of types, and lines in the header's order."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    constants = re.findall(r"^#define (\w+_API_VERSION_\w+) ", text, flags=re.M)
    enums = []
    functions = []
    for statement in statements(text):
        if match := re.match(r"typedef enum \w+ \{(.*)\} (\w+)$", statement):
            enums.append(match.group(2))
            constants += re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", match.group(1))
        elif match := re.match(r"typedef (.+?) ?\(\s*\*\s*(\w+)\)\s*\((.*)\)$", statement):
            functions.append(f"callback {match.group(2)} {signature(match.group(1), match.group(3))}")
        elif match := re.match(r"\w+_(DECLSPEC|ISPEC) (.+?)\s*\b(\w+)\((.*)\)$", statement):
            spec, result, name, parameters = match.groups()
            exported = spec == "DECLSPEC" or name in EXPORTED_DESPITE_ISPEC
            functions.append(f"{'export' if exported else 'import'} {name} {signature(result, parameters)}")
        elif not re.match(r"struct \w+$", statement):
            raise ValueError(f"{path}: cannot read: {statement}")
    return constants, enums, functions


def values_of(constants, enums, include, cc):
    """Asks the compiler for the values of constants and the layout of enums: {name: text}."""
    lines = [f'#include "{header}"' for header in HEADERS]
    lines += ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f"struct Behind_{name} {{ char c; {name} e; }};" for name in enums]
    lines += ["int main(void) {"]
    lines += [f'  printf("{name} %lld\\n", (long long)({name}));' for name in constants]
    lines += [
        f'  printf("{name} %u %u %s\\n", (unsigned)sizeof({name}),'
        f" (unsigned)offsetof(struct Behind_{name}, e),"
        f' ({name})-1 < 0 ? "signed" : "unsigned");'
        for name in enums
    ]
    lines += ["  return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "values.c"), os.path.join(folder, "values")
        with open(source, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        subprocess.run([cc, "-std=c99", f"-I{include}", source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(line.split(maxsplit=1) for line in output.splitlines())


def make_table(include, cc):
    headers = {header: read_header(os.path.join(include, header)) for header in HEADERS}
    constants = [name for header in headers.values() for name in header[0]]
    enums = [name for header in headers.values() for name in header[1]]
    values = values_of(constants, enums, include, cc)
    lines = []
    for header, (constants, enums, functions) in headers.items():
        lines.append(f"header {header}")
        lines += [f"constant {name} {values[name]}" for name in constants]
        lines += [f"enum {name} {values[name]}" for name in enums]
        lines += functions
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Writes or compares the table of the C ABI.")
    parser.add_argument("--include", required=True, help="folder with the headers")
    parser.add_argument("--cc", default="cc", help="C compiler")
    parser.add_argument("--write", metavar="FILE", help="write the table")
    parser.add_argument("--compare", metavar="FILE", help="fail when the headers do not say what FILE says")
    args = parser.parse_args()
    table = make_table(args.include, args.cc)
    if args.write:
        with open(args.write, "w", encoding="utf-8") as f:
            f.write(table)
    if args.compare:
        with open(args.compare, encoding="utf-8") as f:
            expected = f.read()
        changes = difflib.unified_diff(
            expected.splitlines(), table.splitlines(), args.compare, "headers", lineterm="", n=0)
        report = "\n".join(changes)
        if report:
            print(f"The headers differ from the table:\n{report}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
