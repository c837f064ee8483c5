# SPDX-License-Identifier: Apache-2.0
"""nereid check: what it prints, its JSON, its exit status, and that it agrees with the server."""

import json
import pathlib
import re
import subprocess
import urllib.request

import pytest
from harness import other_user
from harness import server as servers

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]

GOOD = """backend: "identity"
input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }
"""
ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(*arguments, status=0):
    run = subprocess.run([servers.binary(), "check", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert run.returncode == status, run.stdout + run.stderr
    return run


def findings(*arguments, status=0):
    return json.loads(check(*arguments, "--json", status=status).stdout)


def model(repository, name, config, files=("1/",)):
    folder = repository / name
    folder.mkdir(parents=True)
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if file.endswith("/") else path.write_text("x")
    (folder / "config.pbtxt").write_text(config)
    return folder


def test_a_mistake_has_its_place_its_line_and_what_to_do(tmp_path):
    folder = model(tmp_path, "m", 'backend: "identity"\nmax_batch_sise: 4\n')
    run = check(tmp_path, status=1)
    assert run.stdout == (
        f"{folder}/config.pbtxt:2:1: error: found max_batch_sise, expected a field of ModelConfig, "
        "perhaps 'max_batch_size' [field-unknown]\n"
        "  max_batch_sise: 4\n"
        "  ^\n"
        "  found max_batch_sise, expected a field of ModelConfig, perhaps 'max_batch_size'\n"
        "  Write max_batch_size.\n"
        "\n"
        "1 model: 1 error, 0 warnings, 0 notes\n"
    )
    assert run.stderr == ""


def test_json_has_everything_that_the_text_has(tmp_path):
    folder = model(tmp_path, "m", GOOD + "instance_group { kind: KIND_CPU gpus: [ 3 ] }\n")
    report = findings(tmp_path, status=1)
    assert {key: report[key] for key in ("models", "errors", "warnings", "notes")} == {
        "models": 1,
        "errors": 1,
        "warnings": 0,
        "notes": 0,
    }
    (finding,) = report["findings"]
    line = GOOD.count("\n") + 1
    assert finding == {
        "code": "group-cpu-gpus",
        "severity": "error",
        "model": "m",
        "file": str(folder / "config.pbtxt"),
        "line": line,
        "column": 33,
        "field": "instance_group[0].gpus",
        "message": "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs",
        "found": "[ 3 ]",
        "expected": "no GPUs",
        "suggestion": "Remove `gpus`, or write KIND_GPU.",
    }


def test_only_errors_count_for_the_exit_status_unless_warnings_shall(tmp_path):
    model(tmp_path, "m", GOOD + 'parameters { key: "x" value { string_value: "1" } }\n')
    assert [one["code"] for one in findings(tmp_path)["findings"]] == ["parameter-unknown"]
    check(tmp_path, "--strict", status=1)
    check(tmp_path, "--strict", "--ignore", "parameter-unknown")


def test_several_repositories_are_checked_together(tmp_path):
    model(tmp_path / "a", "m", GOOD)
    model(tmp_path / "b", "m", GOOD)
    report = findings(tmp_path / "a", tmp_path / "b", status=1)
    assert {one["code"] for one in report["findings"]} == {"model-duplicate"}
    check(tmp_path / "a", tmp_path / "b", "--model-namespacing")


def test_another_configuration_can_be_checked(tmp_path):
    folder = model(tmp_path, "m", GOOD, files=("1/", "configs/"))
    (folder / "configs" / "large.pbtxt").write_text("nothing: 1")
    check(tmp_path)
    (finding,) = findings(tmp_path, "--model-config-name", "large", status=1)["findings"]
    assert (finding["file"], finding["line"]) == (str(folder / "configs" / "large.pbtxt"), 1)


def test_models_are_loaded_only_if_asked(tmp_path, onnx):
    folder = model(tmp_path, "m", 'backend: "onnxruntime"\n', files=("1/model.onnx",))
    assert findings(tmp_path)["findings"] == []
    (finding,) = findings(tmp_path, "--load", status=1)["findings"]
    assert (finding["code"], finding["file"]) == ("load-failed", str(folder))
    assert "model.onnx" in finding["message"]


def test_wrong_arguments_are_told():
    assert "no repository is given" in check(status=2).stderr
    assert "did you mean 'dims-range'?" in check("x", "--ignore", "dims-rage", status=2).stderr
    assert "--stricd" in check("x", "--stricd", status=2).stderr


def test_a_folder_that_is_not_there_is_a_finding(tmp_path):
    (finding,) = findings(tmp_path / "none", status=1)["findings"]
    assert (finding["code"], finding["file"]) == ("repository-unreadable", str(tmp_path / "none"))


def test_what_cannot_be_read_is_said_so():
    with other_user.open_folder() as repository:
        onnx = 'backend: "onnxruntime"\n'
        version = model(repository, "version", onnx, files=("1/model.onnx",)) / "1"
        folder = model(repository, "folder", GOOD)
        file = model(repository, "file", onnx, files=("1/model.onnx",)) / "1" / "model.onnx"
        config = model(repository, "config", GOOD) / "config.pbtxt"
        closed = {path: path.stat().st_mode for path in (version, folder, file, config)}
        for path in closed:
            path.chmod(0)
        command = [*other_user.AS_NOBODY, servers.binary(), "check", repository, "--json"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        for path, mode in closed.items():
            path.chmod(mode)
        found = json.loads(run.stdout)["findings"]
        assert {(one["code"], one["file"]) for one in found} == {
            ("folder-unreadable", str(version)),
            ("folder-unreadable", str(folder)),
            ("model-file-unreadable", str(file)),
            ("config-unreadable", str(config)),
        }
        assert all("Permission denied" in one["message"] for one in found)
        assert run.returncode == 1


def test_the_documentation_has_all_kinds():
    kinds = json.loads(check("--kinds", "--json").stdout)
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.*) \| (.*) \|$", (ROOT / "docs" / "check.md").read_text(), re.M)
    assert rows == [(kind["code"], kind["severity"], kind["what"], kind["advice"]) for kind in kinds]
    assert len(kinds) >= 60
    text = check("--kinds").stdout
    assert all(kind["code"] in text for kind in kinds)


@pytest.mark.parametrize("repository", ["examples/models", "examples/backend/template/models"])
def test_the_examples_are_correct(repository):
    report = findings(ROOT / repository, "--ignore", "backend-not-installed")
    assert report["findings"] == []
    assert report["models"] > 0


# Configurations that are wrong, and one that is not, by name.
CONFIGS = {
    "good": GOOD,
    "batch": GOOD + "max_batch_size: -1\n",
    "dims": 'backend: "identity"\ninput { name: "INPUT0" data_type: TYPE_FP32 dims: 0 }\n',
    "groups": GOOD + "instance_group { count: 5000 }\n",
    "labels": GOOD.replace('name: "OUTPUT0"', 'name: "OUTPUT0" label_filename: "none"'),
    "names": GOOD + 'name: "other"\n',
    "policy": GOOD + "version_policy { specific { versions: 7 } }\n",
    "states": GOOD
    + 'sequence_batching { state { input_name: "I" output_name: "O" data_type: TYPE_FP32 dims: 1 '
    + 'use_growable_memory: true } }\n',
    "syntax": GOOD + "input [\n",
    "warm_up": GOOD + 'model_warmup { name: "s" batch_size: 1 inputs { key: "INPUT0" value { '
    + "data_type: TYPE_FP32 dims: -1 zero_data: true } } }\n",
    "no_backend": 'backend: "nothing"\n',
    "ensemble": 'platform: "ensemble"\nensemble_scheduling { step { model_name: "none" } }\n',
}


def test_what_the_server_refuses_is_an_error_and_nothing_else(tmp_path):
    for name, config in CONFIGS.items():
        model(tmp_path, name, config)
    wrong = {one["model"] for one in findings(tmp_path, status=1)["findings"] if one["severity"] == "error"}
    with servers.running(tmp_path, args=["--exit-on-error=false", "--strict-readiness=false"]) as server:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}", method="POST"), timeout=20
        ) as reply:
            index = json.load(reply)
    refused = {entry["name"] for entry in index if entry.get("state") != "READY"}
    assert refused == set(CONFIGS) - {"good"}
    assert wrong == refused
