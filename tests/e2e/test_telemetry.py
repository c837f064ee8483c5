# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime keeps a database of its use in the home folder and sends it to its makers by default, but
for machines that look like continuous integration. Under Nereid it does neither."""

import subprocess
import sys
import time

import pytest
from harness import models, python_models, python_package
from harness import server as servers
from harness.clients import Client
from tritonclient.utils import InferenceServerException

import numpy as np

pytestmark = pytest.mark.newer

# ONNX Runtime looks for its collector about 11 seconds after its first session.
SECONDS_UNTIL_UPLOAD = 13
# What it takes for a sign of continuous integration, where it is silent by itself.
SIGNS = (
    "CI TF_BUILD GITHUB_ACTIONS GITLAB_CI CIRCLECI TRAVIS JENKINS_URL CODEBUILD_BUILD_ID BUILDKITE "
    "TEAMCITY_VERSION APPVEYOR BITBUCKET_BUILD_NUMBER ORT_RUNNING_UNIT_TESTS ORT_DISABLE_TELEMETRY "
    "XDG_CACHE_HOME"
).split()
WITH_ONNXRUNTIME = """
import os
import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.dirname(args["model_repository"])
        self.session = onnxruntime.InferenceSession(os.path.join(folder, "simple", "1", "model.onnx"))

    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(r, "INPUT0").as_numpy() for r in requests]
        for t in tensors:
            row = np.zeros((1, 16), np.int32)
            self.session.run(None, {"INPUT0": row, "INPUT1": row})
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", t)]) for t in tensors]
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The empty home folder of a user for whom nothing is switched off yet."""
    for sign in SIGNS:
        monkeypatch.delenv(sign, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def things_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def ask(client, value=1):
    row = np.full((1, 16), value, np.int32)
    return client.infer("simple", [client.input(n, row, "INT32") for n in ("INPUT0", "INPUT1")])


def test_a_server_with_onnx_models_leaves_the_home_folder_empty_and_asks_no_name_server(
    onnx, start_server, tmp_path, empty_repository, home
):
    preload, lookups = tmp_path / "lookups.so", tmp_path / "lookups"
    source = models.ROOT / "tests" / "e2e" / "lookups.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", preload, source], check=True)
    models.copy_example(empty_repository, "simple")
    env = {"NEREID_LOOKUPS_FILE": str(lookups)}
    if not servers.is_sanitized():
        env["LD_PRELOAD"] = str(preload)
    server = start_server(empty_repository, env=env)
    client = Client("http", server)
    end = time.monotonic() + SECONDS_UNTIL_UPLOAD
    while time.monotonic() < end:
        ask(client)
        with pytest.raises(InferenceServerException):
            client.infer("simple", [client.input("INPUT0", np.zeros((1, 3), np.int32), "INT32")])
        time.sleep(0.2)
    client.close()
    server.stop()
    assert things_in(home) == []
    assert not lookups.exists(), lookups.read_text()


def test_a_python_model_that_uses_onnxruntime_leaves_the_home_folder_empty(
    onnx, start_server, empty_repository, home
):
    models.copy_example(empty_repository, "simple")
    config = models.identity_config("FP32", [-1]).replace('"identity"', '"python"')
    models.write_model(
        empty_repository, "script", config, {"1": {"model.py": WITH_ONNXRUNTIME.encode()}}
    )
    server = start_server(empty_repository, env=python_models.ENVIRONMENT)
    client = Client("http", server)
    client.infer("script", [client.input("INPUT0", np.zeros(4, np.float32), "FP32")])
    client.close()
    server.stop()
    assert things_in(home) == []


def test_a_program_that_imports_the_python_package_leaves_the_home_folder_empty(
    onnx, empty_repository, home
):
    package = servers.build_folder() / "python"
    if not (package / "nereid").exists():
        pytest.skip("the build has no Python package")
    models.copy_example(empty_repository, "simple")
    program = (
        "import sys, numpy; sys.path.insert(0, sys.argv[1]); import nereid\n"
        "row = numpy.zeros((1, 16), numpy.int32)\n"
        "with nereid.Server(model_repository=sys.argv[2], exit_timeout=10) as server:\n"
        "    for r in server.model('simple').infer(inputs={'INPUT0': row, 'INPUT1': row}):\n"
        "        print(r.outputs['OUTPUT0'].shape)\n"
    )
    run = subprocess.run(
        [sys.executable, "-B", "-c", program, package, empty_repository],
        env={**python_package.environment(), "PYTHONNOUSERSITE": "1"},
        capture_output=True,
        text=True,
        timeout=60 * servers.SLOWNESS,
    )
    assert run.returncode == 0, run.stderr
    assert things_in(home) == []
