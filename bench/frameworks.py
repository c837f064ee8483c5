# SPDX-License-Identifier: Apache-2.0
"""The same model of about a millisecond in the format of each framework, and the loop that runs it without a server."""

import dataclasses
import struct
import subprocess
import typing

import models

ROWS, COLUMNS, WEIGHTS, REPEATS = 8, 256, 4, 35
CONFIG = """{platform}
max_batch_size: {rows}
input [ {{ name: "{input}" data_type: TYPE_FP32 dims: [ {columns} ] }} ]
output [ {{ name: "{output}" data_type: TYPE_FP32 dims: [ {columns} ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
{extra}
"""
# Requests of one row wait for each other until there are as many as an execution takes.
BATCHING = f"dynamic_batching {{ preferred_batch_size: [ {ROWS} ] max_queue_delay_microseconds: 50000 }}\n"


def layers():
    """The model multiplies by these matrices in turn, and takes what is positive: 140 times. Its weights stay in a
    core's cache, as those of other models of a millisecond need not: what is measured is the server, not what a change
    of programs does to caches. It returns means: none of its numbers is slow to compute with."""
    return [i % WEIGHTS for i in range(WEIGHTS * REPEATS)]


def weights():
    return struct.pack("<f", 1 / COLUMNS) * (COLUMNS * COLUMNS)


def write_torch(folder, build):
    body = "".join(f"    x = torch.relu(torch.matmul(x, self.w{i}))\n" for i in range(WEIGHTS))
    body = "".join(f"    {line}\n" for line in body.splitlines())
    (folder / "forward.py").write_text(f"def forward(self, x):\n    for _ in range({REPEATS}):\n{body}    return x\n")
    command = [build / "backends/pytorch/torchscript_models"]
    command += ["--model", folder / "model.pt", "--code", folder / "forward.py"]
    for i in range(WEIGHTS):
        (folder / f"w{i}").write_bytes(weights())
        command += ["--parameter", f"w{i}", f"{COLUMNS}x{COLUMNS}", folder / f"w{i}"]
    subprocess.run([str(part) for part in command], check=True)
    return folder / "model.pt"


def write_tensorflow(folder, _):
    import numpy

    models.tests()
    from harness import tensorflow_models as tf

    graph, dims = tf.Graph(), [-1, COLUMNS]
    graph.placeholder("in_x", "FP32", dims)
    for i in range(WEIGHTS):
        graph.constant(f"w{i}", "FP32", numpy.full((COLUMNS, COLUMNS), 1 / COLUMNS, numpy.float32))
    x = "in_x"
    for n, i in enumerate(layers()):
        product = graph.binary(f"product_{n}", "MatMul", "FP32", x, f"w{i}")
        x = graph.node(f"relu_{n}", "Relu", [product], T=tf.type_of("FP32"))
    graph.identity("out_y", "FP32", x)
    ends = [{name: (f"{place}:0", "FP32", dims)} for name, place in (("x", "in_x"), ("y", "out_y"))]
    content = tf.saved_model(tf.meta_graph(graph.graph_def(), {"serving_default": tf.signature(*ends)}))
    (folder / "model.savedmodel").mkdir()
    (folder / "model.savedmodel" / "saved_model.pb").write_bytes(content)
    return folder / "model.savedmodel"


def write_onnx(folder, _):
    import numpy

    harness = models.tests()[0]
    initializers = [
        harness.onnx.numpy_helper.from_array(numpy.full((COLUMNS, COLUMNS), 1 / COLUMNS, numpy.float32), f"w{i}")
        for i in range(WEIGHTS)
    ]
    nodes, x = [], "x"
    for n, i in enumerate(layers()):
        y = "y" if n == WEIGHTS * REPEATS - 1 else f"relu_{n}"
        nodes.append(harness.helper.make_node("MatMul", [x, f"w{i}"], [f"product_{n}"]))
        nodes.append(harness.helper.make_node("Relu", [f"product_{n}"], [y]))
        x = y
    ends = [[(name, harness.TensorProto.FLOAT, ["n", COLUMNS])] for name in ("x", "y")]
    model = harness.onnx_model(nodes, *ends, initializers)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    return folder / "model.onnx"


def parameters(**values):
    texts = (f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n' for key, value in values.items())
    return "".join(texts)


@dataclasses.dataclass(frozen=True)
class Framework:
    """A framework with one thread. Its model, which write(folder, build) makes, and how to configure and to run it."""

    name: str
    title: str
    platform: str
    write: typing.Callable
    loop: tuple  # the program, and options of its own
    threads: str  # parameters of the configuration
    input: str = "x"
    output: str = "y"

    def loop_command(self, build, file, seconds):
        program, *options = self.loop
        sizes = [f"--rows={ROWS}", f"--columns={COLUMNS}", f"--seconds={seconds}"]
        return [build / "bench" / program, f"--model={file}", *sizes, *options]

    def write_models(self, repository, build):
        """The model as NAME, and as NAME_batched for requests of one row each. Returns its file."""
        for name, extra in ((self.name, ""), (f"{self.name}_batched", BATCHING)):
            config = CONFIG.format(
                platform=self.platform, rows=ROWS, columns=COLUMNS, input=self.input, output=self.output,
                extra=extra + self.threads,
            )
            models.write(repository, name, config)
        folder = repository / self.name / "1"
        file = self.write(folder, build)
        (repository / f"{self.name}_batched" / "1" / file.name).symlink_to(file)
        return file


FRAMEWORKS = [
    Framework(
        "pytorch", "PyTorch", 'backend: "pytorch" platform: "pytorch_libtorch"', write_torch, ("torch_loop",),
        parameters(INTRA_OP_THREAD_COUNT=1), "INPUT__0", "OUTPUT__0",
    ),
    # Operations run on the thread of the instance, or of the loop, and in the second on a thread of TensorFlow's.
    Framework(
        "tensorflow", "TensorFlow", 'platform: "tensorflow_savedmodel"', write_tensorflow,
        ("tensorflow_loop", "--inter=-1"), parameters(TF_NUM_INTRA_THREADS=1, TF_NUM_INTER_THREADS=-1),
    ),
    Framework(
        "tensorflow_pool", "TensorFlow, a thread of its own", 'platform: "tensorflow_savedmodel"', write_tensorflow,
        ("tensorflow_loop", "--inter=1"), parameters(TF_NUM_INTRA_THREADS=1, TF_NUM_INTER_THREADS=1),
    ),
    Framework(
        "openvino", "OpenVINO", 'backend: "openvino" default_model_filename: "model.onnx"', write_onnx,
        ("openvino_loop",), parameters(INFERENCE_NUM_THREADS=1, NUM_STREAMS=1),
    ),
    Framework(
        "onnxruntime", "ONNX Runtime", 'platform: "onnxruntime_onnx"', write_onnx, ("ort_loop",),
        parameters(intra_op_thread_count=1, inter_op_thread_count=1),
    ),
]
