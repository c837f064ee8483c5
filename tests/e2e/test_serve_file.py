# SPDX-License-Identifier: Apache-2.0
"""`nereid serve`: model files without a repository. What it prints is run as it is."""

import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import onnx as onnx_package
import pytest
import tritonclient.http as httpclient
from harness import files, models, openvino_models, python_models
from harness import server as servers
from onnx import TensorProto, helper, numpy_helper

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

PLATFORMS = models.ROOT / "examples" / "platforms"
DIGITS = models.EXAMPLES / "digits" / "1" / "model.onnx"
PIXELS = ["--input", "pixels:FP32:-1,64"]
FREE = ["--port", "0", "--grpc-port", "0", "--metrics-port", "0"]
LAST_LINE = "Ctrl-C stops the server."

PYTHON = python_models.HEAD + """
import neighbour


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [2]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [2]})
        config.set_max_batch_size(0)
        return config

    def execute(self, requests):
        values = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", neighbour.add(v))]) for v in values]
"""

DECOUPLED = python_models.HEAD + """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_INT32", "dims": [1]})
        config.add_output({"name": "y", "data_type": "TYPE_INT32", "dims": [1]})
        config.set_max_batch_size(0)
        config.set_model_transaction_policy({"decoupled": True})
        return config

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for i in range(3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([i], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def adder(number):
    constant = numpy_helper.from_array(np.array([number], dtype=np.float32), "number")
    return models.onnx_model(
        [helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", TensorProto.FLOAT, [2])],
        [("OUTPUT0", TensorProto.FLOAT, [2])],
        [constant],
    ).SerializeToString()


class Served:
    """A running `nereid serve`."""

    def __init__(self, arguments, folder, environment, server_flags=()):
        self.out, self.err = folder / "out.txt", folder / "err.txt"
        flags = [f"--backend-directory={servers.backends()}", *server_flags]
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [servers.binary(), "serve", *map(str, arguments), "--", *flags],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True)
        self._end = "\n" if "--json" in arguments else LAST_LINE
        servers.wait_until(self._is_started, "the summary", timeout=150)
        assert self.process.poll() is None, self.err.read_text()

    def _is_started(self):
        return self.process.poll() is not None or self._end in self.text

    @property
    def text(self):
        return self.out.read_text()

    @property
    def summary(self):
        return json.loads(self.text.splitlines()[0])

    @property
    def models(self):
        return {model["name"]: model for model in self.summary["models"]}

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60 * servers.SLOWNESS)


@pytest.fixture
def temporary(tmp_path):
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


@pytest.fixture
def serve(tmp_path, temporary):
    """Serves until the end of the test, which checks that the server ends well and leaves nothing behind."""
    running = []

    def start(*arguments, ports=FREE, server_flags=()):
        folder = tmp_path / f"served{len(running)}"
        folder.mkdir()
        environment = {**os.environ, **python_models.ENVIRONMENT, "TMPDIR": str(temporary)}
        running.append(Served([*arguments, *ports], folder, environment, server_flags))
        return running[-1]

    yield start
    for served in running:
        if served.process.poll() is None:
            assert served.stop() == 0, served.err.read_text()
    assert list(temporary.iterdir()) == []


def run_calls(model):
    """Runs the printed command and program as they are; returns what the command got."""
    got = subprocess.run(["bash", "-c", model["curl"]], capture_output=True, text=True, timeout=60)
    program = subprocess.run([sys.executable, "-c", model["python"]], capture_output=True, text=True, timeout=120)
    assert program.returncode == 0, program.stderr
    for output in model["outputs"]:
        assert output["name"] in program.stdout
    return got.stdout


def check_calls(model):
    response = json.loads(run_calls(model))
    assert {output["name"] for output in response["outputs"]} == {output["name"] for output in model["outputs"]}
    return response


def backend(name):
    reason = f"the build has no backend '{name}'"
    return pytest.mark.skipif(not servers.has_backend(name), reason=reason)


def example(path, file, platform):
    return pytest.param(path, file, platform, marks=backend(path.split("/")[0]), id=file)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    return target


def test_an_onnx_file_is_served_in_batches(serve, onnx, tmp_path):
    path = copy(DIGITS, tmp_path / "my digits.onnx")
    model = serve(path, "--json").models["my_digits"]
    assert model["framework"] == "ONNX" and model["path"] == str(path)
    assert model["inputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [-1, 64]}]
    assert model["max_batch_size"] > 1
    assert check_calls(model)["outputs"][0]["shape"] == [1, 1]


@pytest.mark.parametrize("source,file,options", [
    example("tensorflow/digits_savedmodel/1/model.savedmodel", "exported", []),
    example("tensorflow/digits_graphdef/1/model.graphdef", "frozen.pb",
            [*PIXELS, "--output", "probabilities:FP32:-1,10"]),
    example("pytorch/digits_torchscript/1/model.pt", "script.pt", [*PIXELS, "--max-batch-size", "4"]),
    example("pytorch/digits_aoti/1/model.pt2", "compiled.pt2", []),
    example("caffe2/digits_netdef/1", "network", PIXELS),
    example("openvino/digits_openvino", "digits_openvino", []),
])
def test_files_of_other_frameworks_are_served(serve, tmp_path, source, file, options):
    served = serve(copy(PLATFORMS / source, tmp_path / file), "--json", *options)
    model = served.models[pathlib.Path(file).stem]
    check_calls(model)
    if "--max-batch-size" in options:
        assert model["max_batch_size"] == 4


@backend("openvino")
def test_an_openvino_file_is_served_with_its_weights(serve, tmp_path):
    openvino_models.Repository(tmp_path).add("m", "add_sub", "FP32", "2x4", file_name="net.xml").write()
    check_calls(serve(tmp_path / "m" / "1" / "net.xml", "--json").models["net"])


@backend("python")
def test_a_python_file_is_served_with_the_modules_beside_it(serve, tmp_path):
    (tmp_path / "neighbour.py").write_text("def add(value):\n    return value + 1\n")
    (tmp_path / "plus.py").write_text(PYTHON)
    response = check_calls(serve(tmp_path / "plus.py", "--json").models["plus"])
    assert response["outputs"][0]["data"] == [1, 1]


@backend("python")
def test_a_python_file_that_does_not_say_its_inputs_is_served_and_asks_for_them(serve, tmp_path):
    silent = PYTHON.replace("def auto_complete_config", "def other")
    (tmp_path / "neighbour.py").write_text("def add(value):\n    return value + 1\n")
    (tmp_path / "plus.py").write_text(silent)
    text = serve(tmp_path / "plus.py").text
    assert "does not say what its inputs and outputs are" in text and "--input NAME:TYPE:DIMS" in text
    assert "curl" not in text
    (model,) = serve(tmp_path / "plus.py", "--json").summary["models"]
    assert "--input NAME:TYPE:DIMS" in model["call_error"] and "curl" not in model and "python" not in model
    tensors = ["--input", "x:FP32:2", "--output", "y:FP32:2"]
    assert check_calls(serve(tmp_path / "plus.py", "--json", *tensors).models["plus"])["outputs"][0]["data"] == [1, 1]


@backend("python")
def test_a_decoupled_model_is_called_as_a_stream(serve, tmp_path):
    (tmp_path / "count.py").write_text(DECOUPLED)
    got = run_calls(serve(tmp_path / "count.py", "--json").models["count"])
    events = [json.loads(line.removeprefix("data: ")) for line in got.splitlines() if line]
    assert [event["y"] for event in events if "y" in event] == [0, 1, 2]


def test_weights_beside_an_onnx_file_are_found(serve, onnx, tmp_path):
    weights = np.full((64, 64), 2, np.float32)
    model = models.onnx_model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", TensorProto.FLOAT, ["n", 64])], [("y", TensorProto.FLOAT, ["n", 64])],
        [numpy_helper.from_array(weights, "w")])
    (tmp_path / "parts").mkdir()
    onnx_package.save_model(model, tmp_path / "large.onnx", save_as_external_data=True,
                            location="parts/large.weights", size_threshold=0)
    served = serve(tmp_path / "large.onnx", "--json")
    check_calls(served.models["large"])
    with httpclient.InferenceServerClient(served.summary["http"]) as client:
        tensor = httpclient.InferInput("x", [1, 64], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 64), np.float32))
        assert client.infer("large", [tensor]).as_numpy("y")[0, 0] == 128


def test_a_size_is_found_that_the_model_takes(serve, onnx, tmp_path):
    kernel = numpy_helper.from_array(np.ones((1, 3, 7, 7), np.float32), "kernel")
    picture = ["n", 3, "height", "width"]
    model = models.onnx_model(
        [helper.make_node("Conv", ["picture", "kernel"], ["y"])],
        [("picture", TensorProto.FLOAT, picture)], [("y", TensorProto.FLOAT, ["n", 1, "h", "w"])], [kernel])
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    served = serve(tmp_path / "net.onnx", "--json")
    model = served.models["net"]
    assert "call_error" not in model
    assert check_calls(model)["outputs"][0]["shape"] == [1, 1, 2, 2]
    with httpclient.InferenceServerClient(served.summary["http"]) as client:
        statistics = client.get_inference_statistics("net")["model_stats"][0]
        assert statistics["inference_count"] == 2, "trials do not count"


@pytest.mark.parametrize("datatype", ["FP16", "BYTES", "BOOL", "UINT8", "FP64"])
def test_calls_for_every_form_of_data_work(serve, onnx, tmp_path, datatype):
    files = [tmp_path / "short.onnx", tmp_path / "long.onnx"]
    for path, size in zip(files, (3, 300)):
        path.write_bytes(models.onnx_identity(datatype, ["n", size]).SerializeToString())
    served = serve(*files, "--json")
    for model in served.models.values():
        got = run_calls(model)
        assert ("OUTPUT0" in got) if datatype != "FP16" else got.startswith("0000000"), got


def test_several_files_a_model_folder_and_a_repository_are_served_together(serve, onnx, tmp_path):
    for name in ("a", "b"):
        copy(DIGITS, tmp_path / name / "model.onnx")
    repository = tmp_path / "models"
    models.write_model(repository, "simple_identity", models.identity_config("FP32", [-1]))
    folder = copy(models.EXAMPLES / "simple", tmp_path / "simple")
    served = serve(f"first={tmp_path / 'a' / 'model.onnx'}", f"second={tmp_path / 'b' / 'model.onnx'}",
                   repository, folder, "--json")
    assert set(served.models) == {"first", "second", "simple_identity", "simple"}
    for model in served.models.values():
        check_calls(model)


def test_the_text_has_tensors_and_calls_and_no_colours_in_a_file(serve, onnx, tmp_path):
    served = serve(copy(DIGITS, tmp_path / "digits.onnx"))
    assert "  input   pixels         FP32    [-1, 64]\n" in served.text
    assert "batched: up to" in served.text
    assert "\x1b" not in served.text
    assert served.err.read_text() == ""
    lines = served.text.splitlines()
    curl = next(line for line in lines if line.startswith("curl "))
    begin = lines.index("import numpy as np")
    program = "\n".join(lines[begin:lines.index("", lines.index("", begin) + 1)])
    run_calls({"curl": curl, "python": program, "outputs": [{"name": "label"}]})


def test_a_terminal_has_colours(onnx, tmp_path, temporary):
    path = copy(DIGITS, tmp_path / "digits.onnx")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "TMPDIR": str(temporary)}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [servers.binary(), "serve", path, *FREE, "--", f"--backend-directory={servers.backends()}"],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment, start_new_session=True)
    os.close(theirs)
    shown = b""
    while LAST_LINE.encode() not in shown:
        shown += os.read(ours, 65536)
    assert b"\x1b[1mdigits\x1b[0m" in shown
    process.terminate()
    try:
        while os.read(ours, 65536):
            pass
    except OSError:
        pass  # the end of a terminal whose other side is closed
    os.close(ours)
    assert process.wait(60 * servers.SLOWNESS) == 0


def test_watching_reloads_a_file_that_changes_and_keeps_the_model_if_it_is_broken(serve, onnx, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(adder(1))
    served = serve(path, "--watch", "--json")

    with httpclient.InferenceServerClient(served.summary["http"]) as client:

        def value():
            tensor = httpclient.InferInput("INPUT0", [2], "FP32")
            tensor.set_data_from_numpy(np.zeros(2, np.float32))
            return client.infer("m", [tensor]).as_numpy("OUTPUT0")[0]

        assert value() == 1
        files.replace(path, adder(2))
        servers.wait_until(lambda: value() == 2, "the changed file is served")
        files.replace(path, b"broken")
        servers.wait_until(lambda: "is not an ONNX model" in served.err.read_text(), "the log says why")
        assert value() == 2
        files.replace(path, adder(3))
        servers.wait_until(lambda: value() == 3, "the mended file is served")


def test_watching_begins_with_a_broken_file_and_waits_for_a_better_one(serve, onnx, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"broken")
    served = serve(path, "--watch", "--json")
    assert "is not an ONNX model" in served.models["m"]["error"]
    path.write_bytes(adder(1))
    with httpclient.InferenceServerClient(served.summary["http"]) as client:
        servers.wait_until(lambda: client.is_model_ready("m"), "the mended file is served")


def test_a_usual_port_that_is_taken_is_told_and_another_one_used(serve, onnx, tmp_path):
    path = copy(DIGITS, tmp_path / "digits.onnx")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8000))
            taken.listen()
        except OSError:
            pass  # by another program, which is as good
        served = serve(path, "--json", ports=[])
    assert "port 8000 is taken by another program: HTTP is on port" in served.err.read_text()
    assert served.summary["http"] != "localhost:8000"
    check_calls(served.models["digits"])


def fail(tmp_path, *arguments, status=1):
    run = subprocess.run([servers.binary(), "serve", *map(str, arguments)], capture_output=True, text=True,
                         timeout=120, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert run.returncode == status, run.stdout + run.stderr
    assert not list(tmp_path.glob("nereid-tmp-*"))
    return run.stderr


def test_a_chosen_port_that_is_taken_is_an_error_with_the_next_free_one(tmp_path):
    path = copy(DIGITS, tmp_path / "digits.onnx")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = fail(tmp_path, path, "--port", port)
    assert text.startswith(f"error: port {port} is taken by another program; the next free one is ")


@pytest.mark.parametrize("file,content,options,status,texts", [
    ("net.onnx", None, [], 2, ["there is no file or folder", "net.onnx"]),
    ("notes.txt", b"x", [], 2, ["not a kind of model file", "What can be served: ONNX"]),
    ("net.safetensors", b"x", [], 2, ["weights without the model", "Export the model to ONNX"]),
    ("net.onnx", b"garbage", [], 1, ["model 'net' cannot be served", "is not an ONNX model", "net.onnx'"]),
    ("net.onnx", b"x", ["--input", "x:FP32"], 2, ["--input 'x:FP32' is not a tensor"]),
    ("net.plan", b"x", ["--", "--backend-directory=/nowhere"], 1, ["needs the backend 'tensorrt'"]),
    ("net.pt", b"x", ["--", "--backend-directory=/nowhere"], 1,
     ["needs a framework that is not installed", "pip install 'nereid[pytorch]'"]),
])
def test_failures_are_told_in_words(tmp_path, file, content, options, status, texts):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    if "--" not in options:
        options = [*options, "--", f"--backend-directory={servers.backends()}"]
    text = fail(tmp_path, tmp_path / file, *FREE, *options, status=status)
    for part in texts:
        assert part in text
    assert "nereid-tmp-" not in text


@backend("pytorch")
def test_a_file_that_lacks_its_inputs_says_how_to_name_them(tmp_path):
    path = copy(PLATFORMS / "pytorch/digits_torchscript/1/model.pt", tmp_path / "script.pt")
    text = fail(tmp_path, path, *FREE, "--", f"--backend-directory={servers.backends()}")
    assert "forward(pixels: Tensor)" in text
    assert "--input NAME:TYPE:DIMS" in text


@pytest.mark.parametrize("name", ["x/y", "", "a b", "a=b"])
def test_a_name_that_is_none_is_refused_as_such(tmp_path, name):
    copy(DIGITS, tmp_path / "net.onnx")
    text = fail(tmp_path, tmp_path / "net.onnx", "--name", name, status=2)
    assert f"'{name}' cannot be the name of a model" in text


def test_two_files_of_one_name_are_refused(tmp_path):
    for name in ("a", "b"):
        copy(DIGITS, tmp_path / name / "net.onnx")
    text = fail(tmp_path, tmp_path / "a" / "net.onnx", tmp_path / "b" / "net.onnx", status=2)
    assert "would both be called 'net'" in text
    assert f"net_2={tmp_path / 'b' / 'net.onnx'}" in text


@pytest.mark.parametrize("content", [None, b"garbage"])
def test_failures_are_json_if_that_is_wanted(tmp_path, content):
    if content is not None:
        (tmp_path / "net.onnx").write_bytes(content)
    run = subprocess.run([servers.binary(), "serve", tmp_path / "net.onnx", "--json", *FREE, "--",
                          f"--backend-directory={servers.backends()}"], capture_output=True, text=True, timeout=120)
    assert run.returncode in (1, 2)
    assert json.loads(run.stdout)["error"] in run.stderr


def test_wrong_arguments_have_their_own_exit_status(tmp_path):
    assert "MODEL is missing" in fail(tmp_path, status=2)
    assert "did you mean '--port'?" in fail(tmp_path, "x", "--prot", "1", status=2)


def test_the_folder_of_a_killed_server_goes_with_the_next_start(serve, onnx, tmp_path, temporary):
    path = copy(DIGITS, tmp_path / "digits.onnx")
    killed = serve(path, "--json")
    assert killed.stop(signal.SIGKILL) == -signal.SIGKILL
    (left,) = temporary.iterdir()
    serve(path, "--json")
    servers.wait_until(lambda: not left.exists(), "the folder to go")
