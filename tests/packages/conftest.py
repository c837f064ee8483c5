# SPDX-License-Identifier: Apache-2.0
"""Packages of the build under test, made once, and clean systems to try them in."""

import pathlib
import shutil
import sys

import pytest
from harness import models, torch_models
from harness import server as servers
from onnx import TensorProto, helper

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import clean_root  # noqa: E402
import made  # noqa: E402
from made import only  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def possible(require_server):
    """Says why packages cannot be made or tried here."""
    if servers.REFERENCE or servers.is_sanitized():
        pytest.skip("packages are made of release builds")
    if reason := clean_root.missing():
        pytest.skip(f"packages are NOT tested here: {reason}")


@pytest.fixture(scope="session")
def packages(possible, tmp_path_factory):
    """A folder with the packages of the server, of its backends for ONNX and Python, and of the Python package."""
    return made.make(tmp_path_factory.mktemp("packages"), ["tarball", "deb", "image", "wheel"], "nereid,onnxruntime,python,library,python3-nereid")


@pytest.fixture(scope="session")
def predecessors(possible, tmp_path_factory):
    """The same, of an earlier version."""
    return made.make(tmp_path_factory.mktemp("predecessors"), ["deb", "wheel", "tarball", "image"], "nereid,onnxruntime,python", made.PREDECESSOR)


@pytest.fixture(scope="session")
def pytorch_package(possible, tmp_path_factory):
    """The Debian package of PyTorch's backend, with PyTorch inside."""
    if not servers.has_backend("pytorch"):
        pytest.skip("the build has no PyTorch backend (tools/setup --with pytorch)")
    return only(made.make(tmp_path_factory.mktemp("pytorch"), ["deb"], "pytorch"), "*.deb")


@pytest.fixture
def clean(tmp_path):
    root = clean_root.CleanRoot.unpack(tmp_path / "root")
    yield root
    shutil.rmtree(root.folder)


@pytest.fixture(scope="session")
def python_root(possible, tmp_path_factory):
    """A system with Python and an empty virtual environment, and all wheels but ours in /wheels."""
    root = clean_root.CleanRoot.unpack(tmp_path_factory.mktemp("python") / "root")
    root.run("apt-get", "install", "-y", "--no-install-recommends", "python3", "python3-venv")
    root.run("python3", "-m", "venv", "/venv")
    for wheel in sorted((clean_root.TOOLS / "wheels").glob("*.whl")):
        root.put(wheel, "/wheels")
    return root


@pytest.fixture(scope="session")
def own_model(tmp_path_factory):
    """An ONNX file of a user: the softmax of rows of four numbers."""
    path = tmp_path_factory.mktemp("own") / "own.onnx"
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    ends = [("x", TensorProto.FLOAT, ["n", 4])], [("y", TensorProto.FLOAT, ["n", 4])]
    path.write_bytes(models.onnx_model([node], *ends).SerializeToString())
    return path


@pytest.fixture(scope="session")
def own_script(tmp_path_factory):
    """The same as a TorchScript file."""
    folder = tmp_path_factory.mktemp("script")
    code = "def forward(self, x):\n    return torch.softmax(x, 1)\n"
    torch_models.Repository(folder).add("own", code, torch_models.config([], []), file_name="own.pt").write()
    return folder / "own" / "1" / "own.pt"
