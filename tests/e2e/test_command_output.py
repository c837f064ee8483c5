# SPDX-License-Identifier: Apache-2.0
"""The standard output of commands is their result alone, whatever models print, and a result that is lost is an error."""

import json
import os
import subprocess

import pytest
from harness import models, python_models
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SUCCESS, FAILURE, USAGE = range(3)
FREE = ["--port", "0", "--grpc-port", "0", "--metrics-port", "0"]
FEW = ["--requests", "20", "--rounds", "1", "--warmup", "10ms", "--concurrency", "2"]

# Prints by Python and past it, when it is loaded and with each request, and more than a pipe holds.
CHATTY = python_models.HEAD + """
print("a print at the load\\n" * 5000, flush=True)
os.write(1, b"bytes at the load\\n")


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        print("a print at the completion", flush=True)
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [1]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [1]})
        config.set_max_batch_size(0)
        return config

    def execute(self, requests):
        print("a print at a request\\n" * 1000, flush=True)
        values = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", value)]) for value in values]
"""


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}
    return {**kept, **python_models.ENVIRONMENT}


def run(*args, expect=SUCCESS, stdout=subprocess.PIPE):
    done = subprocess.run(
        [str(servers.binary()), *map(str, args)],
        stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60 * servers.SLOWNESS, env=environment(),
    )  # fmt: skip
    assert done.returncode == expect, (done.stdout, done.stderr)
    return done


@pytest.fixture
def chatty(tmp_path):
    """A repository with the model `chatty`."""
    if not servers.has_backend("python"):
        pytest.skip("the build has no Python backend")
    repository = tmp_path / "chatty_models"
    models.write_model(repository, "chatty", 'backend: "python"\n', {"1": {"model.py": CHATTY.encode()}})
    return repository


# --- what models print --------------------------------------------------------------------------


@pytest.mark.parametrize("json_option", [["--json"], []], ids=["json", "text"])
@pytest.mark.parametrize("command", ["explain", "check", "init"])
def test_what_a_model_prints_is_not_in_the_result(chatty, tmp_path, command, json_option):
    arguments = {
        "explain": ["explain", "chatty", "-r", chatty],
        "check": ["check", chatty, "--load"],
        "init": ["init", chatty / "chatty" / "1" / "model.py", "-r", tmp_path / "made"],
    }[command]
    done = run(*arguments, *json_option)
    assert "a print at" not in done.stdout and "bytes at" not in done.stdout
    assert "a print at the load" in done.stderr
    if json_option:
        result = json.loads(done.stdout)
        assert result if command == "init" else result.get("load_error", "") == ""


def test_the_summary_of_serve_is_one_document(chatty, tmp_path):
    with open(tmp_path / "messages.txt", "wb") as messages:
        process = subprocess.Popen(
            [servers.binary(), "serve", chatty, *FREE, "--json"],
            stdout=subprocess.PIPE, stderr=messages, text=True, env=environment(),
        )  # fmt: skip
    try:
        first = json.loads(process.stdout.readline())
        run("infer", "chatty", "--zeros", "--url", f"http://{first['http']}")
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=60 * servers.SLOWNESS)
    assert [model["name"] for model in first["models"]] == ["chatty"]
    assert rest == "" and "a print at a request" in (tmp_path / "messages.txt").read_text()


def test_a_model_that_prints_is_measured(chatty):
    result = json.loads(run("bench", chatty / "chatty", *FEW, "--json").stdout)
    (level,) = result["levels"]
    assert (level["requests"], level["failed"]) == (20, 0)


def test_a_model_that_prints_is_tuned(chatty):
    tuning = ["tune", "chatty", "-r", chatty, "--p99", "10s", "--budget", "1s", "--max-concurrency", "2"]
    result = json.loads(run(*tuning, "--json").stdout)
    assert result["meets_goal"] and all(trial.get("failure", "") == "" for trial in result["trials"])


# --- results that cannot be written ---------------------------------------------------------------


def run_to_full(*args):
    """Runs the command with a standard output that has no space left; returns what it says about that."""
    with open("/dev/full", "w") as full:
        return run(*args, expect=FAILURE, stdout=full).stderr


@pytest.mark.parametrize("json_option", [["--json"], []], ids=["json", "text"])
@pytest.mark.parametrize("command", ["models", "stats", "health", "log", "models --watch", "help", "completion bash"])
def test_a_result_that_cannot_be_written_is_an_error(server, command, json_option):
    url = [] if command.split()[0] in ("help", "completion") else ["--url", f"http://{server.http}"]
    said = run_to_full(*command.split(), *json_option, *url)
    assert said == "error: cannot write to the standard output: No space left on device\n"


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_the_server_says_likewise_what_cannot_be_written(flag):
    assert run_to_full(flag) == "error: cannot write to the standard output: No space left on device\n"


def test_a_key_that_nobody_has_seen_is_removed_again(tmp_path):
    file = tmp_path / "keys.json"
    for json_option in [[], ["--json"]]:
        said = run_to_full("keys", "add", "ci", "-f", file, "--scope", "infer", *json_option)
        assert "the key cannot be shown; 'ci' is removed again" in said
        assert "No space left on device" in said and "Keep this key" not in said
    assert json.loads(run("keys", "list", "-f", file, "--json").stdout) == []
    run("keys", "add", "ci", "-f", file, "--scope", "infer")


def test_messages_that_cannot_be_written_harm_nothing(server):
    with open("/dev/full", "w") as full:
        cases = ["models", "--url", server.http], ["modles"], ["--no-such-flag"]
        for arguments, expected in zip(cases, (SUCCESS, USAGE, FAILURE), strict=True):
            done = subprocess.run(
                [servers.binary(), *arguments], stdout=subprocess.PIPE, stderr=full, env=environment(), timeout=60
            )
            assert done.returncode == expected


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", ["2020-01-01", "2020-01-01T12:00:00Z", "1970-01-01"])
def test_a_key_that_has_expired_already_is_refused(tmp_path, time):
    file = tmp_path / "keys.json"
    done = run("keys", "add", "ci", "-f", file, "--scope", "infer", "--expires", time, expect=USAGE)
    assert f"--expires {time} has passed" in done.stderr
    assert not file.exists()
