# SPDX-License-Identifier: Apache-2.0
"""The mistakes that users make most: the reason says what is wrong, what was expected, and where.

A text that Triton has, too, comes first, as scripts look for it; the help follows.
"""

import subprocess

import numpy as np
import pytest
from harness import certificates, models, wire
from harness import server as servers
from harness.clients import Client
from tritonclient.utils import InferenceServerException

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]

GOOD = models.identity_config("FP32", [-1])
NO_BACKEND = (
    "Invalid model name: Could not determine backend for model '{name}' with no backend in model configuration. "
    "Expected model name of the form 'model.<backend_name>'. "
)
NO_VERSION = "at least one version must be available under the version policy of model '{name}'. "
NO_LIBRARY = (
    "Invalid argument: unable to find backend library for backend '{backend}', try specifying runtime on the model "
    "configuration. "
)


def model_file():
    return models.onnx_add_sub("FP32", ["n", 16]).SerializeToString(deterministic=True)


# Name of the model → its files, the beginning of the reason and what stands in it. {m} is the model's folder.
LAYOUTS = {
    "loose_file": (
        {"model.onnx": model_file},
        NO_BACKEND,
        ["There is no version folder in '{m}': move 'model.onnx' to '{m}/1/model.onnx'."],
    ),
    "loose_file_with_configuration": (
        {"model.onnx": model_file, "config.pbtxt": 'backend: "onnxruntime"'},
        NO_VERSION,
        ["There is no version folder in '{m}': move 'model.onnx' to '{m}/1/model.onnx'."],
    ),
    "other_file_name": (
        {"1/linreg.onnx": model_file},
        NO_BACKEND,
        ["Found 'linreg.onnx' in '{m}/1', expected 'model.onnx': rename it, or write backend: \"onnxruntime\" and "
         "default_model_filename: \"linreg.onnx\" into '{m}/config.pbtxt'."],
    ),
    "other_file_name_with_configuration": (
        {"1/linreg.onnx": model_file, "config.pbtxt": 'backend: "onnxruntime"'},
        "Unavailable: unable to find '{m}/1/model.onnx' for model instance '{name}'",
        ["has 'linreg.onnx': rename it to 'model.onnx', or name it in config.pbtxt as default_model_filename."],
    ),
    "other_python_file_name": (
        {"1/main.py": b"", "config.pbtxt": 'backend: "python"'},
        "Internal: Failed to preinitialize Python stub: Python model file not found in '{m}/1/model.py'",
        ["has 'main.py': rename it to 'model.py'"],
    ),
    "empty_version": ({"1/": b""}, NO_BACKEND, ["'{m}/1' is empty, expected a model file such as"]),
    "named_version": (
        {"v1/": b"", "config.pbtxt": GOOD},
        NO_VERSION,
        ["Found the folder 'v1' in '{m}', expected the folder of a version: its name is a number"],
    ),
    "file_for_version": ({"1": b"", "config.pbtxt": GOOD}, NO_VERSION, ["'{m}/1' is a file, expected the folder"]),
    "unmet_policy": (
        {"1/": b"", "2/": b"", "config.pbtxt": GOOD + "version_policy { specific { versions: [ 3 ] } }"},
        NO_VERSION,
        ["The policy asks for version '3', and '{m}' has '1' and '2'."],
    ),
    "ensemble_without_version": (
        {"config.pbtxt": """platform: "ensemble"
            input [ { name: "I" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "O" data_type: TYPE_FP32 dims: [ -1 ] } ]
            ensemble_scheduling { step [ { model_name: "good" model_version: -1
              input_map { key: "INPUT0" value: "I" } output_map { key: "OUTPUT0" value: "O" } } ] }"""},
        NO_VERSION,
        ["expected at least one, such as '{m}/1'; that of an ensemble may be empty, but git does not keep"],
    ),
    "misnamed_configuration": (
        {"config.pbtxt.txt": GOOD, "1/": b""},
        NO_BACKEND,
        ["'{m}/config.pbtxt.txt' is not read, expected the configuration in '{m}/config.pbtxt'."],
    ),
    "configuration_in_version": (
        {"1/config.pbtxt": GOOD},
        NO_BACKEND,
        ["'{m}/1/config.pbtxt' is not read, expected the configuration in '{m}/config.pbtxt'."],
    ),
    "json_configuration": (
        {"config.json": "{}", "1/": b""},
        NO_BACKEND,
        ["'{m}/config.json' is not read, expected the configuration in '{m}/config.pbtxt'."],
    ),
    "unknown_backend": (
        {"1/": b"", "config.pbtxt": GOOD.replace('"identity"', '"identiy"')},
        NO_LIBRARY.replace("{backend}", "identiy"),
        ["Searched for 'libtriton_identiy.so' in the model's folder, in its version folder and in '{backends}/identiy'",
         "the backend directory '{backends}' has ", "'identity', ", "did you mean 'identity'?"],
    ),
    "unknown_platform": (
        {"1/": b"", "config.pbtxt": GOOD.replace('backend: "identity"', 'platform: "onnxruntime"')},
        "unexpected platform type 'onnxruntime' for {name}",
        ["perhaps 'onnxruntime_onnx'; any backend can be named in 'backend'"],
    ),
    "unknown_type": (
        {"1/": b"", "config.pbtxt": GOOD.replace("TYPE_FP32", "FLOAT32")},
        "failed to read text proto from {m}/config.pbtxt",
        ["config.pbtxt:4:31: input[0].data_type: found FLOAT32, expected one of", "perhaps 'TYPE_FP32'"],
    ),
    "json_in_configuration": (
        {"1/": b"", "config.pbtxt": '{"backend": "identity"}'},
        "failed to read text proto from {m}/config.pbtxt",
        ["this file has protobuf's text format, not JSON"],
    ),
    "name_twice": (
        {"1/": b"", "config.pbtxt": GOOD + f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]"},
        "",
        ["model input 'INPUT0' is configured twice for {name}", "input[1].name"],
    ),
    "höhe mal breite": (
        {"model.onnx": model_file},
        NO_BACKEND,
        ["move 'model.onnx' to '{m}/1/model.onnx'."],
    ),
}


def write(folder, files):
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        content = content() if callable(content) else content
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture(scope="module")
def mistaken(require_server, tmp_path_factory):
    """A server with every mistake beside a model that works, and its repository."""
    repository = tmp_path_factory.mktemp("mistakes")
    models.write_model(repository, "good", GOOD)
    models.write_model(repository, "batches", models.identity_config("FP32", [-1], max_batch_size=4))
    for name, (files, _, _) in LAYOUTS.items():
        write(repository / name, files)
    with servers.running(repository, args=["--exit-on-error=false", "--strict-readiness=false"],
                         log_dir=repository.parent) as server:
        yield server, repository


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_model_that_cannot_be_served_says_what_to_do(mistaken, name, onnx):
    server, repository = mistaken
    _, beginning, parts = LAYOUTS[name]
    entries = wire.request(server, "POST", "/v2/repository/index").json()
    (entry,) = [entry for entry in entries if entry["name"] == name]
    assert entry["state"] == "UNAVAILABLE"
    values = {"{m}": str(repository / name), "{name}": name, "{backends}": str(servers.backends())}

    def filled(text):
        for key, value in values.items():
            text = text.replace(key, value)
        return text

    assert entry["reason"].startswith(filled(beginning)), entry["reason"]
    for part in parts:
        assert filled(part) in entry["reason"], entry["reason"]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_batch_that_is_too_large_says_what_limits_it(mistaken, kind):
    client = Client(kind, mistaken[0])
    with pytest.raises(InferenceServerException) as caught:
        client.infer("batches", [client.input("INPUT0", np.zeros((9, 1), np.float32), "FP32")])
    client.close()
    assert ("inference request batch-size must be <= 4 for 'batches', got 9; the limit is max_batch_size in the "
            "model's configuration") in caught.value.message()


def test_a_configuration_that_is_not_read_is_told_of_a_model_that_serves(empty_repository, start_server, onnx):
    write(empty_repository / "m", {"config.pbtxt.txt": "max_batch_size: 7", "1/model.onnx": model_file})
    server = start_server(empty_repository)
    server.wait_for_log(f"'{empty_repository}/m/config.pbtxt.txt' is not read, expected the configuration in "
                        f"'{empty_repository}/m/config.pbtxt'.")


def test_a_model_without_configuration_fails_later_with_the_same_help(empty_repository, start_server):
    # The Python backend is known by the file; what it then lacks stands in the file that is not read.
    write(empty_repository / "m", {"config.pbtxt.txt": 'backend: "python"', "1/model.py": b"1 +"})
    args = ["--exit-on-error=false", "--strict-readiness=false"]
    server = start_server(empty_repository, args=args)
    (entry,) = wire.request(server, "POST", "/v2/repository/index").json()
    assert entry["state"] == "UNAVAILABLE"
    assert "config.pbtxt.txt' is not read" in entry["reason"]


# --- The command line -------------------------------------------------------------------------


def run(*args):
    ports = [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
    return servers.run_to_end([*ports, *args])


COMMAND_LINES = {
    "--model-control-mode=explict": "error: --model-control-mode 'explict': expected none, poll, explicit or "
                                    "ondemand; did you mean 'explicit'?",
    "--http-port=abc": "error: --http-port 'abc': expected a port from 0 to 65535, where 0 takes any free one",
    "--grpc-port=70000": "error: --grpc-port '70000': expected a port from 0 to 65535, where 0 takes any free one",
    "--metrics-port=": "error: --metrics-port '': expected a port from 0 to 65535, where 0 takes any free one",
    "--http-max-input-size=0": "Error: --http-max-input-size must be greater than 0.",
    "--load-model=x": "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
    "--http-max-input-size=64MB": "error: --http-max-input-size '64MB': expected a whole number",
    "--rate-limit=on": "error: --rate-limit 'on': expected off or execution_count",
    "--help=1": "error: flag '--help' takes no value",
    "-v": "error: unknown flag '-v'; --help lists all flags",
    "--model-repositry=/x": "error: unknown flag '--model-repositry'; did you mean '--model-repository'?",
    "--http-restricted-api=helth:k=v": "error: --http-restricted-api: unknown restricted api 'helth', expected 'health',",
    "/": "error: unexpected argument '/'; each model repository is given as --model-repository=/",
    "--model-repository=/nowhere/models": "error: creating server: Internal - failed to stat file /nowhere/models: "
                                          "there is no such model repository",
    "--backend-config=a,b=": "error: --backend-config option format is '<backend name>,<setting>=<value>' or "
                             "'<setting>=<value>'. Got a,b=",
}


@pytest.mark.parametrize("argument", COMMAND_LINES)
def test_a_wrong_flag_says_what_was_expected(empty_repository, argument):
    ended = run(f"--model-repository={empty_repository}", argument)
    assert ended.returncode == 1
    lines = [line for line in ended.stdout.splitlines() if line.lower().startswith("error: ")]
    assert len(lines) == 1 and lines[0].startswith(COMMAND_LINES[argument]), ended.stdout
    assert "error: error:" not in ended.stdout.lower()


@pytest.mark.parametrize("cert, key, beginning, end", [
    ("key", "cert", "server certificate '{key}': ", "found a block of 'PRIVATE KEY', expected '-----BEGIN CERTIFICATE-----'"),
    ("cert", "cert", "server key '{cert}': ", "found a block of 'CERTIFICATE', expected '-----BEGIN PRIVATE KEY-----'"),
    ("cert", "other", "server key '{other}': key values mismatch", "it is not the key of the certificate '{cert}'"),
    ("empty", "key", "server certificate '{empty}': ", "found no PEM block, expected '-----BEGIN CERTIFICATE-----'"),
])
def test_tls_files_that_are_swapped_or_of_others_are_told(tmp_path, empty_repository, cert, key, beginning, end):
    one, other = (certificates.make(tmp_path, name) for name in ("one", "other"))
    (tmp_path / "empty").write_text("")
    files = {"cert": one.cert, "key": one.key, "other": other.key, "empty": tmp_path / "empty"}
    ended = run(f"--model-repository={empty_repository}", "--grpc-use-ssl=true",
                f"--grpc-server-cert={files[cert]}", f"--grpc-server-key={files[key]}")
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("error: ")]
    assert line.startswith(
        "error: failed to start GRPC service: Invalid argument - " + beginning.format(**files)), line
    assert line.endswith("; " + end.format(**files)), line


@pytest.mark.parametrize("setting, text", [
    ("summary_quantiles=0.5:0.05,abc,2:0.1",
     "Invalid option: [abc]. Expected format is <quantile>:<error>, two numbers from 0 to 1 such as 0.95:0.001; "
     "--metrics-config summary_quantiles leaves out 'abc' and '2:0.1'"),
    ("summary_quantiles=abc", "leaves out 'abc' and keeps its defaults"),
    ("summary_latencies=yes", "--metrics-config summary_latencies: found 'yes', expected true or false; it stays false"),
    ("sumary_latencies=true", "there is no setting 'sumary_latencies', expected one of 'counter_latencies', "),
    ("sumary_latencies=true", "; did you mean 'summary_latencies'?"),
])
def test_a_wrong_metrics_setting_is_told_and_changes_nothing(empty_repository, start_server, setting, text):
    server = start_server(empty_repository, args=[f"--metrics-config={setting}"])
    server.wait_for_log(text)


def test_the_version_is_that_of_nereid_first():
    ended = servers.run_to_end(["--version"])
    first, second = ended.stdout.splitlines()
    name, version = first.split(" ")
    assert ended.returncode == 0 and name == "nereid" and version[0].isdigit()
    assert second == "stands in for Triton Inference Server 2.73.0"


# --- A model that cannot be loaded, at the start ----------------------------------------------


@pytest.mark.parametrize("name", ["nereid", "tritonserver"])
def test_under_both_names_a_bad_model_ends_the_start_with_its_name_and_the_way_out(empty_repository, name):
    models.write_model(empty_repository, "good", GOOD)
    models.write_model(empty_repository, "bad", GOOD.replace('"identity"', '"identiy"'))
    binary = servers.binary().parent / name
    if not binary.exists():
        pytest.skip(f"there is no {name} beside the binary")
    ports = [f"--{service}-port=0" for service in ("http", "grpc", "metrics")]
    ended = subprocess.run(
        [binary, *ports, f"--model-repository={empty_repository}", f"--backend-directory={servers.backends()}"],
        capture_output=True, text=True, timeout=60 * servers.SLOWNESS)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "error: creating server: Internal - failed to load all models; 'bad' failed, for the reasons above; "
        "--exit-on-error=false would serve the other model")


def test_a_wrong_backend_directory_is_named(empty_repository, start_server, tmp_path):
    models.write_model(empty_repository, "m", GOOD)
    args = ["--exit-on-error=false", "--strict-readiness=false", f"--backend-directory={tmp_path}/none"]
    server = start_server(empty_repository, args=args)
    (entry,) = wire.request(server, "POST", "/v2/repository/index").json()
    assert entry["reason"].endswith(
        f"; the backend directory '{tmp_path}/none' cannot be read: No such file or directory")
