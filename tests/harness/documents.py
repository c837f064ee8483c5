# SPDX-License-Identifier: Apache-2.0
"""The documents of the repository, and what is in them."""

import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "site"))

import pages  # noqa: E402

SKIPPED = {"build", "node_modules", ".deps", ".venv", ".git"}


def documents():
    """All documents, as paths from the root."""
    return [
        path.relative_to(ROOT)
        for path in sorted(ROOT.rglob("*.md"))
        if not SKIPPED & set(path.relative_to(ROOT).parts)
    ]


@dataclasses.dataclass
class Block:
    """A fenced block of code."""

    document: pathlib.Path
    line: int  # of the opening fence, from 1
    language: str
    text: str

    def __str__(self):
        return f"{self.document}:{self.line}"


def code_blocks(path):
    """The fenced blocks of a document, those in lists among them."""
    opened, language, lines = None, "", []
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = pages.FENCE.match(line)
        if opened is None and match:
            opened, language, lines = (number, len(match[1]), match[2]), match[3].strip(), []
        elif opened and match and match[2].startswith(opened[2]) and not match[3].strip():
            yield Block(path, opened[0], language, "\n".join(lines) + "\n")
            opened = None
        elif opened:
            lines.append(line[min(opened[1], len(line) - len(line.lstrip())) :])
    assert opened is None, f"{path}:{opened[0]}: the block does not end"


def anchors(path):
    """The anchors that forges and the site give to the headings of a document."""
    found = []
    for is_code, lines in pages.blocks((ROOT / path).read_text()):
        for line in () if is_code else lines:
            if match := re.match(r"#{1,6} +(.*?)(?: +#+)?$", line):
                title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
                title = re.sub(r"[`*]|<[^>]*>", "", title) if "`" not in title else re.sub(r"[`*]", "", title)
                found.append(re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-"))
    return set(found)
