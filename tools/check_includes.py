#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds src/ to its module graph and to the rules that a compiler does not check.

The compiler already refuses an include that a target's declared edges forbid. What is left for this
check: that the declared edges are those of the table below, that nobody goes round them with "../",
that some types stay in the few places meant for them, and a few bans. Each finding is one line,
`file:line: what is wrong`; any finding fails the check.

usage: tools/check_includes.py [ROOT]
"""

import pathlib
import re
import sys

# What each module may name in an #include or as an edge in its CMakeLists.txt, itself aside. A name
# brings along what that module may name, except the modules in PRIVATE. Folders under src/; a
# nested module goes by its leaf. ARCHITECTURE.md shows the same table with its reasons.
MODULES = {
    "abi": [],
    "base": [],
    "proto": [],
    "json": ["base"],
    "tensor": ["base"],
    "net": ["base"],
    "observe": ["base", "json", "tensor"],
    "memory": ["tensor"],
    "config": ["tensor", "json", "proto"],
    "core": ["memory", "config", "observe"],
    "schedule": ["core"],
    "repository": ["core"],
    "s3": ["repository"],
    "plugins/abi_objects": ["core", "abi"],
    "plugins/backend_host": ["abi_objects", "core", "abi"],
    "plugins/cache_host": ["abi_objects", "core", "abi"],
    "plugins/repoagent_host": ["abi_objects", "repository", "abi"],
    "service": ["core"],
    "engine": ["service", "schedule", "repository", "s3", "abi_objects", "backend_host", "cache_host", "repoagent_host"],
    "frontends/common": ["service", "json", "net"],
    "frontends/http": ["common", "net"],
    "frontends/grpc": ["common", "net", "proto"],
    "frontends/openai": ["common", "net"],
    "frontends/console": ["common", "net"],
    "frontends/cloud": ["http"],
    "capi": ["engine", "abi_objects", "abi"],
    "app": ["engine", "http", "grpc", "openai", "console", "cloud", "capi"],
}
# Seen only by those whose own row names them.
PRIVATE = {"proto", "abi"}

# (pattern of the included file, folders that may include it, what it is)
CONFINED = [
    (re.compile(r"google/protobuf/|.*\.pb\.h$"), ["proto", "config", "frontends/grpc"], "protobuf"),
    (re.compile(r"triton/core/"), ["abi", "plugins", "capi"], "the C ABI"),
    (re.compile(r"boost/(asio|beast)|nghttp2/|sys/epoll\.h"), ["net"], "the event loop"),
    (re.compile(r"cuda"), ["memory"], "CUDA"),
]
CONDITIONALS = ["base/platform.h", "abi/"]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|\bsleep\s*\(")
EDGES = re.compile(r"nereid_module\((.*?)\)", re.S)
KEYWORDS = {"NAME", "DEPS", "PRIVATE_DEPS", "LIBS", "PRIVATE_LIBS", "TEST_LIBS"}


def reachable(name, by_leaf, seen=None):
    """The leaves of every module that `name` may include."""
    seen = set() if seen is None else seen
    for dep in MODULES[by_leaf[name]]:
        if dep not in seen:
            seen.add(dep)
            seen |= reachable(dep, by_leaf, set()) - PRIVATE
    return seen


class Check:
    def __init__(self, root):
        self.src = root / "src"
        self.root = root
        self.by_leaf = {folder.split("/")[-1]: folder for folder in MODULES}
        self.allowed = {leaf: reachable(leaf, self.by_leaf) | {leaf} for leaf in self.by_leaf}
        self.findings = []

    def find(self, path, line, text):
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def module_of(self, relative):
        """The leaf of the deepest module folder that holds the file, or None."""
        for parent in relative.parents:
            if parent.as_posix() in MODULES:
                return parent.name
        return None

    def include(self, path, number, module, quote, target):
        relative = path.relative_to(self.src).as_posix()
        if ".." in target.split("/"):
            self.find(path, number, f'include "{target}" by its module, not by a relative path')
            return
        for pattern, places, what in CONFINED:
            if pattern.match(target) and not any(relative.startswith(place + "/") for place in places):
                self.find(path, number, f"{what} ({target}) belongs to {', '.join(places)} only")
                return
        if quote == '"' and "/" in target:
            other = target.split("/")[0]
            if other in self.by_leaf and other not in self.allowed[module]:
                self.find(path, number, f"{module} may not include {other} ({target})")

    def source(self, path):
        relative = path.relative_to(self.src)
        module = self.module_of(relative)
        if module is None:
            self.find(path, 1, "this folder is not in the table of modules")
            return
        lines = path.read_text(errors="replace").splitlines()
        if not lines or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
            self.find(path, 1, "the first line must be // SPDX-License-Identifier: Apache-2.0")
        may_branch = any(relative.as_posix().startswith(place) for place in CONDITIONALS)
        if path.suffix == ".h" and module != "abi" and "#pragma once" not in lines:
            self.find(path, 1, "a header says #pragma once")
        for number, line in enumerate(lines, 1):
            if match := INCLUDE.match(line):
                self.include(path, number, module, *match.groups())
            if CONDITIONAL.match(line) and not may_branch:
                self.find(path, number, f"conditional compilation belongs to {', '.join(CONDITIONALS)} only")
            if SLEEP.search(line.split("//")[0]):
                self.find(path, number, "no sleeps: wait on a condition with a deadline")

    def edges(self, path):
        """The declared edges of one CMakeLists.txt."""
        for call in EDGES.finditer(re.sub(r"#.*", "", path.read_text())):
            keyword, name, deps = None, None, []
            for word in call.group(1).split():
                if word in KEYWORDS:
                    keyword = word
                elif keyword == "NAME":
                    name = word
                elif keyword in ("DEPS", "PRIVATE_DEPS"):
                    deps.append(word)
            if name not in self.by_leaf:
                self.find(path, 1, f"module {name} is not in the table of modules")
                continue
            for dep in deps:
                if dep in self.by_leaf and dep not in self.allowed[name]:
                    self.find(path, 1, f"{name} may not depend on {dep}")

    def run(self):
        for path in sorted(self.src.rglob("*")):
            if path.suffix in (".h", ".cc", ".c"):
                self.source(path)
            elif path.name == "CMakeLists.txt":
                self.edges(path)
        return self.findings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    findings = Check(root).run()
    print(*findings, sep="\n", end="\n" if findings else "")
    if findings:
        sys.exit(f"{len(findings)} findings")


if __name__ == "__main__":
    main()
