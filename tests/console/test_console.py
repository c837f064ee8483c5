# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser, against a real server: its pages, what operators do there, keys."""

import hashlib
import json
import pathlib
import subprocess

import pytest
import requests
from harness import browser as browsers
from harness import decoupled, models, sequences
from harness import server as servers

pytestmark = pytest.mark.newer

PIPELINE = """
platform: "ensemble"
input [ { name: "image" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "result" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "copy" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "stage" model_version: -1
    input_map { key: "INPUT0" value: "image" } output_map { key: "OUTPUT0" value: "prepared" } },
  { model_name: "stage" model_version: -1
    input_map { key: "INPUT0" value: "prepared" } output_map { key: "OUTPUT0" value: "result" } },
  { model_name: "stage" model_version: -1
    input_map { key: "INPUT0" value: "prepared" } output_map { key: "OUTPUT0" value: "copy" } }
] }
"""

SHIFTS = """
platform: "ensemble"
input [ { name: "image" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "result" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "stage" model_version: -1
    input_map { key: "INPUT0" value: "image" } output_map { key: "OUTPUT0" value: "prepared" } },
  { model_name: "tired" model_version: -1
    input_map { key: "INPUT0" value: "prepared" } output_map { key: "OUTPUT0" value: "result" } }
] }
"""

UNUSED = """
platform: "ensemble"
input [ { name: "image" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "result" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "rested" model_version: -1
    input_map { key: "INPUT0" value: "image" } output_map { key: "OUTPUT0" value: "result" } }
] }
"""

DELAY = 'parameters { key: "execute_delay_ms" value: { string_value: "40" } }'


def write_models(repository):
    models.copy_example(repository, "digits")
    models.write_model(repository, "simple_string_id", models.identity_config("BYTES", [-1]))
    models.write_model(repository, "whole", models.identity_config("INT64", [-1]))
    models.write_model(repository, "picture", models.identity_config("FP32", [3, 8, 8]))
    models.write_model(repository, "stage", models.identity_config("FP32", [-1]))
    models.write_model(repository, "pipeline", PIPELINE)
    models.write_model(repository, "tired", models.identity_config("FP32", [-1], extra=DELAY))
    models.write_model(repository, "shifts", SHIFTS)
    models.write_model(repository, "rested", models.identity_config("FP32", [-1]))
    models.write_model(repository, "unused", UNUSED)
    decoupled.write_repeat(repository)
    sequences.write_show(repository, "talk", "oldest { max_candidate_sequences: 2 }")
    broken = models.identity_config("FP32", [1]).replace('backend: "identity"', 'backend: "nobody_has_this"')
    models.write_model(repository, "broken", broken)
    return repository


@pytest.fixture(scope="module", autouse=True)
def tools():
    browsers.require_tools()


@pytest.fixture(scope="module")
def browser():
    browsers.require()


@pytest.fixture(scope="module")
def server(require_server, browser, tmp_path_factory):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime")
    args = ["--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false", "--strict-readiness=false"]
    args.append(f"--trace-config=triton,file={tmp_path_factory.mktemp('traces') / 'trace'}")
    # The server does not wait for sequences that a test leaves open.
    args.append("--exit-timeout-secs=1")
    repository = write_models(tmp_path_factory.mktemp("models"))
    with servers.running(repository, args=args, log_dir=tmp_path_factory.mktemp("log")) as running:
        infer_digits(running)
        for _ in range(3):
            infer(running, "tired", {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]})
        yield running


def infer(server, model, tensor):
    reply = requests.post(f"http://{server.http}/v2/models/{model}/infer", json={"inputs": [tensor]}, timeout=30)
    assert reply.status_code == 200, reply.text


def infer_digits(server):
    """Requests of several sizes, so that there is something to show."""
    for size in (1, 1, 1, 2, 4, 4, 8):
        infer(server, "digits", {"name": "pixels", "datatype": "FP32", "shape": [size, 64], "data": [1] * 64 * size})


def run(script, server, **env):
    browsers.run(script, f"http://{server.http}", **env)


# The first test: others make other models slow.
def test_what_new_users_want(server):
    run("tasks.mjs", server)


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_every_page(server, width):
    run("look.mjs", server, WIDTH=str(width))


def test_what_operators_do(server):
    run("use.mjs", server)


def test_what_happens_to_single_requests(server):
    run("requests.mjs", server)


def test_what_models_answer(server):
    run("answers.mjs", server)


def test_what_is_said_of_troubles(server):
    run("troubles.mjs", server)


def test_models_on_demand(require_server, browser, tmp_path):
    repository = tmp_path / "models"
    for name in ("first", "second"):
        models.write_model(repository, name, models.identity_config("FP32", [-1]))
    with servers.running(repository, args=["--model-control-mode=ondemand"], log_dir=tmp_path) as server:
        run("ondemand.mjs", server)


def test_without_traces(require_server, browser, tmp_path):
    repository = tmp_path / "models"
    models.write_model(repository, "plain", models.identity_config("FP32", [-1]))
    with servers.running(repository, log_dir=tmp_path) as server:
        run("untraced.mjs", server)


def test_keys(require_server, browser, tmp_path):
    def key(name, scopes):
        return {"id": name, "sha256": hashlib.sha256(f"key-of-the-{name}".encode()).hexdigest(), "scopes": scopes}

    viewer = key("viewer", ["metrics", "metadata", "infer"])
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [viewer, key("operator", ["admin"])]}))
    repository = tmp_path / "models"
    models.write_model(repository, "digits", models.identity_config("FP32", [-1]))
    args = [f"--api-keys={keys}", "--model-control-mode=explicit", "--load-model=*", "--log-verbose=2"]
    with servers.running(repository, args=args, log_dir=tmp_path) as server:
        run("keys.mjs", server)


def explain(server, model):
    reply = requests.get(f"http://{server.http}/ui/api/models/{model}/explanation", timeout=30)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_explanations_are_those_of_the_command(require_server, tmp_path):
    repository = tmp_path / "models"
    models.write_model(repository, "plain", models.identity_config("FP32", [-1], max_batch_size=4))
    args = ["--model-control-mode=explicit", "--load-model=*"]
    with servers.running(repository, args=args, log_dir=tmp_path) as server:
        command = [servers.binary(), "explain", repository / "plain", "--json", f"--backend-directory={servers.backends()}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        shown = explain(server, "plain")
        assert shown["values"] == json.loads(done.stdout)["values"]
        assert pathlib.Path(shown["config"]) == repository / "plain/config.pbtxt"
        assert not shown["is_changed"]
        # The file changes, and the model does not.
        config = repository / "plain/config.pbtxt"
        config.write_text(config.read_text().replace("max_batch_size: 4", "max_batch_size: 8"))
        later = explain(server, "plain")
        assert later["is_changed"]
        (value,) = (value for value in later["values"] if value["field"] == "max_batch_size")
        assert (value["value"], value["written"]) == ("4", "8")
        requests.post(f"http://{server.http}/v2/repository/models/plain/load", timeout=30).raise_for_status()
        assert not explain(server, "plain")["is_changed"]


def test_the_logic_of_the_page():
    for command in (["--test", "src/*.test.ts"], ["node_modules/typescript/bin/tsc", "--noEmit"]):
        done = subprocess.run([browsers.NODE, *command], cwd=browsers.CONSOLE / "work", capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
