# SPDX-License-Identifier: Apache-2.0
"""The repositories that both servers serve while they are measured."""

import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

IDENTITY = """backend: "identity"
max_batch_size: {batch}
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
{extra}
"""
ENSEMBLE = """platform: "ensemble"
max_batch_size: {batch}
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
ensemble_scheduling {{
  step [
    {{
      model_name: "{model}" model_version: -1
      input_map {{ key: "INPUT0" value: "INPUT0" }} output_map {{ key: "OUTPUT0" value: "first" }}
    }},
    {{
      model_name: "{model}" model_version: -1
      input_map {{ key: "INPUT0" value: "first" }} output_map {{ key: "OUTPUT0" value: "second" }}
    }},
    {{
      model_name: "{model}" model_version: -1
      input_map {{ key: "INPUT0" value: "second" }} output_map {{ key: "OUTPUT0" value: "OUTPUT0" }}
    }}
  ]
}}
"""
MLP = """platform: "onnxruntime_onnx"
max_batch_size: 64
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 256 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 256 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { }
parameters { key: "intra_op_thread_count" value: { string_value: "1" } }
parameters { key: "inter_op_thread_count" value: { string_value: "1" } }
"""


def write(repository, name, config):
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(config)


def write_identities(repository, count):
    for i in range(count):
        write(repository, f"identity_{i}", IDENTITY.format(batch=0, extra=""))


def write_measured(repository, with_onnx):
    """The models of the load rows; says what it had to leave out."""
    write(repository, "id", IDENTITY.format(batch=0, extra=""))
    write(repository, "id_batched", IDENTITY.format(batch=64, extra="dynamic_batching { }"))
    # Three steps each, to be compared with three requests to the model of the steps.
    write(repository, "ensemble", ENSEMBLE.format(batch=0, model="id"))
    write(repository, "ensemble_batched", ENSEMBLE.format(batch=64, model="id_batched"))
    if not with_onnx:
        return ["no ONNX Runtime backend: the rows of digits and mlp are left out"]
    shutil.copytree(ROOT / "examples" / "models" / "digits", repository / "digits")
    sys.path.append(str(ROOT / "tests"))
    try:
        from harness.models import onnx_mlp
    except ImportError as error:
        return [f"no Python package {error.name}: the rows of mlp are left out"]
    write(repository, "mlp", MLP)
    (repository / "mlp" / "1" / "model.onnx").write_bytes(onnx_mlp().SerializeToString(deterministic=True))
    return []
