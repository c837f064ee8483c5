#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference in docs/configuration.md, below its mark, from proto/model_config.proto and its comments.

usage: tools/configuration_page.py
"""

import dataclasses
import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"
SOURCE = ROOT / "proto" / "model_config.proto"
MARK = "<!-- Everything below is written by tools/configuration_page.py. -->\n"
# The message that config.pbtxt holds; reading begins with it.
WHOLE = "ModelConfig"

FIELD = re.compile(r"(repeated )?(map<[^>]*>|[\w.]+) (\w+) = \d+;")
VALUE = re.compile(r"(\w+) = (\d+);")
OPENED = re.compile(r"(message|enum|oneof) (\w+) \{(\})?")


@dataclasses.dataclass
class Block:
    """A message, an enumeration or a oneof."""

    kind: str
    name: str  # with the names of the messages around it
    comment: str
    parent: "Block | None" = None
    members: list = dataclasses.field(default_factory=list)  # (name, type, comment), Blocks of kind oneof among them
    blocks: list = dataclasses.field(default_factory=list)


def parsed(text):
    """The blocks of the file. It is written by us, one declaration a line."""
    whole = Block("file", "", "")
    at, comment = whole, []
    for line in text.split("package inference;", 1)[1].splitlines():
        line = line.strip()
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        said, comment = " ".join(comment), []
        if match := OPENED.fullmatch(line):
            kind, name, is_empty = match.groups()
            around = f"{at.name}." if at.name and kind != "oneof" else ""
            block = Block(kind, around + name, said, at)
            (at.members if kind == "oneof" else at.blocks).append(block)
            if not is_empty:
                at = block
        elif line == "}":
            at = at.parent
        elif match := FIELD.fullmatch(line):
            at.members.append((match[3], (match[1] or "") + match[2], said))
        elif match := VALUE.fullmatch(line):
            at.members.append((match[1], match[2], said))
        elif line:
            sys.exit(f"{SOURCE.name}: not understood: {line}")
    return whole


def everything(block):
    for inner in block.blocks:
        yield inner
        yield from everything(inner)


def anchor(name):
    return re.sub(r"[^\w-]", "", name.lower())


class Page:
    def __init__(self, whole):
        self.blocks = {block.name: block for block in everything(whole)}

    def found(self, name, around):
        """The block that a type's name means inside a block; None for a type of protobuf's own."""
        while True:
            full = f"{around.name}.{name}" if around.name else name
            if full in self.blocks:
                return self.blocks[full]
            if around.parent is None:
                return None
            around = around.parent

    def shown(self, name, around):
        block = self.found(name, around)
        if block is not None and not block.members:
            return f"`{name}`, which has no fields"
        return f"`{name}`" if block is None else f"[`{name}`](#{anchor(block.name)})"

    def type(self, text, around):
        if match := re.fullmatch(r"map<(\S+), (\S+)>", text):
            return f"{self.shown(match[1], around)} → {self.shown(match[2], around)}"
        repeated = text.startswith("repeated ")
        shown = self.shown(text.removeprefix("repeated "), around)
        return f"list of {shown}" if repeated else shown

    def rows(self, block, around, one_of=""):
        for member in block.members:
            if isinstance(member, Block):
                names = ", ".join(f"`{name}`" for name, *_ in member.members)
                yield f"| one of {names} | | {cell(member.comment)} |"
                yield from self.rows(member, around)
            else:
                name, text, comment = member
                yield f"| `{name}` | {self.type(text, around)} | {cell(comment)} |"

    def section(self, block):
        depth = "###" if "." in block.name else "##"
        yield f"\n{depth} {block.name}\n"
        yield f"{marked(block.comment)}\n"
        if block.kind == "enum":
            yield "| value | meaning |"
            yield "| --- | --- |"
            # Names that say all share a row.
            for comment, members in itertools.groupby(block.members, lambda member: member[2]):
                names = ", ".join(f"`{name}`" for name, *_ in members)
                yield f"| {names} | {cell(comment) or 'as the name says'} |"
        else:
            yield "| field | type | meaning |"
            yield "| --- | --- | --- |"
            yield from self.rows(block, block)

    def order(self):
        """The whole first, and then each block after the first that mentions it."""
        done, waiting = [], [self.blocks[WHOLE]]
        while waiting:
            block = waiting.pop(0)
            if block in done:
                continue
            done.append(block)
            used = []
            members = [m for one in block.members for m in (one.members if isinstance(one, Block) else [one])]
            for _, text, _ in members if block.kind != "enum" else ():
                for name in re.findall(r"[\w.]+", text):
                    inner = self.found(name, block)
                    if inner is not None and inner not in used:
                        used.append(inner)
            if block.name == WHOLE:
                waiting += used
            else:
                waiting = used + waiting
        everyone = done + [block for block in self.blocks.values() if block not in done]
        return [block for block in everyone if block.members]


def marked(text):
    """A comment as Markdown: names of fields, values and flags as code."""
    text = re.sub(r'(?<![\w`])(--[a-z-]+|\w+_<\w+>\.\w+|[A-Z]+_[A-Z0-9_]+|[a-z]+(?:_[a-z]+)+|"[\w.<>-]+")(?![\w`])', r"`\1`", text)
    return re.sub(r"<(\w+)>", r"\<\1>", re.sub(r"`[^`]*`", lambda m: m[0].replace("<", "\0"), text)).replace("\0", "<")


def cell(text):
    return marked(text).replace("|", "\\|")


def reference():
    page = Page(parsed(SOURCE.read_text()))
    return "\n".join(line for block in page.order() for line in page.section(block)) + "\n"


def main():
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + reference())


if __name__ == "__main__":
    main()
