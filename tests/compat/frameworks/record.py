#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the server under test says to the cases of a framework: README.md has the commands.

    cd tests && python -m compat.frameworks.record pytorch FILE.json
"""

import json
import pathlib
import sys
import tempfile

from compat.frameworks import asking


def write(path, noted):
    """One response in one line."""
    models = []
    for model, parts in noted.items():
        lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(part)}" for name, part in parts.items())
        models.append(f"  {json.dumps(model)}: {{\n{lines}\n  }}")
    pathlib.Path(path).write_text("{\n" + ",\n".join(models) + "\n}\n")


def main():
    framework, path = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        write(path, asking.ask(framework, folder))


if __name__ == "__main__":
    main()
