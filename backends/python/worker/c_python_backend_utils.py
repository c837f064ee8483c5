# SPDX-License-Identifier: Apache-2.0
"""Triton's name of the compiled half of its utilities, which are all in one module here."""

from triton_python_backend_utils import *  # noqa: F401,F403
from triton_python_backend_utils import _SharedMemory

shared_memory = _SharedMemory()
