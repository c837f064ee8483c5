# SPDX-License-Identifier: Apache-2.0
"""Neither the server nor any library that it uses writes outside the folders that it was given, or talks to anybody
who was not named to it: seen by strace, from start to stop, with every backend of the build."""

import json
import os
import shutil
import signal
import socket
import sys
import time

import pytest
from harness import models, python_models, watch, wire
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.slow, pytest.mark.usefixtures("require_server")]

# ONNX Runtime looks for its collector about 11 seconds after its first session.
SECONDS_UNTIL_UPLOAD = 13
PLATFORMS = models.ROOT / "examples" / "platforms"
# The folders of models, each with the backend that has to be in the build and the name of the input.
MODELS = {
    models.EXAMPLES / "digits": ("onnxruntime", "pixels"),
    PLATFORMS / "caffe2" / "digits_netdef": ("caffe2", "pixels"),
    PLATFORMS / "openvino" / "digits_openvino": ("openvino", "pixels"),
    PLATFORMS / "pytorch" / "digits_aoti": ("pytorch", "INPUT__0"),
    PLATFORMS / "pytorch" / "digits_torchscript": ("pytorch", "pixels"),
    PLATFORMS / "tensorflow" / "digits_graphdef": ("tensorflow", "pixels"),
    PLATFORMS / "tensorflow" / "digits_savedmodel": ("tensorflow", "pixels"),
}
MODEL_FILES = ("model.onnx", "model.netdef", "model.xml", "model.pt2", "model.pt", "model.graphdef", "saved_model.pb")
# A module beside the model and a library of its environment, whose compiled forms Python keeps by default.
NEIGHBOUR = "WIDTH = 4\n"
SCRIPT = python_models.HEAD + """
import neighbour
import onnxruntime

class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.join(os.path.dirname(args["model_repository"]), "digits", "1", "model.onnx")
        self.session = onnxruntime.InferenceSession(folder) if os.path.exists(folder) else None

    def execute(self, requests):
        if self.session is not None:
            self.session.run(None, {"pixels": np.zeros((1, 64), np.float32)})
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.zeros(neighbour.WIDTH, np.float32))])
                for _ in requests]
"""


@pytest.fixture
def watched(tmp_path_factory):
    watch.require()
    # Sockets have to have short names.
    return watch.Watched(tmp_path_factory.mktemp("w"))


class UnixConnection(wire.Connection):
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(300)
        self.socket.connect(str(path))
        self.buffer = b""

    def json(self, path, body=None):
        return self.request("POST", path, json.dumps(body or {}))


def write_repository(path):
    """Returns the names of the models, with the input that each takes."""
    inputs = {}
    for folder, (backend, name) in MODELS.items():
        if servers.has_backend(backend):
            shutil.copytree(folder, path / folder.name)
            inputs[folder.name] = name
            broken = shutil.copytree(folder, path / f"broken_{folder.name}")
            for file in broken.rglob("*"):
                if file.name in MODEL_FILES:
                    file.write_bytes(b"no model")
            config = broken / "config.pbtxt"
            if config.exists():
                config.write_text(config.read_text().replace(f'name: "{folder.name}"', ""))
    script = python_models.write(path, "script", python_models.IDENTITY)
    (script / "1" / "model.py").write_text(SCRIPT)
    (script / "1" / "neighbour.py").write_text(NEIGHBOUR)
    broken = python_models.write(path, "broken_script", python_models.IDENTITY)
    (broken / "1" / "model.py").write_text("import no_such_module\n")
    return inputs


def is_ready(path):
    try:
        with UnixConnection(path) as connection:
            return connection.request("GET", "/v2/health/ready").status == 200
    except OSError:
        return False


def infer_body(name, width):
    return {"inputs": [{"name": name, "datatype": "FP32", "shape": [1, width], "data": [0.0] * width}]}


def drive(connection, repository, inputs):
    """Loads, asks well and badly, breaks and unloads everything that there is."""
    for folder in sorted(repository.iterdir()):
        status = connection.json(f"/v2/repository/models/{folder.name}/load").status
        assert (status == 200) == (not folder.name.startswith("broken")), folder.name
    for name, tensor in inputs.items():
        for width, status in ((64, 200), (3, 400)):
            reply = connection.json(f"/v2/models/{name}/infer", infer_body(tensor, width))
            assert reply.status == status, (name, reply)
    # What libraries do some time after their first use.
    end = time.monotonic() + SECONDS_UNTIL_UPLOAD
    while time.monotonic() < end:
        for name, tensor in inputs.items():
            assert connection.json(f"/v2/models/{name}/infer", infer_body(tensor, 64)).status == 200
        time.sleep(0.5)
    for name in inputs:
        assert connection.json(f"/v2/repository/models/{name}/unload").status == 200


def ask_script(connection):
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [4], "data": [0.0] * 4}]}
    return connection.json("/v2/models/script/infer", body).status == 200


def test_a_server_with_all_backends_stays_in_its_folders_and_talks_to_nobody(watched, tmp_path, empty_repository):
    inputs = write_repository(empty_repository)
    before = {path: path.stat().st_mtime_ns for path in empty_repository.rglob("*")}
    sockets = watched.home.parent
    command = servers.command(
        [empty_repository], servers.free_ports(3),
        ["--model-control-mode=explicit", f"--http-address=unix:{sockets}/http", "--allow-grpc=false"])
    with open(tmp_path / "server.log", "wb") as log:
        process = watched.start(command, log, env=python_models.ENVIRONMENT)
    server = servers.Server(process, tmp_path / "server.log", (0, 0, 0))
    try:
        servers.wait_until(lambda: is_ready(sockets / "http"), "a server that is ready", timeout=60)
        with UnixConnection(sockets / "http") as connection:
            drive(connection, empty_repository, inputs)
            assert ask_script(connection)
            for worker in python_models.workers(server):
                worker.send_signal(signal.SIGSEGV)
            servers.wait_until(lambda: ask_script(connection), "a new worker", timeout=60)
        server.stop()
    finally:
        if process.poll() is None:
            process.kill()
    seen = watched.seen()
    assert watch.outside(seen.changed, watched.temporary, sockets / "http") == []
    assert seen.looked_for == set()
    # Its own listeners are all that it has anything to do with.
    metrics = next(part.split("=")[1] for part in command if part.startswith("--metrics-port"))
    assert seen.addresses == {f'unix "{sockets}/http"', f"127.0.0.1:{metrics}"}
    assert {os.path.basename(program) for program in seen.programs} <= {"strace", "nereid", "python3"}
    assert {path: path.stat().st_mtime_ns for path in empty_repository.rglob("*")} == before
    assert list(watched.home.iterdir()) == list(watched.current.iterdir()) == []
    assert list(watched.temporary.iterdir()) == []


def test_commands_change_no_file_and_talk_only_to_the_server_that_they_ask(watched, tmp_path, empty_repository):
    """Nobody listens in the network of a watched program, so each must try the address that it was told, and no other."""
    models.copy_example(empty_repository, "simple")
    for arguments, expected in (
        (["check", empty_repository], set()),
        (["explain", empty_repository / "simple"], set()),
        (["help"], set()),
        (["--version"], set()),
        (["health", "--url", "http://127.0.0.1:9"], {"127.0.0.1:9"}),
        (["models", "--url", "http://127.0.0.1:9"], {"127.0.0.1:9"}),
        (["metrics", "--metrics-url", "http://127.0.0.1:9"], {"127.0.0.1:9"}),
    ):
        place = watch.Watched(tmp_path / "-".join(map(os.path.basename, map(str, arguments))))
        with open(tmp_path / "output", "wb") as output:
            process = place.start([servers.binary(), *arguments], output)
            process.wait(60)
        seen = place.seen()
        assert watch.outside(seen.changed, place.temporary) == [], arguments
        assert seen.looked_for == set(), arguments
        assert seen.addresses == expected, (arguments, (tmp_path / "output").read_text())


EMBEDDED = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy
import nereid
import tritonclient.http

@nereid.model
def greet(name: str) -> str:
    return f"Hello, {name}!"

with nereid.Server(model_repository=sys.argv[2], exit_timeout=10) as server:
    for _ in range(3):
        for response in server.model("digits").infer(inputs={"pixels": numpy.zeros((1, 64), numpy.float32)}):
            assert response.outputs
    time.sleep(float(sys.argv[3]))
with nereid.serve(greet, block=False, http_port=0, grpc_port=0, metrics_port=0) as server:
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.http_port}")
    name = tritonclient.http.InferInput("name", [1], "BYTES")
    name.set_data_from_numpy(numpy.array(["you"], dtype=object))
    assert client.infer("greet", [name]).as_numpy("output").ravel()[0] == b"Hello, you!"
"""


def test_a_program_with_a_server_inside_stays_in_its_folders_and_talks_to_nobody(
    onnx, watched, tmp_path, empty_repository
):
    package = servers.build_folder() / "python"
    if not (package / "nereid").exists():
        pytest.skip("the build has no Python package")
    models.copy_example(empty_repository, "digits")
    with open(tmp_path / "output", "wb") as output:
        process = watched.start(
            [sys.executable, "-P", "-B", "-c", EMBEDDED, package, empty_repository, SECONDS_UNTIL_UPLOAD], output)
        process.wait(120)
    assert process.returncode == 0, (tmp_path / "output").read_text()
    seen = watched.seen()
    assert watch.outside(seen.changed, watched.temporary) == []
    assert seen.looked_for == set()
    assert {address.rpartition(":")[0] for address in seen.addresses} == {"127.0.0.1"}


def test_a_served_model_file_stays_in_its_folders_and_talks_to_nobody(onnx, watched, tmp_path):
    with open(tmp_path / "output", "wb") as output:
        process = watched.start(
            [servers.binary(), "serve", models.EXAMPLES / "digits" / "1" / "model.onnx", "--port", "0", "--grpc-port", "0", "--metrics-port", "0", "--", f"--backend-directory={servers.backends()}"],
            output)
    server = servers.Server(process, tmp_path / "output", (0, 0, 0))
    try:
        servers.wait_until(lambda: "Ctrl-C stops the server." in server.log or process.poll() is not None, "its summary")
        assert process.poll() is None, server.log
        server.signal(signal.SIGINT)
        assert server.wait() == 0, server.log
    finally:
        if process.poll() is None:
            process.kill()
    seen = watched.seen()
    assert watch.outside(seen.changed, watched.temporary) == []
    assert seen.looked_for == set()
    assert {address.rpartition(":")[0] for address in seen.addresses} <= {"127.0.0.1", "0.0.0.0", "::"}
    assert {os.path.basename(program) for program in seen.programs} <= {"strace", "nereid"}
