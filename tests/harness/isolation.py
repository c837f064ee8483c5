# SPDX-License-Identifier: Apache-2.0
"""What tests of confined models share: the parameters that ask for it, and what the kernel has for it."""

import ctypes

import pytest


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


ISOLATED = parameter("isolation", "process")


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1


landlock = pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")
