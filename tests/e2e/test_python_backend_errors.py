# SPDX-License-Identifier: Apache-2.0
"""What people are told when a Python model cannot be loaded."""

import json
import subprocess
import sys
import tarfile

import pytest
import tritonclient.http as httpclient
from harness import python_models
from tritonclient.utils import InferenceServerException

LENIENT = ("--exit-on-error=false", "--strict-readiness=false")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def reasons(server):
    with httpclient.InferenceServerClient(server.http) as client:
        return {e["name"]: e.get("reason", "") for e in client.get_model_repository_index()}


def test_a_syntax_error_names_file_line_and_text_and_no_machinery(start_server, folder):
    model = python_models.write(folder, "wrong", """
        class TritonPythonModel:
            def execute(self, requests)
                return []
    """) / "1" / "model.py"
    line = model.read_text().splitlines().index("    def execute(self, requests)") + 1
    server = python_models.start(start_server, folder, *LENIENT)
    reason = reasons(server)["wrong"]
    assert f"SyntaxError: expected ':' ({model}, line {line})\n    def execute(self, requests)\n" in reason
    assert "importlib" not in reason and "worker.py" not in reason
    # The caret stands under the end of the text.
    assert reason.rstrip().splitlines()[-1] == " " * (4 + len("def execute(self, requests)")) + "^"


def test_a_syntax_error_in_what_a_model_imports_names_both_places(start_server, folder):
    model = python_models.write(folder, "wrong", "import helper\n" + python_models.IDENTITY) / "1"
    (model / "helper.py").write_text("x = (1,\n")
    server = python_models.start(start_server, folder, *LENIENT)
    reason = reasons(server)["wrong"]
    if "No module named" in reason:  # as where the folder of a version is not on the path
        (model / "model.py").write_text("from . import helper\n")
        server = python_models.start(start_server, folder, *LENIENT)
        reason = reasons(server)["wrong"]
    assert f"({model}/helper.py, line 1)\n    x = (1,\n" in reason
    assert f"{model}/model.py(" in reason
    assert "importlib" not in reason


def test_an_import_that_fails_names_the_models_line_and_no_machinery(start_server, folder):
    model = python_models.write(folder, "wrong", "import no_such_module\n") / "1" / "model.py"
    server = python_models.start(start_server, folder, *LENIENT)
    reason = reasons(server)["wrong"]
    assert "ModuleNotFoundError: No module named 'no_such_module'" in reason
    assert f"{model}(" in reason
    assert "importlib" not in reason


def test_an_interpreter_without_numpy_is_told_in_the_index_and_the_table(start_server, folder, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    python_models.write(folder, "m", python_models.IDENTITY)
    server = start_server(folder, args=(
        *LENIENT, f"--backend-config=python,python-runtime={bare}/bin/python3"))
    reason = reasons(server)["m"]
    expected = f"the Python interpreter {bare}/bin/python3"
    assert expected in reason and "No module named 'numpy'" in reason
    assert "models need numpy: install it for this interpreter, or name another one" in reason
    row = server.wait_for_match(r"^\| m .*\n")[0]
    assert "UNAVAILABLE" in row and "No module named 'numpy'" in row


def test_an_archive_without_numpy_is_named_and_not_where_it_was_unpacked(start_server, folder, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    archive = tmp_path / "bare.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(bare, ".")
    python_models.write(folder, "m", python_models.IDENTITY, extra=(
        'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "%s" } }\n' % archive))
    server = start_server(folder, args=LENIENT, env={"TMPDIR": str(tmp_path)})
    reason = reasons(server)["m"]
    assert f"the Python interpreter {archive}/bin/python3" in reason and "numpy" in reason
    assert "nereid-tmp" not in reason


def load(server, code):
    config = {"backend": "python", "max_batch_size": 0,
              "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}
    with httpclient.InferenceServerClient(server.http) as client:
        client.load_model("sent", config=json.dumps(config), files={"file:1/model.py": code.encode()})


@pytest.mark.parametrize("code, expected", [
    ("class class\n", "SyntaxError: invalid syntax (sent/1/model.py, line 1)"),
    ("raise RuntimeError('no')\n", "sent/1/model.py(1): <module>"),
    ("class TritonPythonModel:\n    def initialize(self, args):\n        open(__file__ + 'x')\n",
     "No such file or directory: 'sent/1/model.pyx'"),
])
def test_an_error_does_not_name_the_folder_of_files_that_came_with_a_request(
        start_server, folder, tmp_path, code, expected):
    python_models.write(folder, "other", python_models.IDENTITY)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    server = start_server(folder, args=("--model-control-mode=explicit",),
                          env={**python_models.ENVIRONMENT, "TMPDIR": str(temporary)})
    with pytest.raises(InferenceServerException) as error:
        load(server, code)
    # HTTP says that the load failed and why.
    text = error.value.message() + str(reasons(server))
    assert str(temporary) not in text and "nereid-tmp" not in text
    assert expected in text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")
