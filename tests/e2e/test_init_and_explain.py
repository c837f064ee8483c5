# SPDX-License-Identifier: Apache-2.0
"""nereid init and nereid explain: a model file becomes a repository entry, and a configuration tells where it is from."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from harness import models, other_user
from harness import server as servers

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]

PYTHON_MODEL = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [-1]})
        config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [-1]})
        config.set_max_batch_size(0)
        return config

    def execute(self, requests):
        raise NotImplementedError
"""


def nereid(*arguments, status=0):
    # Python models run with the interpreter of the tests, as from an active environment.
    env = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [servers.binary(), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert run.returncode == status, run.stdout + run.stderr
    return run


def contents(folder):
    """All that is there, with what files contain."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def as_json(*arguments, status=0):
    return json.loads(nereid(*arguments, "--json", status=status).stdout)


@pytest.fixture
def onnx_file(tmp_path, onnx):
    path = tmp_path / "adder.onnx"
    path.write_bytes(models.onnx_add_sub("FP32", ["n", 16]).SerializeToString(deterministic=True))
    return path


def test_a_model_file_becomes_an_entry_that_is_correct_and_serves(tmp_path, onnx_file):
    repository = tmp_path / "models"
    run = nereid("init", onnx_file, "--repository", repository)
    config = repository / "adder" / "config.pbtxt"
    assert run.stdout.splitlines()[:2] == [str(config), str(repository / "adder" / "1" / "model.onnx")]
    assert run.stderr == ""
    text = config.read_text()
    for part in ('name: "adder"', 'backend: "onnxruntime"', "max_batch_size: 4", 'name: "INPUT0"', "dims: [ 16 ]"):
        assert part in text
    assert as_json("check", repository)["findings"] == []
    with servers.running(repository) as server:
        assert server.is_ready()


def test_nothing_is_overwritten_without_force(tmp_path, onnx_file):
    repository = tmp_path / "models"
    nereid("init", onnx_file, "-r", repository)
    config = repository / "adder" / "config.pbtxt"
    config.write_text("# mine")
    run = nereid("init", onnx_file, "-r", repository, status=1)
    assert "--force overwrites it" in run.stderr
    assert config.read_text() == "# mine"
    nereid("init", onnx_file, "-r", repository, "--force")
    assert 'backend: "onnxruntime"' in config.read_text()


def test_what_the_file_does_not_tell_is_asked_of_the_user(tmp_path):
    (tmp_path / "net.netdef").write_text("x")
    repository = tmp_path / "models"
    (made,) = as_json("init", tmp_path / "net.netdef", "-r", repository)
    assert (made["model"], made["backend"], made["is_complete"]) == ("net", "caffe2", False)
    assert made["reason"] != ""
    assert "# Write them in place of this example." in (repository / "net" / "config.pbtxt").read_text()


def test_a_python_model_takes_the_name_of_its_folder(tmp_path):
    script = tmp_path / "scale" / "model.py"
    script.parent.mkdir()
    script.write_text(PYTHON_MODEL)
    (made,) = as_json("init", script, "-r", tmp_path / "models", "--name", "scaler")
    assert (made["model"], made["backend"], made["is_complete"], made["reason"]) == ("scaler", "python", True, "")
    assert 'name: "X"' in (tmp_path / "models" / "scaler" / "config.pbtxt").read_text()


def test_wrong_files_are_told(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty.onnx").write_text("")
    (tmp_path / "model.py").write_text("x = 1\n")
    assert "is of no known kind" in nereid("init", tmp_path / "notes.txt", status=2).stderr
    assert "there is no file or folder" in nereid("init", tmp_path / "none.onnx", status=2).stderr
    assert "empty.onnx' is empty" in nereid("init", tmp_path / "empty.onnx", status=2).stderr
    assert "no class TritonPythonModel" in nereid("init", tmp_path / "model.py", status=2).stderr
    assert "no model file is given" in nereid("init", status=2).stderr
    assert "--name is for one file" in nereid("init", "a.onnx", "b.onnx", "--name", "c", status=2).stderr


@pytest.mark.parametrize("name", ["../x", "a/../b", "/tmp/x", "x/..", "x/y", "x/", "..", ".", " ..", ".. ", " ", "\t", ""])
def test_s28_names_are_no_paths(tmp_path, onnx_file, name):
    repository = tmp_path / "inner" / "models"
    before = sorted(tmp_path.rglob("*"))
    run = nereid("init", onnx_file, "-r", repository, "--name", name, status=2)
    assert "path traversal" in run.stderr or "name cannot be empty" in run.stderr
    nereid("init", onnx_file, "-r", repository, "--name", name, "--force", status=2)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_ending_may_be_in_capitals(tmp_path, onnx_file):
    (tmp_path / "UP.ONNX").write_bytes(onnx_file.read_bytes())
    (made,) = as_json("init", tmp_path / "UP.ONNX", "-r", tmp_path / "models")
    assert (made["model"], made["is_complete"]) == ("UP", True)
    assert (tmp_path / "models" / "UP" / "1" / "model.onnx").exists()


@pytest.mark.parametrize("content", [b"garbage", None], ids=["garbage", "cut"])
def test_a_file_that_is_no_model_changes_nothing(tmp_path, onnx_file, content):
    broken = tmp_path / "broken" / "adder.onnx"
    broken.parent.mkdir()
    broken.write_bytes(content or onnx_file.read_bytes()[:100])
    repository = tmp_path / "models"
    run = nereid("init", broken, "-r", repository, status=1)
    assert run.stdout == "" and f"'{broken}' is not a model that can be loaded" in run.stderr
    assert ".nereid-init" not in run.stderr
    assert not repository.exists()
    nereid("init", onnx_file, "-r", repository)
    before = contents(repository)
    assert "error" in as_json("init", broken, "-r", repository, "--force", status=1)
    assert contents(repository) == before


def test_a_model_that_does_not_tell_its_tensors_is_said_to_be_incomplete(tmp_path):
    script = tmp_path / "scale" / "model.py"
    script.parent.mkdir()
    script.write_text("class TritonPythonModel:\n    def execute(self, requests):\n        return []\n")
    (made,) = as_json("init", script, "-r", tmp_path / "models")
    assert (made["is_complete"], made["reason"]) == (False, "the model does not say what they are")


def test_a_folder_that_cannot_be_written_is_said(onnx_file):
    with other_user.open_folder() as folder:
        source, repository = folder / "adder.onnx", folder / "models"
        source.write_bytes(onnx_file.read_bytes())
        nereid("init", source, "-r", repository)
        before = contents(repository)
        (repository / "adder").chmod(0o555)
        command = [*other_user.AS_NOBODY, servers.binary(), "init", source, "-r", repository, "--force"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        (repository / "adder").chmod(0o755)
        assert run.returncode == 1
        assert f"in '{repository}/adder': Permission denied" in run.stderr
        assert contents(repository) == before


@pytest.mark.parametrize("name", ["...", "..my_model", "model..1", "a b", "ünï"])
def test_s28_names_that_only_look_like_paths_are_names(tmp_path, onnx_file, name):
    repository = tmp_path / "models"
    nereid("init", onnx_file, "-r", repository, "--name", name)
    assert (repository / name / "1" / "model.onnx").exists()


def test_s28_names_of_served_files_are_no_paths(tmp_path, onnx_file):
    for arguments in ([onnx_file, "--name", "../x"], [f"../x={onnx_file}"], [f"..={onnx_file}"]):
        run = nereid("serve", *arguments, "--http-port", "0", status=2)
        assert run.stderr and not (tmp_path.parent / "x").exists()


def test_each_value_has_its_origin(tmp_path, onnx_file):
    models.write_model(
        tmp_path / "models",
        "m",
        "max_batch_size: 2\n\ninstance_group { count: 3 }\n",
        {"1": {"model.onnx": onnx_file.read_bytes()}},
    )
    explained = as_json("explain", tmp_path / "models" / "m")
    assert (explained["model"], explained["load_error"]) == ("m", "")
    values = {one["field"]: (one["value"], one["from"], one["line"]) for one in explained["values"]}
    names = "names of the model's folder and files"
    model_file = "model file, read by the backend"
    assert values["name"] == ("m", names, 0)
    assert values["backend"] == ("onnxruntime", names, 0)
    assert values["max_batch_size"] == ("2", "config.pbtxt", 1)
    assert values["input[0].name"] == ("INPUT0", model_file, 0)
    assert values["input[0].dims[0]"] == ("16", model_file, 0)
    assert values["version_policy.latest.num_versions"] == ("1", "default of the server", 0)
    assert values["instance_group[0].count"] == ("3", "config.pbtxt", 3)
    assert values["instance_group[0].kind"][1] == "default of the server and the backend for instances"
    text = nereid("explain", "m", "-r", tmp_path / "models").stdout
    assert f"{tmp_path}/models/m/config.pbtxt:3" in text


def test_a_model_that_cannot_be_loaded_is_explained_as_far_as_possible(tmp_path):
    models.write_model(tmp_path, "m", 'backend: "onnxruntime"\n', {"1": {"model.onnx": b"no model"}})
    explained = as_json("explain", "m", "-r", tmp_path, status=1)
    assert explained["load_error"] != ""
    assert "backend" in [one["field"] for one in explained["values"]]
    assert as_json("explain", "m", "-r", tmp_path, "--static")["load_error"] == ""


def test_an_unknown_model_and_a_broken_configuration_are_told(tmp_path):
    models.write_model(tmp_path, "model", "nonsense: 1\n")
    assert "did you mean 'model'?" in nereid("explain", "modle", "-r", tmp_path, status=1).stderr
    assert "config.pbtxt:1:1" in nereid("explain", "model", "-r", tmp_path, status=1).stderr


def test_settings_of_backends_count_as_for_the_server(tmp_path, onnx_file):
    models.write_model(tmp_path / "models", "m", "", {"1": {"model.onnx": onnx_file.read_bytes()}})
    arguments = ["-r", tmp_path / "models", "--backend-config", "onnxruntime,default-max-batch-size=16"]
    values = {one["field"]: one["value"] for one in as_json("explain", "m", *arguments)["values"]}
    assert values["max_batch_size"] == "16"
    (made,) = as_json("init", onnx_file, "--name", "n", *arguments)
    assert made["is_complete"]
    assert "max_batch_size: 16\n" in (tmp_path / "models" / "n" / "config.pbtxt").read_text()
