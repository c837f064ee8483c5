# SPDX-License-Identifier: Apache-2.0
"""What tests of confined models share: the parameters that ask for it, and what the kernel has for it."""

import ctypes

import psutil
import pytest


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


ISOLATED = parameter("isolation", "process")


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1


def processes(server, name=""):
    """The processes of isolated models, or of the one whose instances have this name."""
    found = []
    for child in psutil.Process(server.pid).children(recursive=True):
        try:
            line = child.cmdline()
        except psutil.Error:
            continue
        if len(line) > 2 and line[1] == "isolated-model" and line[2].startswith(name):
            found.append(child)
    return found


landlock = pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")
