#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes packages of a build: what `./x package` calls.

usage: packaging/make.py [options] tarball|deb|image|wheel|all...

The same files give the same packages, byte for byte: set SOURCE_DATE_EPOCH, or use the same commit.
"""

import argparse
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from parts import ROOT, Failure, project_version
from stage import parts_named

KINDS = ("tarball", "deb", "image", "wheel")
TOOLS = {"readelf": "binutils", "strip": "binutils", "patchelf": "patchelf", "dpkg-query": "dpkg", "cmake": "cmake"}
TOOLS_OF = {"deb": {"dpkg-deb": "dpkg", "dpkg-shlibdeps": "dpkg-dev"}}


def check_tools(kinds):
    wanted = dict(TOOLS)
    for kind in kinds:
        wanted |= TOOLS_OF.get(kind, {})
    missing = sorted({package for tool, package in wanted.items() if shutil.which(tool) is None})
    if missing:
        raise Failure(f"programs are missing; run tools/setup --packaging, or install {', '.join(missing)}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./x package")
    parser.add_argument("kinds", nargs="+", choices=[*KINDS, "all"], metavar="|".join([*KINDS, "all"]))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/packages")
    parser.add_argument("--parts", default="", help="only these, with commas between them (default: all that is built)")
    parser.add_argument("--version", default=project_version())
    options = parser.parse_args(arguments)
    kinds = KINDS if "all" in options.kinds else list(dict.fromkeys(options.kinds))
    os.umask(0o022)
    try:
        check_tools(kinds)
        parts = parts_named([name for name in options.parts.split(",") if name], options.build)
        options.out.mkdir(parents=True, exist_ok=True)
        for kind in kinds:
            with tempfile.TemporaryDirectory(prefix=f"nereid-{kind}-") as work:
                module = importlib.import_module(kind)
                for path in module.make(options.build.resolve(), options.out, pathlib.Path(work), parts, options.version):
                    print(f"{path}  {path.stat().st_size / 1e6:.1f} MB", flush=True)
    except (Failure, OSError, subprocess.CalledProcessError) as failure:
        print(f"./x package: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
