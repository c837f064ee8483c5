# SPDX-License-Identifier: Apache-2.0
"""A cgroup with a limit of memory for a process, where the machine lets tests make one."""

import contextlib
import os
import pathlib

import pytest

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")


@contextlib.contextmanager
def memory(limit):
    """Gives a function that moves the calling process into a cgroup with so many bytes. The kernel
    kills what takes more."""
    top, file = (V1, "memory.limit_in_bytes") if V1.is_dir() else (V2, "memory.max")
    folder = top / f"nereid_test_{os.getpid()}"
    try:
        folder.mkdir()
        (folder / file).write_text(str(limit))
    except OSError as error:
        if folder.is_dir():
            folder.rmdir()
        pytest.skip(f"this machine lets tests make no cgroup: {error}")
    try:
        yield lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        folder.rmdir()
