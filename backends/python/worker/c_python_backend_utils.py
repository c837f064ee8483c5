# SPDX-License-Identifier: Apache-2.0
"""The name under which Triton has the compiled half of its utilities; here they are all in one place."""

from triton_python_backend_utils import *  # noqa: F401,F403
from triton_python_backend_utils import _SharedMemory

shared_memory = _SharedMemory()
