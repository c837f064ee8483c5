# SPDX-License-Identifier: Apache-2.0
"""The commands that ask a running server: output, --json, and failures (docs/commands.md)."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

import numpy as np
import pytest
from harness import certificates, models, wire
from harness import server as servers

sys.path.append(str(servers.ROOT / "tools"))
import commands_page  # noqa: E402

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SUCCESS, FAILURE, USAGE, UNREACHABLE = range(4)
MODEL = "idb_FP32"


def environment(**extra):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}
    return {**kept, **extra}


def run(*args, stdin=None, env=None, program=None):
    return subprocess.run(
        [str(program or servers.binary()), *map(str, args)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60 * servers.SLOWNESS,
        env=environment(**(env or {})),
    )


@pytest.fixture(scope="module")
def ask(server):
    """Runs a command against the shared server, and expects an exit status."""

    def ask(*args, expect=SUCCESS, **options):
        url = f"http://{server.metrics}" if args[0] == "metrics" else f"http://{server.http}"
        option = "--metrics-url" if args[0] == "metrics" else "--url"
        done = run(*args, option, url, **options)
        assert done.returncode == expect, (done.stdout, done.stderr)
        return done

    return ask


@pytest.fixture(scope="module")
def ask_json(ask):
    return lambda *args, **options: json.loads(ask(*args, "--json", **options).stdout)


def rows(text):
    """A table as lists of words."""
    return [line.split() for line in text.splitlines()]


# --- all commands -----------------------------------------------------------------------------

COMMANDS = {
    "models": [], "stats": [], "load": [MODEL], "unload": [MODEL], "infer": [MODEL, "--zeros"],
    "trace": [], "log": [], "health": [], "metrics": [], "bench": [MODEL],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_is_away_is_named_with_an_exit_status_of_its_own(command):
    url = f"http://127.0.0.1:{servers.free_ports(1)[0]}"
    option = "--metrics-url" if command == "metrics" else "--url"
    done = run(command, *COMMANDS[command], option, url)
    assert done.returncode == UNREACHABLE
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: no reply from {url}: ")
    done = run(command, *COMMANDS[command], option, url, "--json")
    assert done.returncode == UNREACHABLE
    assert json.loads(done.stdout)["error"].startswith("no reply from")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_does_not_reply_is_given_up(command):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        option = "--metrics-url" if command == "metrics" else "--url"
        done = run(command, *COMMANDS[command], option, url, "--timeout=200ms")
    assert done.returncode == UNREACHABLE
    assert "imeout" in done.stderr


@pytest.mark.parametrize("command", ["models", "stats", "infer", "trace", "health"])
def test_an_unknown_model_is_refused_in_the_words_of_the_server(ask, command):
    args = {"infer": ["nobody", "--zeros"], "trace": ["--model", "nobody"]}.get(command, ["nobody"])
    done = ask(command, *args, expect=FAILURE)
    if command == "health":
        assert done.stdout == "nobody is not ready\n"
    else:
        assert "nobody" in done.stderr and "no reply" not in done.stderr


@pytest.mark.parametrize("command", [*COMMANDS, "completion", "doctor", "help"])
def test_wrong_arguments_are_answered_with_the_usage(command):
    done = run(command, "--no-such-option", "--json")
    assert done.returncode == USAGE
    error = json.loads(done.stdout)["error"]
    assert error == "unknown option '--no-such-option'"
    assert done.stderr.splitlines()[0] == f"error: {error}"
    assert done.stderr.splitlines()[1].startswith(f"Usage: nereid {command} ")


def test_an_option_that_does_not_exist_is_answered_with_the_one_that_was_meant():
    assert "did you mean '--watch'?" in run("stats", "--wacth").stderr


@pytest.mark.parametrize("url", ["ftp://x", "", "http://", "http://host:port", "unix:"])
def test_addresses_that_make_no_sense_are_refused(url):
    done = run("models", "--url", url)
    assert done.returncode in (USAGE, UNREACHABLE)
    assert done.stderr.startswith("error: ")


def test_the_address_may_be_in_the_environment(server):
    assert run("health", env={"NEREID_URL": f"http://{server.http}"}).returncode == SUCCESS
    assert run("health", env={"NEREID_URL": server.http}).returncode == SUCCESS


def test_something_that_is_no_server_of_models_is_said_so():
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def serve():
            connection, _ = other.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        done = run("models", "--url", f"127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    assert done.returncode == FAILURE
    assert "not JSON" in done.stderr


def test_output_that_cannot_be_written_is_a_failure(server):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [servers.binary(), "models", "--url", server.http], stdout=full, env=environment(), timeout=60
        )
    assert done.returncode == FAILURE


# --- help -------------------------------------------------------------------------------------


def test_the_reference_is_what_the_program_says():
    described = commands_page.described(servers.binary())
    page = commands_page.PAGE.read_text()
    assert page.endswith(commands_page.MARK + commands_page.reference(described)), (
        "run tools/commands_page.py"
    )


def test_help_is_the_same_by_command_and_by_option():
    for command in json.loads(run("help", "--json").stdout):
        by_command = run("help", command["name"])
        assert by_command.returncode == SUCCESS
        assert command["usage"] in by_command.stdout
        for argument in command["arguments"]:
            assert f"\n  {argument['title']}\n" in by_command.stdout
        assert run(command["name"], "--help").stdout == by_command.stdout
        assert all(len(line) <= 100 for line in by_command.stdout.splitlines())


def test_options_that_must_be_given_have_no_default():
    for command in json.loads(run("help", "--json").stdout):
        for argument in command["arguments"]:
            assert not (argument["required"] and argument["default"]), (command["name"], argument)


def test_an_unknown_command_is_answered_with_the_one_that_was_meant():
    done = run("modles")
    assert done.returncode == USAGE
    assert "there is no command 'modles'; did you mean 'models'?" in done.stderr


def test_flags_of_the_server_and_the_name_tritonserver_know_no_commands():
    assert "\n  models " in run("--help").stdout
    tritonserver = servers.binary().parent / "tritonserver"
    assert "\n  models " not in run("--help", program=tritonserver).stdout
    done = run("models", program=tritonserver)
    assert done.returncode == 1
    assert done.stderr == "error: unexpected argument 'models'; --help lists all flags\n"


# --- models, stats, load, unload --------------------------------------------------------------


def test_models_lists_names_versions_and_states(ask, ask_json):
    lines = rows(ask("models").stdout)
    assert lines[0] == ["MODEL", "VERSION", "STATE", "REASON"]
    assert [MODEL, "1", "READY"] in lines
    assert {"name": MODEL, "version": "1", "state": "READY"} in ask_json("models")
    assert MODEL in ask("models", "--names").stdout.splitlines()


def test_models_says_why_one_could_not_be_loaded(empty_repository, start_server):
    models.write_model(empty_repository, "good", models.identity_config("FP32", [-1]))
    models.write_model(empty_repository, "bad", 'backend: "no_such_backend"\n')
    server = start_server(empty_repository, args=["--exit-on-error=false"], wait=False)
    servers.wait_until(lambda: wire_ready(server, "good"), "the good model is ready")
    text = run("models", "--url", server.http).stdout
    assert re.search(r"^bad +1 +UNAVAILABLE +.*no_such_backend", text, re.M)
    ready = json.loads(run("models", "--ready", "--json", "--url", server.http).stdout)
    assert [one["name"] for one in ready] == ["good"]


def wire_ready(server, model):
    return server.is_live() and wire.request(server, "GET", f"/v2/models/{model}/ready").status == 200


def test_models_shows_what_one_takes_and_gives(ask, ask_json):
    lines = rows(ask("models", MODEL).stdout)
    assert ["input", "INPUT0", "FP32", "[-1,", "-1]"] in lines
    assert ["output", "OUTPUT0", "FP32", "[-1,", "-1]"] in lines
    assert ask_json("models", MODEL)["inputs"][0]["datatype"] == "FP32"


def test_stats_counts_requests(ask, ask_json):
    ask("infer", "id_pair", "--zeros")
    lines = rows(ask("stats").stdout)
    assert lines[0] == "MODEL VERSION REQUESTS FAILED BATCH QUEUE COMPUTE TOTAL LAST".split()
    (line,) = [line for line in lines if line[0] == "id_pair"]
    assert int(line[2]) >= 1 and line[-1] == "ago"
    stats = ask_json("stats", "id_pair")["model_stats"]
    assert stats[0]["inference_stats"]["success"]["count"] >= 1
    assert "BATCH SIZE" in ask("stats", "id_pair").stdout


@pytest.fixture
def controlled(empty_repository, start_server):
    """A server whose models are loaded on demand, and a function that asks it."""
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    models.write_model(empty_repository, "bad", 'backend: "no_such_backend"\n')
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    return lambda *args: run(*args, "--url", server.http)


def test_load_and_unload_show_the_state_afterwards(controlled):
    done = controlled("load", "m")
    assert (done.returncode, done.stdout) == (SUCCESS, "m, version 1: READY\n")
    assert controlled("health", "m").stdout == "m is ready\n"
    loaded = json.loads(controlled("load", "m", "--json").stdout)
    assert loaded == {"model": "m", "versions": [{"version": "1", "state": "READY"}]}
    done = controlled("unload", "m")
    assert done.returncode == SUCCESS
    assert controlled("health", "m").returncode == FAILURE


def test_load_says_why_it_failed(controlled):
    done = controlled("load", "bad")
    assert done.returncode == FAILURE
    assert "no_such_backend" in done.stderr


def test_load_takes_another_configuration(controlled, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({
        "backend": "identity",
        "max_batch_size": 0,
        "input": [{"name": "INPUT0", "data_type": "TYPE_INT8", "dims": [1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_INT8", "dims": [1]}],
    }))  # fmt: skip
    done = controlled("load", "m", "--config", config)
    assert done.returncode == SUCCESS, done.stderr
    assert "INT8" in controlled("models", "m").stdout
    done = controlled("load", "m", "--config", tmp_path / "nowhere.json")
    assert done.returncode == USAGE
    assert "nowhere.json" in done.stderr


def test_models_cannot_be_loaded_where_the_server_does_not_allow_it(ask):
    done = ask("load", MODEL, expect=FAILURE)
    assert "explicit model load / unload is not allowed" in done.stderr


# --- infer ------------------------------------------------------------------------------------


def values(document, name="OUTPUT0"):
    (output,) = [one for one in document["outputs"] if one["name"] == name]
    return output["shape"], output["data"]


def test_infer_shows_outputs_as_a_table_and_as_json(ask, ask_json):
    text = ask("infer", MODEL, "--input", "INPUT0=[[1.5, 2]]").stdout
    assert rows(text)[0] == ["OUTPUT", "TYPE", "SHAPE", "VALUES"]
    assert rows(text)[1] == ["OUTPUT0", "FP32", "[1,", "2]", "[1.5,", "2.0]"]
    document = ask_json("infer", MODEL, "--input", "INPUT0=[[1.5, 2]]", "--id", "mine")
    assert document["model_name"] == MODEL and document["id"] == "mine"
    assert values(document) == ([1, 2], [1.5, 2.0])


@pytest.mark.parametrize(
    "value,shape",
    [("[[1, 2], [3, 4]]", [2, 2]), ("[1, 2, 3]", [1, 3]), ("[[1, 2, 3]]", [1, 3])],
)
def test_infer_adds_the_batch_where_it_is_missing(ask_json, value, shape):
    assert values(ask_json("infer", MODEL, "-i", value))[0] == shape


def test_infer_takes_the_shape_that_is_given(ask_json):
    assert values(ask_json("infer", MODEL, "-i", "[1, 2, 3, 4]", "--shape", "INPUT0=2,2"))[0] == [2, 2]


@pytest.mark.parametrize("datatype", [t for t in models.TYPES if t != "BF16"])
def test_infer_reads_and_writes_files_of_numpy(ask, datatype, tmp_path):
    tensor = models.random_tensor(np.random.default_rng(5), datatype, [2, 3])
    stored = tensor.astype("S") if datatype == "BYTES" else tensor
    np.save(tmp_path / "in.npy", stored)
    ask("infer", f"id_{datatype}", "-i", f"@{tmp_path}/in.npy", "--save", tmp_path / "out")
    result = np.load(tmp_path / "out" / "OUTPUT0.npy")
    np.testing.assert_array_equal(result, stored)
    assert datatype == "BYTES" or result.dtype == tensor.dtype


def test_infer_shows_bytes_that_are_no_text_as_such(ask, ask_json, tmp_path):
    np.save(tmp_path / "in.npy", np.array([b"\xff\x1b[2J"]))
    args = ["infer", "id_BYTES", "-i", f"@{tmp_path}/in.npy"]
    assert values(ask_json(*args, "--shape", "INPUT0=1,1"))[1] == ["\ufffd\x1b[2J"]
    assert "\x1b" not in ask(*args, "--shape", "INPUT0=1,1").stdout


def test_infer_reads_texts_of_numpy(ask_json, tmp_path):
    np.save(tmp_path / "in.npy", np.array([["é", "zwei"]]))
    assert values(ask_json("infer", "id_BYTES", "-i", f"@{tmp_path}/in.npy"))[1] == ["é", "zwei"]


def test_infer_reads_json_raw_bytes_and_the_standard_input(ask_json, tmp_path):
    (tmp_path / "in.json").write_text("[1, 2]")
    assert values(ask_json("infer", MODEL, "-i", f"@{tmp_path}/in.json"))[1] == [1, 2]
    (tmp_path / "in.raw").write_bytes(np.float32([3, 4]).tobytes())
    assert values(ask_json("infer", MODEL, "-i", f"@{tmp_path}/in.raw"))[1] == [3, 4]
    assert values(ask_json("infer", MODEL, "-i", "@-", stdin="[5, 6]"))[1] == [5, 6]


@pytest.mark.parametrize("datatype", models.TYPES)
def test_infer_generates_inputs_of_every_type(ask_json, datatype):
    shape, zeros = values(ask_json("infer", f"id_{datatype}", "--zeros"))
    assert shape == [1, 1]
    assert zeros == [{"BYTES": "", "BOOL": False}.get(datatype, 0)]
    args = ["infer", f"id_{datatype}", "--random", "--shape", "INPUT0=4,5"]
    shape, first = values(ask_json(*args))
    assert shape == [4, 5] and len(set(first)) > 1
    assert values(ask_json(*args))[1] == first
    assert values(ask_json(*args, "--seed=1"))[1] != first
    if datatype in ("FP16", "FP32", "FP64", "BF16"):
        assert all(0 <= value <= 1 for value in first)


def test_infer_keeps_numbers_that_json_does_not_have(ask_json, tmp_path):
    np.save(tmp_path / "in.npy", np.array([np.nan, np.inf, -np.inf, 1e-7], np.float32))
    data = values(ask_json("infer", MODEL, "-i", f"@{tmp_path}/in.npy"))[1]
    np.testing.assert_array_equal(np.float32(data), np.load(tmp_path / "in.npy"))


def test_infer_shortens_long_outputs_unless_told_otherwise(ask):
    args = ["infer", MODEL, "--zeros", "--shape", "INPUT0=1,50"]
    assert ", ... 40 more]" in ask(*args).stdout
    assert "more" not in ask(*args, "--all").stdout


def test_infer_asks_for_outputs_by_name(ask_json):
    document = ask_json("infer", "id_pair", "--zeros", "--output", "OUTPUT1")
    assert [one["name"] for one in document["outputs"]] == ["OUTPUT1"]


def test_infer_shows_classes(ask_json, onnx):
    shape, data = values(ask_json("infer", MODEL, "-i", "[1, 3, 2]", "--classes=2"))
    assert shape == [1, 2]
    assert data == ["3.000000:1", "2.000000:2"]


@pytest.mark.parametrize(
    "args,mentions",
    [
        ([], ["give --input, --zeros or --random", "INPUT0 FP32 [-1, -1]"]),
        (["--zeros", "--random"], ["exclude each other"]),
        (["-i", "INPUT9=[1]"], ["no input 'INPUT9'", "did you mean 'INPUT0'?"]),
        (["-i", "nothing"], ["expected NAME="]),
        (["-i", "INPUT0=[1,"], ["is not JSON"]),
        (["-i", "@/nowhere.npy"], ["/nowhere.npy", "No such file"]),
        (["-i", "@/etc/passwd"], ["expected a file .npy, .json or .raw"]),
        (["-i", "[1]", "--output", "OUTPUT7"], ["no such output", "OUTPUT0"]),
        (["--zeros", "--shape", "INPUT0=a"], ["expected sizes such as"]),
        (["--zeros", "--shape", "INPUT0=99999999999,9"], ["more than 1 GiB"]),
        (["--zeros", "--parameter", "x"], ["expected NAME=VALUE"]),
        (["--zeros", "--header", "x"], ["expected 'Name: value'"]),
        (["--zeros", "--cert", "x"], ["--cert and --key need each other"]),
    ],
    ids=lambda value: " ".join(value) if value else "nothing",
)
def test_infer_explains_wrong_arguments(ask, args, mentions):
    done = ask("infer", MODEL, *args, expect=USAGE)
    for part in mentions:
        assert part in done.stderr


@pytest.mark.parametrize(
    "content,says",
    [
        (b"", "it is no .npy file"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", "its header is cut off"),
        (np.zeros(3, np.int32), "it holds INT32, and the model takes FP32"),
        (np.asfortranarray(np.zeros((2, 3), np.float32)), "in Fortran order"),
        (np.zeros(3, ">f4"), "big-endian"),
        (np.zeros(3, np.complex64), "'c8' have no counterpart"),
        (np.zeros(3, [("a", "f4")]), "records"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_infer_explains_files_that_do_not_fit(ask, content, says, tmp_path):
    path = tmp_path / "in.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    done = ask("infer", MODEL, "-i", f"INPUT0=@{path}", expect=USAGE)
    assert done.stderr.startswith(f"error: input INPUT0: {path}: ")
    assert says in done.stderr


def test_infer_shows_what_the_server_says_about_the_input(ask):
    done = ask("infer", MODEL, "-i", '["a"]', expect=FAILURE)
    assert done.stderr.startswith("error: ")
    assert "no reply" not in done.stderr


# --- trace, log, health, metrics --------------------------------------------------------------


@pytest.fixture
def own(empty_repository, start_server, tmp_path):
    """A server whose settings may be changed, and a function that asks it."""
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository, args=[f"--trace-config=triton,file={tmp_path}/trace"])

    def ask(*args, expect=SUCCESS):
        done = run(*args, "--url", server.http)
        assert done.returncode == expect, (done.stdout, done.stderr)
        return done

    return ask


def test_trace_shows_and_changes_settings(own):
    assert ["trace_rate", "1000"] in rows(own("trace").stdout)
    changed = own("trace", "trace_level=TIMESTAMPS,TENSORS", "trace_rate=5", "--json")
    document = json.loads(changed.stdout)
    assert sorted(document["trace_level"]) == ["TENSORS", "TIMESTAMPS"]
    assert document["trace_rate"] == "5"
    of_model = own("trace", "--model", "m", "trace_rate=7").stdout
    assert ["trace_rate", "7"] in rows(of_model)
    assert ["trace_rate", "5"] in rows(own("trace").stdout)
    assert ["trace_rate", "5"] in rows(own("trace", "--model", "m", "trace_rate=").stdout)


def test_log_shows_and_changes_settings(own):
    document = json.loads(own("log", "log_verbose_level=2", "log_info=false", "--json").stdout)
    assert (document["log_verbose_level"], document["log_info"]) == (2, False)
    assert ["log_verbose_level", "2"] in rows(own("log").stdout)


@pytest.mark.parametrize(
    "args,mentions",
    [
        (["trace", "trace_rat=1"], "there is no setting 'trace_rat'; did you mean 'trace_rate'?"),
        (["trace", "trace_rate"], "expected SETTING=VALUE"),
        (["log", "log_verbos=1"], "there is no setting 'log_verbos'"),
    ],
)
def test_settings_that_do_not_exist_are_refused(own, args, mentions):
    assert mentions in own(*args, expect=USAGE).stderr


@pytest.mark.parametrize("level", ["TIMESTAMP", "TIMESTAMPS,TENSOR", "timestamps"])
def test_values_that_the_server_ignores_are_an_error(own, level):
    done = own("trace", f"trace_level={level}", expect=FAILURE)
    assert f"the server has ignored '{level.split(',')[-1]}', which it does not know" in done.stderr
    assert done.stdout == ""
    document = json.loads(own("trace", f"trace_level={level}", "--json", expect=FAILURE).stdout)
    assert "ignored" in document["error"]


def test_values_that_are_so_already_are_no_error(own):
    for _ in range(2):
        own("trace", "trace_level=TENSORS,TIMESTAMPS", "trace_rate=5")
        own("log", "log_verbose_level=1", "log_info=true")


@pytest.mark.parametrize("args", [["trace", "trace_rate=often"], ["log", "log_info=perhaps"]])
def test_values_that_the_server_refuses_are_refused_in_its_words(own, args):
    assert own(*args, expect=FAILURE).stderr.startswith("error: ")


def test_health_tells_by_words_and_exit_status(ask, ask_json):
    assert ask("health").stdout == "the server is ready\n"
    assert ask("health", "--live").stdout == "the server is live\n"
    assert ask("health", MODEL).stdout == f"{MODEL} is ready\n"
    assert ask("health", MODEL, "--version=1").stdout == f"{MODEL}, version 1 is ready\n"
    assert ask_json("health") == {"ready": True}
    assert ask_json("health", "nobody", expect=FAILURE) == {"ready": False}
    ask("health", MODEL, "--version=9", expect=FAILURE)
    ask("health", MODEL, "--live", expect=USAGE)


def test_health_waits_for_a_server_that_is_starting(empty_repository, start_server):
    port = servers.free_ports(1)[0]
    waiting = subprocess.Popen(
        [servers.binary(), "health", "--wait=60s", "--url", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    start_server(empty_repository, args=[f"--http-port={port}"], wait=False)
    assert waiting.communicate(timeout=60 * servers.SLOWNESS)[0] == "the server is ready\n"
    assert waiting.returncode == SUCCESS


def test_metrics_are_a_table_that_can_be_filtered(ask, ask_json, server):
    ask("infer", "id_pair", "--zeros")
    lines = rows(ask("metrics", "inference_request_success", "--model", "id_pair").stdout)
    assert lines[0] == ["METRIC", "MODEL", "LABELS", "VALUE"]
    ((name, model, value),) = lines[1:]
    assert (name, model) == ("nv_inference_request_success", "id_pair:1") and int(value) >= 1
    (one,) = ask_json("metrics", "inference_request_success", "--model", "id_pair")
    assert one["type"] == "counter" and one["help"] and one["value"] >= 1
    assert one["labels"] == {"model": "id_pair", "version": "1"}
    assert ask("metrics", "no_such_metric", expect=FAILURE).stderr.startswith("error: ")
    assert "# TYPE nv_inference_count counter" in ask("metrics", "--raw").stdout
    ask("metrics", "--raw", "queue", expect=USAGE)
    names = set(re.findall(r"^(\w+)[{ ]", ask("metrics", "--raw").stdout, re.M))
    assert {one["name"] for one in ask_json("metrics")} == names


# --- terminals, --watch -----------------------------------------------------------------------


@contextlib.contextmanager
def terminal(*args, env=None, columns=80):
    """A command on a terminal of its own: the process, and a function that reads what it shows up to
    a text."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [servers.binary(), *map(str, args)], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(TERM="xterm", **(env or {})), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = ""

    def read_until(text, count=1):
        nonlocal shown
        deadline = time.monotonic() + 30 * servers.SLOWNESS
        while text is None or shown.count(text) < count:
            assert time.monotonic() < deadline, shown
            if select.select([ours], [], [], 1)[0]:
                try:
                    shown += os.read(ours, 65536).decode()
                except OSError:  # the other end is closed
                    if text is None:
                        return shown
                    raise AssertionError(shown) from None
        return shown

    try:
        yield process, read_until
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(ours)


def test_a_terminal_shows_colours_unless_they_are_unwanted(server):
    with terminal("models", "--url", server.http) as (_, read):
        assert "\x1b[32mREADY" in read(None)
    with terminal("models", "--url", server.http, env={"NO_COLOR": "1"}) as (_, read):
        assert "\x1b" not in read(None)


def test_a_narrow_terminal_shortens_what_may_be_shortened(server):
    with terminal("models", "--url", server.http, columns=24) as (_, read):
        text = re.sub(r"\x1b\[\d*m", "", read(None))
    assert "…" in text
    assert all(len(line) <= 40 for line in text.splitlines())


def test_watch_draws_in_place_on_a_terminal_until_control_c(server):
    with terminal("stats", MODEL, "--watch=100ms", "--url", server.http) as (process, read):
        text = read("REQ/S", count=3)
        assert re.search(r"\x1b\[\d+A\r\x1b\[J", text)
        process.send_signal(signal.SIGINT)
        assert process.wait(30 * servers.SLOWNESS) == SUCCESS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_appends_elsewhere_until_it_is_stopped(server, number):
    process = subprocess.Popen(
        [servers.binary(), "models", "--watch", "100ms", "--url", server.http],
        stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    seen = 0
    for line in process.stdout:
        assert "\x1b" not in line
        seen += line.startswith("MODEL ")
        if seen == 3:
            break
    process.send_signal(number)
    process.stdout.close()
    assert process.wait(30 * servers.SLOWNESS) in (SUCCESS, -signal.SIGPIPE)


def test_watch_with_json_prints_a_document_on_each_line(server):
    process = subprocess.Popen(
        [servers.binary(), "stats", "--watch=100ms", "--json", "--url", server.http],
        stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    for _ in range(3):
        assert "model_stats" in json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert all(json.loads(line) for line in process.stdout)
    assert process.wait(30 * servers.SLOWNESS) == SUCCESS


def test_watch_shows_a_server_that_goes_away_and_comes_back(empty_repository, start_server):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository)
    with terminal("models", "--watch=100ms", "--url", server.http) as (process, read):
        read("READY")
        server.stop()
        read("no reply from")
        before = read("no reply from").count("READY")
        start_server(empty_repository, args=[f"--http-port={server.http_port}"], wait=False)
        read("READY", count=before + 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(30 * servers.SLOWNESS) == SUCCESS


# --- ways to the server -----------------------------------------------------------------------


def test_tls_needs_an_authority_and_may_need_a_certificate(empty_repository, start_server, tmp_path):
    authority = certificates.make(tmp_path, "authority")
    certificate = certificates.make(tmp_path, "server", authority)
    client = certificates.make(tmp_path, "client", authority)
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(
        empty_repository, wait=False,
        args=["--http-use-ssl-mutual=true", f"--http-server-cert={certificate.cert}",
              f"--http-server-key={certificate.key}", f"--http-root-cert={authority.cert}"],
    )  # fmt: skip
    url = f"https://localhost:{server.http_port}"
    mutual = ["--ca", authority.cert, "--cert", client.cert, "--key", client.key]
    done = run("health", "--wait=30s", "--url", url, *mutual)
    assert done.returncode == SUCCESS, done.stderr
    assert run("infer", "m", "--zeros", "--url", url, *mutual).returncode == SUCCESS
    assert run("health", "--url", url).returncode == UNREACHABLE
    assert run("health", "--url", url, "--ca", authority.cert).returncode == UNREACHABLE


def test_headers_open_a_restricted_api(empty_repository, start_server):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository, args=["--http-restricted-api=model-repository:key=secret"])
    assert run("models", "--url", server.http).returncode == FAILURE
    done = run("models", "--url", server.http, "--header", "key: secret")
    assert done.returncode == SUCCESS, done.stderr
    assert "READY" in done.stdout


def test_a_unix_socket_is_an_address(empty_repository, start_server, tmp_path):
    path = tmp_path / "http"
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    start_server(empty_repository, args=[f"--http-address=unix:{path}"], wait=False)
    done = run("health", "--wait=30s", "--url", f"unix:{path}")
    assert done.returncode == SUCCESS, done.stderr
    assert run("models", "--names", "--url", f"unix:{path}").stdout == "m\n"
