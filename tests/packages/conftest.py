# SPDX-License-Identifier: Apache-2.0
"""Packages of the build under test, made once, and clean systems to try them in."""

import pathlib
import shutil
import sys

import pytest
from harness import server as servers

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import clean_root  # noqa: E402
import made  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def possible(require_server):
    """Says why packages cannot be made or tried here."""
    if servers.REFERENCE or servers.is_sanitized():
        pytest.skip("packages are made of release builds")
    if reason := clean_root.missing():
        pytest.skip(f"packages are NOT tested here: {reason}")


@pytest.fixture(scope="session")
def packages(possible, tmp_path_factory):
    """A folder with the packages of the server and of its backends for ONNX and Python."""
    return made.make(tmp_path_factory.mktemp("packages"), ["tarball", "deb", "image", "wheel"], "nereid,onnxruntime,python")


@pytest.fixture(scope="session")
def predecessors(possible, tmp_path_factory):
    """The same, of an earlier version."""
    return made.make(tmp_path_factory.mktemp("predecessors"), ["deb", "wheel"], "nereid,onnxruntime", made.PREDECESSOR)


@pytest.fixture
def clean(tmp_path):
    root = clean_root.CleanRoot.unpack(tmp_path / "root")
    yield root
    shutil.rmtree(root.folder)
