# SPDX-License-Identifier: Apache-2.0
"""Three versions of a model side by side: the framework's library is there once for all, and each version has its weights
once, whatever number of instances it has. What versions with the same files share is in test_tensorflow_loading.py: the
other frameworks share nothing of that kind (docs/platforms.md)."""

import numpy as np
import pytest
from harness import caffe2_models, clients, models, torch_models
from harness import server as servers
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.newer

ROWS, COLUMNS = 64, 1 << 17
WEIGHTS = 4 * ROWS * COLUMNS  # 32 MiB
INSTANCES = 3
ENDS = [("x", "FP32", [1, ROWS])], [("y", "FP32", [1, COLUMNS])]
MORE = f"instance_group [ {{ kind: KIND_CPU count: {INSTANCES} }} ]\nversion_policy {{ all {{ }} }}\n"


def matrix(version):
    return np.full((ROWS, COLUMNS), version, np.float32)


def write_pytorch(path, version):
    code = "def forward(self, x):\n    return torch.matmul(x, self.w)\n"
    made = torch_models.Repository(path)
    made.add("m", code, torch_models.config(*ENDS, MORE), {"w": matrix(version)}, str(version)).write()


def onnx_model(version):
    ends = [("x", TensorProto.FLOAT, [1, ROWS])], [("y", TensorProto.FLOAT, [1, COLUMNS])]
    weights = [numpy_helper.from_array(matrix(version), "w")]
    return models.onnx_model([helper.make_node("MatMul", ["x", "w"], ["y"])], *ends, weights)


def write_onnx(path, version, backend="onnxruntime"):
    inputs, outputs = ([models.tensor_config(*end) for end in ends] for ends in ENDS)
    text = f'backend: "{backend}"\ndefault_model_filename: "model.onnx"\n'
    text += f"input [ {inputs[0]} ]\noutput [ {outputs[0]} ]\n{MORE}"
    models.write_model(path, "m", text, {str(version): {"model.onnx": onnx_model(version)}})


def write_openvino(path, version):
    write_onnx(path, version, "openvino")


def write_caffe2(path, version):
    fill = caffe2_models.operator("GivenTensorFill", "", "w", shape=[ROWS, COLUMNS], values=matrix(version))
    files = {
        "model.netdef": caffe2_models.net([caffe2_models.operator("MatMul", "x w", "y")], "x", "y"),
        "init_model.netdef": caffe2_models.net([fill]),
    }
    inputs, outputs = (models.tensor_config(*ends[0]) for ends in ENDS)
    models.write_model(path, "m", caffe2_models.config(inputs, outputs, MORE), {str(version): files})


MAKERS = {"pytorch": write_pytorch, "onnxruntime": write_onnx, "openvino": write_openvino, "caffe2": write_caffe2}
# OpenVINO keeps weights as the file has them, and as its kernels want them.
COPIES = {"openvino": 2}


@pytest.mark.parametrize("framework", MAKERS)
def test_a_further_version_takes_its_weights_and_nothing_else(start_server, empty_repository, framework):
    if not servers.has_backend(framework):
        pytest.skip(f"the build has no backend {framework}")
    MAKERS[framework](empty_repository, 1)
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    client = clients.Client("grpc", server)
    tensor = client.input("x", np.ones((1, ROWS), np.float32), "FP32")

    def load(versions):
        client.load_model("m")
        for version in versions:
            result = client.infer("m", [tensor], model_version=str(version)).as_numpy("y")
            assert result[0, 0] == ROWS * version
        return server.resident_bytes()

    one = load([1])
    for version in (2, 3):
        MAKERS[framework](empty_repository, version)
    three = load([1, 2, 3])
    client.close()
    # Had each instance its own, two more would come with each of the two.
    assert servers.is_sanitized() or three - one < (2 * COPIES.get(framework, 1) + 0.5) * WEIGHTS
