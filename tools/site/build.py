#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site, in build/docs: `./x docs` calls it with the environment of tools/site/setup.

usage: tools/site/build.py [--to FOLDER] [--serve [PORT]]

A warning of the generator (a link or an anchor that leads nowhere, a page that no menu has) is an error. The site
needs no other host: what it uses (fonts, scripts, the index of the search) is in it.
"""

import argparse
import functools
import http.server
import os
import pathlib
import shutil
import subprocess
import sys

import pages

HERE = pathlib.Path(__file__).resolve().parent


def build(folder):
    """Returns the exit status of the generator."""
    sources = folder.parent / f"{folder.name}-sources"
    copies = sources / "pages"
    pages.Copies(copies).write()
    for name in ("site.css", "search.js", "access.js"):
        shutil.copy(HERE / name, copies)
    configuration = sources / "mkdocs.yml"
    text = (HERE / "mkdocs.yml").read_text()
    configuration.write_text(text.replace("@SOURCE@", str(copies)).replace("@SITE@", str(folder)).replace("@HERE@", str(HERE)))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", configuration]
    environment = {"PATH": os.environ["PATH"], "HOME": str(sources), "PYTHONPATH": str(HERE), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    for line in done.stderr.splitlines():
        if line and not line.startswith("INFO"):
            print(line, file=sys.stderr)
    return done.returncode


def serve(folder, port):
    """Serves the folder to this machine until Ctrl-C."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"Serving http://127.0.0.1:{server.server_port}/ until Ctrl-C.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=pathlib.Path, default=pages.ROOT / "build" / "docs", help="default: build/docs")
    parser.add_argument("--serve", type=int, nargs="?", const=8080, metavar="PORT", help="serve it; default: 8080")
    arguments = parser.parse_args()
    folder = arguments.to.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    status = build(folder)
    if status:
        sys.exit(status)
    print(f"The site: {folder}/index.html")
    if arguments.serve is not None:
        serve(folder, arguments.serve)


if __name__ == "__main__":
    main()
