# SPDX-License-Identifier: Apache-2.0
"""A file system with little room, where the machine lets tests mount one."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def mounted(folder, size):
    """Makes `folder` a file system of so many bytes."""
    folder.mkdir(exist_ok=True)
    line = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        made = subprocess.run(line, capture_output=True, text=True, timeout=60)
    except OSError as error:
        pytest.skip(f"no mount: {error}")
    if made.returncode != 0:
        pytest.skip(f"this machine lets tests mount nothing: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=60)


def fill(folder):
    """Leaves no byte free; gives the file that takes the room."""
    file = folder / "filler"
    with open(file, "ab", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            out.write(bytes(4096))
    return file
