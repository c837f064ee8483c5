# SPDX-License-Identifier: Apache-2.0
"""The runtimes of deploy/kserve: their fields, and the server with their flags on what KServe puts into /mnt/models."""

import importlib.util
import json
import os
import shutil
import subprocess
import urllib.request

import charts
import pytest
import schemas
import yaml
from harness import models, python_models
from harness import server as servers

KSERVE = charts.DEPLOY / "kserve"
PLATFORMS = models.ROOT / "examples" / "platforms"
DIGITS = models.EXAMPLES / "digits"
NAME = "my-service"


def documents(name):
    return list(yaml.safe_load_all((KSERVE / name).read_text()))


RUNTIMES = {one["metadata"]["name"]: one for one in documents("clusterservingruntimes.yaml")}


def make_runtimes():
    spec = importlib.util.spec_from_file_location("make_runtimes", KSERVE / "make_runtimes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kserve():
    if reason := charts.missing():
        pytest.skip(f"the fields of deploy/kserve are NOT tested: {reason}")


def test_the_files_are_those_of_the_script():
    for name, text in make_runtimes().texts().items():
        assert (KSERVE / name).read_text() == text, "run deploy/kserve/make_runtimes.py"


@pytest.mark.parametrize("name", ["clusterservingruntimes.yaml", "servingruntimes.yaml", "inferenceservice.yaml"])
def test_objects_have_the_fields_of_kserve(kserve, name):
    assert [found for one in documents(name) for found in schemas.check(one)] == []


def test_a_field_that_kserve_does_not_have_would_be_noticed(kserve):
    wrong = documents("servingruntimes.yaml")[0]
    wrong["spec"]["supportedModelFormat"] = []
    wrong["spec"]["multiModel"] = "false"
    assert len(schemas.check(wrong)) == 2


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_says_what_kserve_needs(name):
    runtime = RUNTIMES[name]
    spec = runtime["spec"]
    assert spec["protocolVersions"] == ["v2", "grpc-v2"] and spec["multiModel"] is False
    (container,) = spec["containers"]
    assert container["name"] == "kserve-container"
    assert any("8080" in arg for arg in container["args"]) and "--grpc-port=9000" in container["args"]
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} == {8080}
    assert container["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    # Of one cluster, the same for one namespace.
    (alike,) = [one for one in documents("servingruntimes.yaml") if one["metadata"]["name"] == name]
    assert alike["spec"] == spec


def test_the_examples_ask_for_runtimes_that_there_are():
    for service in documents("inferenceservice.yaml"):
        model = service["spec"]["predictor"]["model"]
        spec = RUNTIMES[model["runtime"]]["spec"]
        formats = [(one["name"], one["version"]) for one in spec["supportedModelFormats"]]
        assert (model["modelFormat"]["name"], model["modelFormat"]["version"]) in formats
        assert model["protocolVersion"] in spec["protocolVersions"]
        grace = service["spec"]["predictor"]["terminationGracePeriodSeconds"]
        args = spec["containers"][0]["args"]
        times = [int(arg.split("=")[1]) for arg in args if arg.startswith(("--drain-secs=", "--exit-timeout-secs="))]
        assert grace > sum(times)


PYTHON = python_models.HEAD + """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [1]})
        config.add_output({"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [1]})
        config.set_max_batch_size(0)
        return config
""" + python_models.IDENTITY.split("class TritonPythonModel:")[1]
# Runtime, backend, and what lies in /mnt/models: what a bucket may have.
LAYOUTS = {
    "onnx file": ("nereid-onnx", "onnxruntime", {"model.onnx": DIGITS / "1" / "model.onnx"}),
    "onnx model": ("nereid-onnx", "onnxruntime", {"": DIGITS}),
    "python file": ("nereid-python", "python", {"model.py": PYTHON}),
    "repository": ("nereid-triton", "onnxruntime", {NAME: DIGITS}),
    "pytorch model": ("nereid-pytorch", "pytorch", {"": PLATFORMS / "pytorch" / "digits_torchscript"}),
    "tensorflow model": ("nereid-tensorflow", "tensorflow", {"": PLATFORMS / "tensorflow" / "digits_savedmodel"}),
    "caffe2 model": ("nereid-caffe2", "caffe2", {"": PLATFORMS / "caffe2" / "digits_netdef"}),
    "openvino model": ("nereid-openvino", "openvino", {"": PLATFORMS / "openvino" / "digits_openvino"}),
}  # fmt: skip


def placed(args, folder, ports):
    """The flags with the places of the test, and with its backends."""
    values = {"/mnt/models": str(folder), "{{.Name}}": NAME, "0.0.0.0": "127.0.0.1"}
    values |= dict(zip(("=8080", "=9000", "=8002"), (f"={port}" for port in ports)))
    for before, after in values.items():
        args = [arg.replace(before, after) for arg in args]
    # The defaults of KServe's platform are meant: everybody is served.
    address = [] if "serve" in args else ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
    return [*args, *address, "--drain-secs=0", f"--backend-directory={servers.backends()}"]


@pytest.mark.newer
@pytest.mark.parametrize("runtime, backend, layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_runtime_serves_the_model_under_the_name_of_the_service(require_server, tmp_path, runtime, backend, layout):
    if not servers.has_backend(backend):
        pytest.skip(f"the build has no backend {backend}")
    folder = tmp_path / "mnt"
    for place, source in layout.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, str):
            target.write_text(source)
        else:
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
    ports = servers.free_ports(3)
    args = placed(RUNTIMES[runtime]["spec"]["containers"][0]["args"], folder, ports)
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen([servers.binary(), *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  start_new_session=True, env={**os.environ, **python_models.ENVIRONMENT})  # fmt: skip
    try:
        def is_ready():
            assert server.poll() is None, (tmp_path / "log").read_text()[-3000:]
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/v2/models/{NAME}/ready", timeout=5).status == 200
            except OSError:
                return False

        servers.wait_until(is_ready, "the model", timeout=60)
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/v2/models/{NAME}", timeout=10) as reply:
            metadata = json.load(reply)
        assert metadata["name"] == NAME and metadata["inputs"]
    finally:
        server.terminate()
        assert server.wait(60) == 0
