# SPDX-License-Identifier: Apache-2.0
"""The programs that the files of deploy/ are for."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import charts  # noqa: E402
import monitoring  # noqa: E402


@pytest.fixture(scope="session")
def programs():
    if reason := monitoring.missing():
        pytest.skip(f"deploy/ is NOT tested with Prometheus: {reason}")


@pytest.fixture(scope="session")
def helm(tmp_path_factory):
    if reason := charts.missing():
        pytest.skip(f"deploy/helm is NOT tested: {reason}")
    made = charts.Helm(tmp_path_factory.mktemp("helm") / "helm.log")
    yield made
    made.stop()
