#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the sources to the module graph and to the rules that a compiler does not check.

The compiler already refuses an include that a target's declared edges forbid. What is left for this
check: that the declared edges are those of the table below and that ARCHITECTURE.md shows the same, that no
include goes round them with "../", that plug-ins see nothing of the server but its C headers, that some
types stay in the few places meant for them, and a few bans. Each finding is one line, `file:line: what is wrong`;
any finding fails the check.

usage: tools/check_includes.py [ROOT]
"""

import pathlib
import re
import sys

# What each module may name in an #include or as an edge in its CMakeLists.txt, itself aside. A name
# brings along what that module may name, except the modules in PRIVATE. Folders under src/; a
# nested module goes by its leaf. ARCHITECTURE.md shows the same table.
MODULES = {
    "abi": [],
    "base": [],
    "proto": [],
    "tensor": ["base"],
    "net": ["base"],
    "net/http1": ["net"],
    "net/http2": ["net"],
    "http_client": ["base"],
    "loadgen": ["base"],
    "observe": ["base", "tensor", "http_client"],
    "memory": ["tensor"],
    "config": ["tensor", "proto"],
    "core": ["memory", "config", "observe"],
    "access": ["core", "http_client", "net"],
    "schedule": ["core"],
    "repository": ["core"],
    "object_store": ["repository", "http_client"],
    "s3": ["object_store"],
    "gcs": ["object_store"],
    "azure": ["object_store"],
    "app/stores": ["repository", "s3", "gcs", "azure"],
    "plugins/abi_objects": ["core", "abi"],
    "plugins/backend_host": ["abi_objects", "core", "abi"],
    "plugins/cache_host": ["abi_objects", "core", "abi"],
    "plugins/repoagent_host": ["abi_objects", "repository", "abi"],
    "service": ["core"],
    "engine": ["service", "schedule", "repository", "abi_objects", "backend_host", "cache_host", "repoagent_host"],
    "isolation": ["backend_host", "abi_objects", "core", "abi"],
    "check": ["engine"],
    "doctor": ["engine", "backend_host"],
    "frontends/common": ["service", "access", "net"],
    "frontends/http": ["common", "http1"],
    "frontends/cloud": ["http"],
    "frontends/console": ["http"],
    "frontends/openai": ["http"],
    "frontends/grpc": ["common", "http2", "proto"],
    "capi": ["engine", "stores", "abi_objects", "abi"],
    "cli": ["http_client", "loadgen", "check", "doctor", "access", "stores"],
    "app": ["cli", "engine", "http", "cloud", "console", "openai", "grpc", "capi", "isolation"],
    "app/frontends_api": ["app", "abi_objects", "abi"],
}
# Seen only by those whose own row names them.
PRIVATE = {"proto", "abi"}

# (pattern of the included file, folders that may include it, what it is)
CONFINED = [
    (re.compile(r"google/protobuf/|.*\.pb\.h$"), ["proto", "config", "frontends/grpc"], "protobuf"),
    (re.compile(r"triton/core/"), ["abi", "plugins", "capi", "isolation"], "the C ABI"),
    (re.compile(r"sys/epoll\.h"), ["net", "loadgen"], "the event loop"),
    (re.compile(r"boost/(asio|beast)"), ["net/http1"], "Beast"),
    (re.compile(r"nghttp2/"), ["net/http2", "loadgen"], "nghttp2"),
    (re.compile(r"cuda"), ["memory"], "CUDA"),
    (re.compile(r"CLI/"), ["cli"], "CLI11"),
]
# Folders of plug-ins and of the Python extension, and what they may include of ours besides their own files.
PLUGINS = ["backends", "caches", "agents", "python"]
PLUGIN_INCLUDES = ["backend_kit", "cache_kit", "triton", "nereid"]
CONDITIONALS = [
    "src/base/platform.h",
    "src/abi/",
    # Annotations that clang alone knows.
    "backends/kit/mutex.h",
    # The instruction that tells a processor that a loop is waiting.
    "backends/python/wait.cc",
    "backends/python/worker/native/waits.c",
]
# A sleep wakes for nothing and delays what it waits for. These have a reason for one.
SLEEPS = [
    "src/base/sleep.",
    # A lock of a file, which tells nobody when it is free.
    "src/object_store/download.cc",
    # The delays that models and tests ask for.
    "src/frontends/grpc/infer_call.cc",
    "src/frontends/grpc/control_call.cc",
    "backends/identity/",
    "backends/repeat/",
    "backends/sequence/",
    "backends/dyna_sequence/",
    "backends/iterative_sequence/",
    "backends/square/",
    "backends/kit/responses.h",
]
# The locks that clang's thread-safety analysis knows are made of those that it does not know.
LOCKS = [
    "src/base/mutex.h",
    "backends/kit/mutex.h",
    # Libraries of the tests, written like somebody else's.
    "src/memory/test_cuda/",
    "src/plugins/backend_host/test_plugin/",
]
# Loops on yield() wait for another thread to finish a few instructions that have begun.
YIELDS = ["src/net/reactor.cc", "backends/python/worker/native/waits.c"]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|SleepFor)\b|\bsleep\s*\(")
LOCK = re.compile(r"\bstd::((?:recursive_|shared_|timed_)*mutex|condition_variable\w*)\b")
YIELD = re.compile(r"\b(sched_yield|this_thread::yield)\b")
# A condition variable of one block, which must be told about by name for anybody to signal it.
LOCAL_CONDITION = re.compile(r"^\s+(?:base::CondVar|std::condition_variable(?:_any)?)\s+(\w*[^_\W]);")
# A row of the table of modules: its folder, what it is, what it may include.
ROW = re.compile(r"^\| `([a-z0-9_/]+)` \|[^|]*\|([^|]*)\|$")
EDGES = re.compile(r"nereid_module\((.*?)\)", re.S)
KEYWORDS = {"NAME", "DEPS", "PRIVATE_DEPS", "LIBS", "PRIVATE_LIBS", "TEST_LIBS", "UNITY"}


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

    def common(self, path, lines):
        """The rules of every source file of ours."""
        relative = path.relative_to(self.root).as_posix()

        def listed(places):
            return any(relative.startswith(place) for place in places)

        if not lines or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
            self.find(path, 1, "the first line must be // SPDX-License-Identifier: Apache-2.0")
        if path.suffix == ".h" and not relative.startswith("src/abi/") and "#pragma once" not in lines:
            self.find(path, 1, "a header says #pragma once")
        text = "\n".join(lines)
        is_test = path.stem.endswith("_test")
        for number, line in enumerate(lines, 1):
            code = line.split("//")[0]
            if CONDITIONAL.match(line) and not listed(CONDITIONALS):
                self.find(path, number, f"conditional compilation belongs to {', '.join(CONDITIONALS)} only")
            if SLEEP.search(code) and not listed(SLEEPS):
                self.find(path, number, "no sleeps: wait on a condition with a deadline")
            if LOCK.search(code) and not listed(LOCKS):
                self.find(path, number, f"locks belong to {', '.join(LOCKS)} only: use the annotated Mutex and CondVar")
            if YIELD.search(code) and not listed(YIELDS) and not is_test:
                self.find(path, number, "no loops on yield(): wait on a condition with a deadline")
            if path.suffix == ".cc" and (match := LOCAL_CONDITION.match(line)) and not re.search(
                rf"\b{match[1]}\b\s*(?:\.\s*(?:[Nn]otify|Signal)|[,)}}])", text
            ):
                self.find(path, number, f"nobody can signal {match[1]}: a sleep is called base::SleepFor")

    def source(self, path):
        """A file of the server."""
        relative = path.relative_to(self.src)
        module = self.module_of(relative)
        if module is None:
            self.find(path, 1, "this folder is not in the table of modules")
            return
        lines = path.read_text(errors="replace").splitlines()
        self.common(path, lines)
        for number, line in enumerate(lines, 1):
            if match := INCLUDE.match(line):
                self.include(path, number, module, *match.groups())

    def plugin(self, path):
        """A file of a plug-in, which is built against the C headers alone."""
        lines = path.read_text(errors="replace").splitlines()
        self.common(path, lines)
        for number, line in enumerate(lines, 1):
            if not (match := INCLUDE.match(line)):
                continue
            quote, target = match.groups()
            first = target.split("/")[0]
            if first == "..":
                self.find(path, number, f'include "{target}" by its library, not by a relative path')
            elif quote == '"' and first in self.by_leaf and first not in PLUGIN_INCLUDES:
                self.find(path, number, f"a plug-in may not include the server's {first} ({target})")

    def architecture(self):
        """The table of modules in ARCHITECTURE.md names the modules and edges of the table here."""
        path = self.root / "ARCHITECTURE.md"
        if not path.exists():
            return
        shown = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := ROW.match(line):
                shown[match[1]] = (number, re.findall(r"`([^`]+)`", match[2]))
        for folder, deps in MODULES.items():
            if folder not in shown:
                self.find(path, 1, f"the table of modules has no row for {folder}")
            elif sorted(shown[folder][1]) != sorted(deps):
                self.find(path, shown[folder][0], f"{folder} may include {', '.join(deps) or 'nothing'}")

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
        for part in PLUGINS:
            for path in sorted((self.root / part).rglob("*")):
                if path.suffix in (".h", ".cc", ".c"):
                    self.plugin(path)
        self.architecture()
        return self.findings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    findings = Check(root).run()
    print(*findings, sep="\n", end="\n" if findings else "")
    if findings:
        sys.exit(f"{len(findings)} findings")


if __name__ == "__main__":
    main()
