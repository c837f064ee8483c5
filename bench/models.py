# SPDX-License-Identifier: Apache-2.0
"""The repositories that both servers serve while they are measured."""

import pathlib
import shutil
import sys

import peer

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "models"

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


CACHE = "response_cache { enable: true }"
SEQUENCE = """{platform}
max_batch_size: 64
input [ {{ name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
sequence_batching {{
  {strategy}
  max_sequence_idle_microseconds: 5000000
  control_input [ {controls} ]
  {state}
}}
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
"""
CONTROL = """{{ name: "{0}" control [ {{ kind: CONTROL_SEQUENCE_{0} int32_false_true: [ 0, 1 ] }} ] }}"""
CORRELATION_ID = """{ name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }"""
STATE = """state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]"""
REPEAT = """backend: "repeat"
max_batch_size: 0
input [
  { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
  { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] }
]
output [
  { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] }
]
model_transaction_policy { decoupled: true }
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
PYTHON = """backend: "python"
max_batch_size: 0
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: {instances} }} ]
"""
PYTHON_IDENTITY = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            output = pb_utils.Tensor("OUTPUT0", tensor.as_numpy())
            responses.append(pb_utils.InferenceResponse([output]))
        return responses
"""


def write(repository, name, config, files=()):
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    for file, content in files:
        (folder / "1" / file).write_bytes(content)


def write_identities(repository, count, extra=""):
    """identity_0, identity_1, …; returns their names."""
    names = [f"identity_{i}" for i in range(count)]
    for name in names:
        write(repository, name, IDENTITY.format(batch=0, extra=extra))
    return names


def tests():
    """The modules of tests/harness that make ONNX models."""
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    from harness import models as onnx_models
    from harness import stateful

    return onnx_models, stateful


def write_onnx(repository, names):
    """Copies of the middle ONNX model, whose file all of them share with the others of its size."""
    content = tests()[0].onnx_mlp().SerializeToString(deterministic=True)
    for name in names:
        write(repository, name, MLP, [("model.onnx", content)])


# --- The groups of rows.py --------------------------------------------------------------------


def write_plain(repository):
    write(repository, "id", IDENTITY.format(batch=0, extra=""))
    write(repository, "id_batched", IDENTITY.format(batch=64, extra="dynamic_batching { }"))
    # Three steps each, to be compared with three requests to the model of the steps.
    write(repository, "ensemble", ENSEMBLE.format(batch=0, model="id"))
    write(repository, "ensemble_batched", ENSEMBLE.format(batch=64, model="id_batched"))


def write_onnx_group(repository):
    shutil.copytree(EXAMPLES / "digits", repository / "digits")
    write_onnx(repository, ["mlp"])


def write_sequences(repository):
    plain = [CONTROL.format("START"), CONTROL.format("READY")]
    full = [*plain, CONTROL.format("END"), CORRELATION_ID]
    direct, oldest = "direct { }", "oldest { max_candidate_sequences: 64 }"
    for name, platform, strategy, controls, state, files in (
        ("direct", 'backend: "sequence"', direct, plain, "", ()),
        ("oldest", 'backend: "dyna_sequence"', oldest, full, "", ()),
        ("implicit", 'platform: "onnxruntime_onnx"', direct, plain[:1], STATE, ("model.onnx",)),
    ):
        if files:
            model = tests()[1].onnx_accumulate("INT32", True, True)
            files = [("model.onnx", model.SerializeToString(deterministic=True))]
        controls = ", ".join(controls)
        config = SEQUENCE.format(platform=platform, strategy=strategy, controls=controls, state=state)
        write(repository, name, config, files)


def write_streams(repository):
    write(repository, "repeat", REPEAT)


def write_cache(repository):
    write(repository, "cached", IDENTITY.format(batch=0, extra=CACHE))


def write_python(repository):
    for instances in (1, 2):
        model = [("model.py", PYTHON_IDENTITY.encode())]
        write(repository, f"python_{instances}", PYTHON.format(instances=instances), model)


# Models that people use, from the packages that ship them: name, wheel, file in it.
REAL = (
    ("detector", "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"),
    ("recogniser", "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"),
    ("recurrent", "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx"),
)


def with_constant(content, name, value):
    """The model with one of its inputs, a number, made a constant."""
    import onnx

    model = onnx.ModelProto.FromString(content)
    (given,) = (tensor for tensor in model.graph.input if tensor.name == name)
    kind = given.type.tensor_type.elem_type
    model.graph.input.remove(given)
    model.graph.initializer.append(onnx.helper.make_tensor(name, kind, [], [value]))
    return model.SerializeToString()


def write_real(repository):
    """Without a configuration: both sides choose batching, instances and threads by themselves."""
    packages = ROOT / ".deps" / "peer" / "models"
    packages.mkdir(parents=True, exist_ok=True)
    for name, wheel, file in REAL:
        package = packages / wheel
        if not package.exists():
            peer.fetch_wheel(wheel, package)
        content = (package / file).read_bytes()
        if name == "recurrent":
            content = with_constant(content, "sr", 16000)
        folder = repository / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(content)


GROUPS = {
    "plain": write_plain,
    "shared memory": write_plain,
    "onnx": write_onnx_group,
    "sequences": write_sequences,
    "streams": write_streams,
    "cache": write_cache,
    "python": write_python,
    "real": write_real,
}
# Further arguments for servers of a group. Both sides use the cache library that comes with them.
ARGUMENTS = {"cache": ["--cache-config=local,size=67108864"]}
