# SPDX-License-Identifier: Apache-2.0
"""The wheel in a virtual environment on a minimal Debian with Python: the command, the package, Python models."""

import subprocess

import clean_root
import numpy as np
import pytest
from harness import models, python_models
from harness.clients import MODULES
from made import PREDECESSOR, only
from predictions import check_digits, first_digit

PIP = "/venv/bin/pip"

# Says which interpreter runs it.
WHERE = """
class TritonPythonModel:
    def execute(self, requests):
        prefix = np.array([sys.prefix.encode()], np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", prefix)]) for _ in requests]
"""


def install(root, folder):
    path = root.put(only(folder, "nereid-*.whl"), "/ours")
    root.run(PIP, "install", "--no-index", "--find-links", "/wheels", path)


@pytest.fixture
def installed(python_root, packages):
    install(python_root, packages)
    yield python_root
    python_root.run(PIP, "uninstall", "-y", "nereid")


@pytest.fixture
def repository(python_root, tmp_path):
    """Examples, and a model in Python, which sees the interpreter that the package is in."""
    folder = python_root.folder / "models"
    folder.mkdir(exist_ok=True)
    for name in ("digits", "simple", "where"):
        subprocess.run(["rm", "-rf", folder / name], check=True)
    models.copy_example(folder, "digits")
    models.copy_example(folder, "simple")
    python_models.write(folder, "where", WHERE, datatype="BYTES", dims=(1,))
    return "/models"


def test_the_command_serves_onnx_and_python_models(installed, repository, tmp_path):
    server = installed.serve(["/venv/bin/nereid", f"--model-repository={repository}"], tmp_path)
    check_digits(server)
    with MODULES["http"].InferenceServerClient(server.http) as client:
        tensor = MODULES["http"].InferInput("INPUT0", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([b"x"], np.object_))
        assert client.infer("where", [tensor]).as_numpy("OUTPUT0")[0] == b"/venv"
    server.stop()


PROGRAM = """
import nereid, numpy
pixels = numpy.array({pixels}, numpy.float32).reshape(1, 64)
with nereid.Server(model_repository="{repository}") as server:
    for response in server.model("digits").infer(inputs={{"pixels": pixels}}):
        print("label", numpy.from_dlpack(response.outputs["label"]).item())
"""


def test_the_package_serves_inside_a_program(installed, repository):
    truth, pixels = first_digit()
    shown = installed.run("/venv/bin/python", "-c", PROGRAM.format(pixels=pixels.tolist(), repository=repository))
    assert f"label {truth}" in shown


def test_an_upgrade_replaces_its_predecessor(python_root, predecessors, packages, repository, tmp_path):
    install(python_root, predecessors)
    assert f"Version: {PREDECESSOR}" in python_root.run(PIP, "show", "nereid")
    install(python_root, packages)
    assert f"Version: {PREDECESSOR}" not in python_root.run(PIP, "show", "nereid")
    server = python_root.serve(["/venv/bin/nereid", f"--model-repository={repository}"], tmp_path)
    check_digits(server)
    server.stop()
    python_root.run(PIP, "uninstall", "-y", "nereid")


def test_uninstalling_leaves_nothing(python_root, packages):
    before = python_root.files()
    install(python_root, packages)
    # Of what it depends on nothing is ours.
    python_root.run(PIP, "uninstall", "-y", "nereid")
    left = {name for name in python_root.files() - before if "nereid" in name}
    assert left == set()


AUDITWHEEL = clean_root.TOOLS / "venv/bin/python"
# Libraries of frameworks, which come in wheels of their own.
OUTSIDE = ("libtorch*.so*", "libc10.so", "libopenvino.so.*")


@pytest.mark.skipif(not AUDITWHEEL.exists(), reason="auditwheel is not here: run tools/setup --packaging-tests")
def test_auditwheel_confirms_the_glibc_of_its_name(packages, tmp_path):
    wheel = only(packages, "nereid-*.whl")
    tag = wheel.stem.split("-")[-1]
    exclude = [word for name in OUTSIDE for word in ("--exclude", name)]
    command = [AUDITWHEEL, "-m", "auditwheel", "repair", "--plat", tag, *exclude, "--wheel-dir", tmp_path, wheel]
    environment = {"PATH": f"{AUDITWHEEL.parent}:/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    # Nothing had to be brought along that is not there.
    assert not list(tmp_path.glob("**/nereid.libs")), done.stderr
