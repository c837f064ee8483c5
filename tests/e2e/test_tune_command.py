# SPDX-License-Identifier: Apache-2.0
"""`nereid tune`: output, --json, the patch, and failures (docs/bench.md). Which configuration is best is not asserted."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from harness import models
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SUCCESS, FAILURE, USAGE, UNREACHABLE = range(4)
QUICK = ["--p99", "10s", "--budget", "1s", "--max-concurrency", "4"]


def command(*args):
    return [str(servers.binary()), "tune", *map(str, args)]


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}


def tune(*args, expect=SUCCESS):
    done = subprocess.run(
        command(*args), capture_output=True, text=True, timeout=300 * servers.SLOWNESS, env=environment()
    )
    assert done.returncode == expect, (done.stdout, done.stderr)
    return done


@pytest.fixture
def digits(tmp_path):
    folder = tmp_path / "models" / "digits"
    shutil.copytree(models.EXAMPLES / "digits", folder)
    return folder


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def patched(folder, patch, tmp_path):
    """The configuration with the patch, as the program `patch` makes it."""
    target = tmp_path / "patched"
    shutil.copytree(folder.parent, target)
    (tmp_path / "change.patch").write_text(patch)
    if patch:
        subprocess.run(["patch", "-p1", "-d", target, "-i", tmp_path / "change.patch"], check=True)
    return (target / folder.name / "config.pbtxt").read_text()


def test_every_trial_is_shown_and_the_repository_is_only_read(digits, tmp_path):
    before = content(digits)
    done = tune(digits, *QUICK, "--html", tmp_path / "tune.html", "--out", tmp_path / "out.patch")
    assert content(digits) == before
    lines = [line for line in done.stdout.splitlines() if " s  " in line]
    assert "as it is" in lines[0] and "requests/s, p99" in lines[0]
    page = (tmp_path / "tune.html").read_text()
    assert page.count("<svg") == 1 and "goal: 10.0 s" in page
    assert (tmp_path / "out.patch").read_text() in done.stdout


def test_the_result_as_json_has_a_patch_that_leads_to_the_best_configuration(digits, tmp_path):
    result = json.loads(tune(digits, "--p99", "10s", "--budget", "3s", "--max-concurrency", "4", "--json").stdout)
    assert result["meets_goal"] and result["goal_p99_us"] == 10_000_000
    assert result["trials"][0]["configuration"] == "as it is"
    best = result["best"]
    text = patched(digits, result["patch"], tmp_path)
    for setting, field in (("instances", "count: {}"), ("max_batch_size", "max_batch_size: {}"),
                           ("max_queue_delay_us", "max_queue_delay_microseconds: {}")):  # fmt: skip
        if best.get(setting) == 0:  # the default, for which nothing need stand there
            assert re.search(field.format("[1-9]"), text) is None
        elif setting in best:
            assert field.format(best[setting]) in text
    # What is written is loaded by a server.
    checked = subprocess.run(
        [servers.binary(), "check", tmp_path / "patched"], capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == SUCCESS, checked.stdout


def test_a_change_is_applied_only_if_it_is_known_to_be_better(digits, tmp_path):
    before = (digits / "config.pbtxt").read_text()
    result = json.loads(tune(digits, *QUICK, "--apply", "--json").stdout)
    after = (digits / "config.pbtxt").read_text()
    if result["is_certain"]:
        (digits / "config.pbtxt").write_text(before)
        assert after == patched(digits, result["patch"], tmp_path)
    else:
        assert after == before


def test_a_grid_measures_every_configuration_once(digits):
    result = json.loads(tune(digits, *QUICK, "--grid", "--vary", "delay", "--json").stdout)
    assert [trial["max_queue_delay_us"] for trial in result["trials"]] == [0, 100, 500, 2000, 5000]
    assert result["choices"] == 5


def test_a_goal_that_no_configuration_meets_is_a_failure(digits):
    args = [digits, "--p99", "1us", "--budget", "1s"]
    done = tune(*args, expect=FAILURE)
    assert "No configuration has a p99 of 1.00 us: the nearest is" in done.stdout
    assert json.loads(tune(*args, "--json", expect=FAILURE).stdout)["meets_goal"] is False


@pytest.mark.parametrize(
    "args,text",
    [
        (["nobody", "--p99", "1s"], "there is no model 'nobody'"),
        (["digits"], "option '--p99' is missing"),
        (["digits", "--p99", "0"], "--p99: expected more than 0"),
        (["digits", "--p99", "1s", "--budget", "10ms"], "--budget: expected at least 1s"),
        (["digits", "--p99", "1s", "--vary", "colour"], "expected some of instances"),
        (["digits", "--p99", "1s", "--input", "OTHER=[1]"], "there is no input 'OTHER'"),
        (["digits", "--p99", "1s", "--batch-size", "1000"], "the model takes batches of up to"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(args, text, digits):
    done = tune(*args, "--repository", digits.parent, "--json", expect=USAGE)
    assert text in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("option", ["--html", "--out"])
def test_a_file_that_cannot_be_written_is_refused_before_the_search(digits, option, tmp_path):
    done = tune(digits, *QUICK, option, tmp_path / "none" / "result", expect=USAGE)
    assert f"cannot write '{tmp_path}/none/result': No such file or directory" in done.stderr
    assert done.stdout == ""


def test_a_model_that_cannot_be_loaded_is_said(digits):
    (digits / "1" / "model.onnx").write_text("nothing")
    done = tune(digits, *QUICK, expect=FAILURE)
    assert "digits" in done.stderr


def test_models_for_which_it_makes_no_sense_are_refused(tmp_path):
    models.write_model(tmp_path, "inner", models.identity_config("FP32", [-1]))
    models.write_model(
        tmp_path, "sequences", models.identity_config("FP32", [-1]) + "sequence_batching { }\n"
    )
    done = tune("sequences", "-r", tmp_path, *QUICK, expect=FAILURE)
    assert "sequences" in done.stderr


def test_control_c_ends_the_search_and_its_server(digits):
    process = subprocess.Popen(
        command(digits, "--p99", "1s", "--budget", "600s"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    first = process.stdout.readline()
    assert "as it is" in first
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60 * servers.SLOWNESS)
    assert process.returncode == FAILURE
    assert "interrupted" in errors
