# SPDX-License-Identifier: Apache-2.0
"""The programs that the files of deploy/ are for."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import monitoring  # noqa: E402


@pytest.fixture(scope="session")
def programs():
    if reason := monitoring.missing():
        pytest.skip(f"deploy/ is NOT tested with Prometheus: {reason}")
