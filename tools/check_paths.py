#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds comments and documents to the files that there are: a file that they name exists.

A name such as `http/route.h`, `route.h` or `docs/http.md` may leave out the folders in front of it. Names
that begin with a folder of this tree (`src/engine`) are looked for from its root. Files of other projects
are named in comments that say so ("of Triton"), or are in the list below.

usage: tools/check_paths.py [ROOT]
"""

import os
import pathlib
import re
import sys

# Where files are that are ours; the rest of the tree is made by builds and tools.
FOLDERS = """abi agents app backends bench caches cmake console deploy docs examples include packaging proto python src tests tools
.github .devcontainer""".split()
# Files of other projects and of users, and names that stand for any.
ELSEWHERE = re.compile(
    r"""(.*/)?(
      (core|server|client|common|backend|python_backend)/(src|python)/.*  # Triton's
    | model\.(py|onnx|json) | config\.pbtxt | triton_python_backend_utils\.py | .*\.pb\.h
    | onnx\.proto | onnxruntime_(ep_)?c_api\.h | grpc/reflection/.* | opentelemetry/proto/.*
    | .*\.so | graph\.cc | file\.cc | backend\.c | x(_test|_fuzz)?\.(h|cc)
    )""",
    re.X,
)
# What stands for another folder: the include roots of plug-ins.
ALIASES = [("backend_kit/", "backends/kit/"), ("cache_kit/", "caches/kit/")]
FILE = r"(?:[\w.-]+/)*[\w-][\w.-]*\.(?:h|cc|c|py|md|proto|cmake)"
# A name with a pattern or a placeholder in front of it or behind it names no one file.
NAME = re.compile(rf"(?<![\w/.$<>{{}}*~-])(?:\./)?({FILE})(?![\w/*-])")
FOLDER = re.compile(r"(?<![\w/.$<>{}*~-])(?:\./)?((?:src|tests|docs|tools|backends|caches|agents)/[\w/.-]*\w)(?![\w/*<{-])")
# Decisions are called by their number.
ADR = re.compile(r"docs/adr/\d{4}")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMENTS = {
    **dict.fromkeys((".h", ".cc", ".c", ".cpp", ".proto"), re.compile(r"(?:^|\s)(?://|/?\*+)\s(.*)")),
    **dict.fromkeys((".py", ".cmake", ".sh", ".yaml", ".yml", ".txt", ""), re.compile(r"(?:^|\s)#\s(.*)")),
    ".md": re.compile(r"(.*)"),
}


class Check:
    def __init__(self, root):
        self.root = root
        self.files = [path for folder in ["."] + FOLDERS for path in self.list(folder)]
        self.names = {"/".join(path.parts[i:]) for path in self.files for i in range(len(path.parts))}
        self.folders = {parent.as_posix() for path in self.files for parent in path.parents}
        self.findings = []

    def list(self, folder):
        """The files of a folder; of the root only those that lie in itself."""
        paths = (self.root / folder).glob("*" if folder == "." else "**/*")
        skipped = {"build", "__pycache__", "node_modules"}
        return [
            relative
            for path in sorted(paths)
            if path.is_file() and not skipped & set((relative := path.relative_to(self.root)).parts)
        ]

    def exists(self, name, beside):
        for alias, folder in ALIASES:
            if name.startswith(alias):
                name = folder + name.removeprefix(alias)
        if name in self.names or name in self.folders or ELSEWHERE.fullmatch(name):
            return True
        if ADR.fullmatch(name):
            return any(folder_or_file.startswith(name + "-") for folder_or_file in self.names)
        near = os.path.normpath(beside / name)
        return near in self.folders or pathlib.PurePath(near) in self.files

    def mentions(self, path):
        """(line, name, what surrounds it) of every file that comments or text of `path` name."""
        comment = COMMENTS.get(path.suffix)
        if comment is None:
            return
        block, names = [], []
        lines = (self.root / path).read_text(errors="replace").splitlines()
        for number, line in enumerate([*lines, ""], 1):
            match = comment.search(line)
            # A block of comments is read as a whole: the project may be named in another line.
            if match is None or not match[1]:
                yield from ((*name, " ".join(block)) for name in names)
                block, names = [], []
                continue
            text = re.sub(r"https?://\S+", "", match[1])
            block.append(text)
            found = NAME.findall(text) + FOLDER.findall(text)
            if path.suffix == ".md":
                found += LINK.findall(text)
            names += [(number, name) for name in dict.fromkeys(found)]

    def run(self):
        for path in self.files:
            for number, name, around in self.mentions(path):
                is_of_triton = path.suffix != ".md" and re.search(r"\b(of Triton|Triton's)\b", around)
                if not is_of_triton and not self.exists(name, path.parent):
                    self.findings.append(f"{path}:{number}: there is no {name}")
        return self.findings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    findings = Check(root).run()
    print(*findings, sep="\n", end="\n" if findings else "")
    if findings:
        sys.exit(f"{len(findings)} findings")


if __name__ == "__main__":
    main()
