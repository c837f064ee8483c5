#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference in docs/commands.md, below its mark, from what `nereid help --json` says.

usage: tools/commands_page.py [PROGRAM]      the program is build/release/src/app/nereid otherwise
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "commands.md"
PROGRAM = ROOT / "build" / "release" / "src" / "app" / "nereid"
MARK = "<!-- Everything below is written by tools/commands_page.py. -->\n"


def cell(text):
    return text.replace("|", "\\|")


def options(arguments):
    """A table of arguments."""
    yield "| argument | meaning |"
    yield "| --- | --- |"
    for one in arguments:
        yield f"| `{cell(one['title'])}` | {cell(one['help'])} |"


def section(command, shared):
    """The lines about one command; `shared` is the group of options that have a section of their own."""
    yield f"\n### nereid {command['name']}\n"
    yield f"{command['summary']}. {command['description']}".rstrip() + "\n"
    yield f"```text\n{command['usage']}\n```\n"
    yield from options([one for one in command["arguments"] if one["group"] != shared])
    for example in command["examples"]:
        yield f"\n`{example['line']}`: {example['text']}"
    if any(one["group"] == shared for one in command["arguments"]):
        waits = next(one["default"] for one in command["arguments"] if "--timeout" in one["names"])
        yield f"\nAlso the [options for the server](#the-server); `--timeout` is {waits} by default."


def reference(commands):
    """The reference as Markdown."""
    shared = "The server"
    lines, group = [], None
    for command in commands:
        if command["group"] != group:
            group = command["group"]
            lines.append(f"\n## {group}")
        lines += section(command, shared)
    lines += [f"\n## {shared}\n", "What every command that asks a server understands.\n"]
    asking = next(c for c in commands if any(one["group"] == shared for one in c["arguments"]))
    lines += options([one for one in asking["arguments"] if one["group"] == shared])
    return "\n".join(lines) + "\n"


def described(program):
    return json.loads(subprocess.run([program, "help", "--json"], check=True, capture_output=True).stdout)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else PROGRAM
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + reference(described(program)))


if __name__ == "__main__":
    main()
