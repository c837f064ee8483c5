# SPDX-License-Identifier: Apache-2.0
"""What becomes of the documents of the repository before the generator reads them.

The site has the folders of the repository, so the links between documents work in both. What a document links to that
is no document (a header, a folder of examples) becomes a page as well, with its text. Where the generator's Markdown
reads something differently from the forges' (CommonMark), the copy is written so that both mean the same.
"""

import functools
import os
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where reading begins: these documents, those of the menu, and all that they link to.
ENTRANCES = ("README.md", "docs")
MENU = pathlib.Path(__file__).resolve().parent / "mkdocs.yml"
PICTURES = (".svg", ".png", ".jpg")
LANGUAGES = {".h": "c", ".c": "c", ".cc": "cpp", ".py": "python", ".proto": "protobuf", ".pbtxt": "pbtxt", ".sh": "bash"}
NAMES = {"CMakeLists.txt": "cmake", "x": "bash"}
LARGEST_SOURCE = 100_000
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
# How much more a page counts in the search than others, by the beginning of its path; the first one that fits.
BOOSTS = (
    ("docs/troubleshooting", 2),
    ("docs/differences", 0.3),
    ("docs/check", 0.3),
    ("docs/adr/", 0.2),
    ("docs/performance", 0.3),
    ("docs/", 1),
    ("README", 1),
    ("", 0.3),
)

FENCE = re.compile(r"^( *)(```+)(.*)$")
LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LIST = re.compile(r"^ *([-*+]|\d+\.) ")


def blocks(text):
    """(is code, lines) in the order of the text; a fenced block is code, with its fences."""
    lines, fence, found = text.splitlines(), None, []
    for line in lines:
        match = FENCE.match(line)
        if fence is None and match:
            fence = match[2]
            found.append((True, [line]))
        elif fence is not None:
            found[-1][1].append(line)
            if match and match[2].startswith(fence) and not match[3].strip():
                fence = None
                found.append((False, []))
        else:
            if not found or found[-1][0]:
                found.append((False, []))
            found[-1][1].append(line)
    return [(is_code, part) for is_code, part in found if part]


def outside_code(line, change):
    """The line with `change` made to what is not in backticks."""
    parts, end = [], 0
    for match in CODE.finditer(line):
        parts += [change(line[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, change(line[end:])])


def links(text):
    """(path, anchor) of each link, of those that are not in code."""
    for is_code, lines in blocks(text):
        for line in () if is_code else lines:
            # Code in the text of a link is part of the link.
            for match in LINK.finditer(CODE.sub("code", line)):
                yield match[2], (match[3] or "")[1:]


def in_menu():
    """The documents that the menu lists."""
    nav = MENU.read_text().split("\nnav:\n", 1)[1]
    return re.findall(r"(?m)^ +- (?:[^:]+: )?(\S+\.md)$", nav)


def is_outside(path):
    return bool(re.match(r"[a-z]+:", path))


def target_of(document, path):
    """The file or folder in the repository that a link of a document means; ValueError if it leads outside."""
    return pathlib.PurePosixPath(os.path.normpath((ROOT / document).parent / path)).relative_to(ROOT)


class Copies:
    """Writes the documents, and what they link to, into a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.waiting = []
        self.known = set()

    def write(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for entrance in ENTRANCES:
            path = ROOT / entrance
            for file in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
                self.want(file.relative_to(ROOT))
        for document in in_menu():
            # The generator reports a page of the menu that there is not.
            if (ROOT / document).exists():
                self.want(document)
        while self.waiting:
            path = self.waiting.pop()
            if path.suffix == ".md":
                self.put(path, self.document(path))
            elif path.suffix in PICTURES:
                self.put(path, None)
            elif (ROOT / path).is_dir():
                self.put(path / "index.md", self.listing(path))
            else:
                self.put(pathlib.Path(f"{path}.md"), self.source(path))

    def want(self, path):
        path = pathlib.Path(path)
        if path not in self.known:
            self.known.add(path)
            self.waiting.append(path)

    def put(self, path, text):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copyfile(ROOT / path, target)
        else:
            target.write_text(text)

    def document(self, path):
        """The text of a document for the generator."""
        written = []
        for is_code, lines in blocks((ROOT / path).read_text()):
            if written and written[-1]:
                written.append("")
            before = ""
            for line in lines:
                if is_code:
                    # Error texts are read whole, also on a narrow screen.
                    is_error = line == "```text" and str(path).startswith("docs/troubleshooting")
                    written.append("``` { .text .wrapped }" if is_error else line)
                    continue
                # CommonMark lets a list follow a line of text; the generator wants an empty line.
                if LIST.match(line) and before and not LIST.match(before) and not before.startswith(" "):
                    written.append("")
                if line.startswith("|"):
                    line = CODE.sub(lambda match: match[0].replace("\\|", "|"), line)
                written.append(LINK.sub(functools.partial(self.link, path), line))
                before = line
        boost = next(boost for beginning, boost in BOOSTS if str(path).startswith(beginning))
        return f"---\nsearch:\n  boost: {boost}\n---\n\n" + "\n".join(written) + "\n"

    def link(self, document, match):
        before, path, anchor, after = match[1], match[2], match[3] or "", match[4]
        if not path or is_outside(path):
            return match[0]
        target = target_of(document, path)
        # The generator reports a link that leads nowhere.
        if not (ROOT / target).exists():
            return match[0]
        if (ROOT / target).is_dir():
            name = "README.md" if (ROOT / target / "README.md").exists() else "index.md"
            self.want(target / name if name == "README.md" else target)
            path = f"{path.rstrip('/')}/{name}"
        elif target.suffix not in (".md", *PICTURES):
            self.want(target)
            path = f"{path}.md"
        else:
            self.want(target)
        return f"{before}{path}{anchor}{after}"

    def source(self, path):
        """A page with the text of a file."""
        return f"{NOT_SEARCHED}# {path.name}\n\n`{path}`\n\n{self.shown(path)}"

    def listing(self, path):
        """A page with the texts of a folder's files, or with their names if they are many."""
        files = sorted(file for file in (ROOT / path).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        parts = [f"{NOT_SEARCHED}# {path}\n"]
        if sum(file.stat().st_size for file in files) > LARGEST_SOURCE:
            parts += ["In the repository:\n", *(f"- `{file.relative_to(ROOT)}`" for file in files)]
            return "\n".join(parts) + "\n"
        for file in files:
            relative = file.relative_to(ROOT)
            parts.append(f"## {file.relative_to(ROOT / path)}\n\n{self.shown(relative)}")
        return "\n".join(parts)

    def shown(self, path):
        content = (ROOT / path).read_bytes()
        if len(content) > LARGEST_SOURCE:
            return f"{len(content)} bytes, in the repository.\n"
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return f"{len(content)} bytes that are no text, in the repository.\n"
        language = NAMES.get(path.name) or LANGUAGES.get(path.suffix, "text")
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))
        return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
