# SPDX-License-Identifier: Apache-2.0
"""The logging extension, the formats of log lines, and client strings in them (S04, S06)."""

import json
import queue
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from google.protobuf import json_format
from harness import models
from harness import server as servers
from tritonclient.utils import InferenceServerException

DEFAULTS = {"log_file": "", "log_info": True, "log_warning": True, "log_error": True,
            "log_verbose_level": 0, "log_format": "default"}

DEFAULT_LINE = re.compile(r'^[EWI]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [\w.]+:\d+\] "(?P<message>.*)"$')
ISO_LINE = re.compile(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [EWI] \d+ [\w.]+:\d+\] "(?P<message>.*)"$')


@pytest.fixture
def logging_server(start_server, tmp_path):
    models.write_model(tmp_path / "m", "id_one", models.identity_config("FP32", [-1], max_batch_size=4))

    def start(*args, env=None):
        return start_server(tmp_path / "m", args=args, env=env)

    return start


def ask(server, body=None):
    """Status and JSON of the reply."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{server.http}/v2/logging", data=data)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def by_grpc(reply):
    settings = json_format.MessageToDict(reply, preserving_proto_field_name=True)["settings"]
    return {name: next(iter(value.values())) for name, value in settings.items()}


def test_settings_are_read_and_changed_by_both_protocols(logging_server):
    server = logging_server()
    http = httpclient.InferenceServerClient(server.http)
    rpc = grpcclient.InferenceServerClient(server.grpc)
    assert http.get_log_settings() == DEFAULTS
    assert by_grpc(rpc.get_log_settings()) == DEFAULTS
    changed = DEFAULTS | {"log_info": False, "log_verbose_level": 2, "log_format": "ISO8601"}
    change = {k: v for k, v in changed.items() if k != "log_file"}
    assert http.update_log_settings(change) == changed
    assert by_grpc(rpc.get_log_settings()) == changed
    reply = rpc.update_log_settings({"log_info": True, "log_verbose_level": 0, "log_format": "default"})
    assert by_grpc(reply) == DEFAULTS
    assert http.get_log_settings() == DEFAULTS
    http.close()
    rpc.close()


@pytest.mark.parametrize("body, status, error", [
    ({"log_info": 1}, 500, "attempt to access JSON non-boolean as boolean"),
    ({"log_warning": "false"}, 500, "attempt to access JSON non-boolean as boolean"),
    ({"log_verbose_level": -1}, 500, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
    ({"log_verbose_level": "1"}, 500, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
    ({"log_format": "xml"}, 503, "invalid argument for --log_format, got: xml"),
    (b'{"log_info":False}', 500, "failed to parse the request JSON buffer: Invalid value. at 12"),
])
def test_what_is_refused_over_http(server, body, status, error):
    assert ask(server, body) == (status, {"error": error})
    assert ask(server)[1] == DEFAULTS


@pytest.mark.parametrize("name, value, error", [
    ("log_info", {"uint32_param": 1}, "expect boolean for 'log_info'"),
    ("log_error", {}, "expect boolean for 'log_error'"),
    ("log_verbose_level", {"bool_param": True}, "expect int32 for 'log_verbose_level'"),
    ("log_format", {"bool_param": True}, "expect string for 'log_format'"),
    ("log_format", {"string_param": "xml"}, "invalid argument for log_format, got: xml"),
])
def test_what_is_refused_over_grpc(server, name, value, error):
    request = grpcclient.service_pb2.LogSettingsRequest()
    request.settings[name].CopyFrom(grpcclient.service_pb2.LogSettingsRequest.SettingValue(**value))
    with grpc.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            grpcclient.service_pb2_grpc.GRPCInferenceServiceStub(channel).LogSettings(request)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == error
    assert ask(server)[1] == DEFAULTS


def test_null_over_http_changes_nothing(server):
    assert ask(server, {name: None for name in DEFAULTS}) == (200, DEFAULTS)


def test_s04_the_file_cannot_be_changed_by_clients(logging_server, tmp_path):
    file = tmp_path / "log.txt"
    server = logging_server(f"--log-file={file}")
    other = tmp_path / "other.txt"
    error = "log file location can not be updated through network protocol"
    assert ask(server, {"log_file": str(other), "log_info": False}) == (501, {"error": error})
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match=error) as caught:
            client.update_log_settings({"log_file": str(other)})
        assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
    assert ask(server)[1] == DEFAULTS | {"log_file": str(file)}
    assert not other.exists()
    servers.wait_until(lambda: "Started HTTPService" in file.read_text(), "the lines of the start in the file")


def test_levels_take_effect_at_once(logging_server):
    server = logging_server("--log-info=false", "--log-verbose=1")
    assert "successfully loaded" not in server.log
    assert ask(server)[1]["log_verbose_level"] == 1
    ask(server, {"log_verbose_level": 0, "log_info": True})
    ask(server)
    server.stop()
    requests = re.findall(r"HTTP request: (\w+) /v2/logging", server.log)
    assert requests == ["GET", "POST"], "that of the last one was not wanted any more"
    server.wait_for_log("Waiting for in-flight requests to complete.")


def without_tables(lines):
    """Those that hold a message: not the tables of the start, which no message can be taken for."""
    return [line for line in lines if not re.search(r"^$|^[+|].*[+|]$|:\d+\] $", line)]


def send_hostile_strings(server):
    """Requests that fail, and say why in the log, with texts that would forge lines there."""
    forged = '\nI0101 00:00:00.000000 1 forged.cc:1] "forged"\r\x1b[31m\u2028\u2029\x85\x9b'
    with httpclient.InferenceServerClient(server.http) as client:
        for name in (forged, "x" * 1_000_000):
            value = httpclient.InferInput(name, [1, 1], "FP32")
            value.set_data_from_numpy(np.zeros((1, 1), np.float32))
            with pytest.raises(InferenceServerException):
                client.infer("id_one", [value], request_id=forged)
        value = httpclient.InferInput("INPUT0", [1, 1], "FP32")
        value.set_data_from_numpy(np.zeros((1, 1), np.float32))
        with pytest.raises(InferenceServerException):
            client.infer("id_one" + "%0aforged", [value])


@pytest.mark.parametrize("log_format, line", [("default", DEFAULT_LINE), ("ISO8601", ISO_LINE)])
def test_s06_each_line_is_one_message(logging_server, log_format, line):
    server = logging_server(f"--log-format={log_format}", "--log-verbose=1")
    send_hostile_strings(server)
    server.stop()
    lines = server.log_path.read_bytes().decode().split("\n")
    assert lines.pop() == ""
    for text in without_tables(lines):
        match = line.match(text)
        assert match, text
        json.loads(f'"{match["message"]}"')
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", text)
        assert len(text) < 20_000


def test_failed_requests_are_named_with_their_reasons(logging_server):
    server = logging_server("--log-verbose=1")
    reason = r"unexpected inference input 'NOBODY' for model 'id_one'.*"
    failed = re.compile(rf'\] "\[request id: (.*)\] Infer failed: .*{reason}"$', re.M)
    over_http = httpclient.InferInput("NOBODY", [1, 1], "FP32")
    over_grpc = grpcclient.InferInput("NOBODY", [1, 1], "FP32")
    for value in (over_http, over_grpc):
        value.set_data_from_numpy(np.zeros((1, 1), np.float32))
    with httpclient.InferenceServerClient(server.http) as client:
        for request_id in ("http", ""):
            with pytest.raises(InferenceServerException):
                client.infer("id_one", [over_http], request_id=request_id)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException):
            client.infer("id_one", [over_grpc], request_id="grpc")
        answers = queue.Queue()
        client.start_stream(lambda result, error: answers.put(error))
        client.async_stream_infer("id_one", [over_grpc], request_id="stream")
        assert "NOBODY" in str(answers.get(timeout=30))
        client.stop_stream()
    server.stop()
    assert failed.findall(server.log) == ["http", "<id_unknown>", "grpc", "stream"]


@pytest.mark.newer
@pytest.mark.usefixtures("onnx")
def test_lines_of_onnx_runtime_look_like_all_others(start_server, tmp_path):
    models.copy_example(tmp_path / "m", "digits")
    server = start_server(tmp_path / "m", args=["--log-verbose=1"])
    server.wait_for_log("Started HTTPService")  # after the lines of all models
    lines = [line for line in server.log.splitlines() if "onnxruntime onnxruntime: " in line]
    assert lines
    assert all(DEFAULT_LINE.match(line) for line in lines)
    assert not any(":0]" in line for line in lines)


@pytest.mark.newer
def test_s06_json_lines_stay_json(logging_server):
    server = logging_server("--log-format=json", "--log-verbose=1",
                            env={"TRITON_SERVER_ESCAPE_LOG_MESSAGES": "0"})
    assert ask(server)[1]["log_format"] == "json"
    send_hostile_strings(server)
    server.stop()
    lines = [json.loads(text) for text in server.log.splitlines()]
    assert all({"time", "level", "pid", "source", "message"} == set(line) for line in lines)
    assert "forged.cc" not in {line["source"].split(":")[0] for line in lines}


def test_escaping_can_be_switched_off(logging_server):
    server = logging_server(env={"TRITON_SERVER_ESCAPE_LOG_MESSAGES": "0"})
    server.wait_for_match(r"\] successfully loaded 'id_one'")


@pytest.mark.newer
def test_information_goes_to_standard_output_and_trouble_to_standard_error(require_server, tmp_path):
    models.write_model(tmp_path / "m", "id_one", models.identity_config("FP32", [-1]))
    models.write_model(tmp_path / "m", "broken", 'backend: "identity" max_batch_size: -1')
    run = subprocess.run(servers.command([tmp_path / "m"], servers.free_ports(3), []), capture_output=True,
                         text=True, timeout=60)
    assert run.returncode == 1
    assert run.stdout and {line[0] for line in without_tables(run.stdout.splitlines())} == {"I"}
    assert re.search(r"^\| broken +\| - +\| .*max_batch_size", run.stdout, re.M)
    lines = [line for line in run.stderr.splitlines() if DEFAULT_LINE.match(line)]
    assert lines and {line[0] for line in lines} <= {"W", "E"}


def test_the_start_is_summed_up_in_tables(logging_server, tmp_path):
    server = logging_server("--exit-timeout-secs=7", "--backend-config=identity,key=a\u2028b")
    path = servers.backends() / "identity" / "libtriton_identity.so"
    servers.wait_until(lambda: "| exit_timeout " in server.log, "the last table")
    server.wait_for_match(rf'^\| identity +\| {path} +\| {{"cmdline":{{.*"key":"a.*b".*}}}} +\|$')
    server.wait_for_match(r"^\| id_one +\| 1 +\| READY +\|$")
    for option, value in (("server_id", "triton"), ("model_control_mode", "MODE_NONE"), ("exit_timeout", "7")):
        server.wait_for_match(rf"^\| {option} +\| {value} +\|$")
    assert "\u2028" not in server.log


def is_ready(client):
    try:
        return client.is_server_ready()
    except OSError:
        return False


@pytest.mark.newer
@pytest.mark.parametrize("is_read", [True, False], ids=["until later", "ever"])
def test_nobody_waits_for_a_log_that_nobody_reads(tmp_path, is_read):
    models.write_model(tmp_path, "id_one", models.identity_config("FP32", [-1], max_batch_size=4))
    ports = servers.free_ports(3)
    command = servers.command([tmp_path], ports, ["--log-verbose=9"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    read = []
    reader = threading.Thread(target=lambda: read.append(process.stdout.read()))
    try:
        with httpclient.InferenceServerClient(f"127.0.0.1:{ports[0]}") as client:
            servers.wait_until(lambda: is_ready(client), "a server that is ready")
            tensor = httpclient.InferInput("INPUT0", [1, 1], "FP32")
            tensor.set_data_from_numpy(np.zeros((1, 1), np.float32))
            # More than a pipe and the server's queue hold.
            for _ in range(2000):
                client.infer("id_one", [tensor], request_id=200 * ".")
            assert client.is_server_ready()
        if is_read:
            reader.start()
        process.send_signal(signal.SIGTERM)
        assert process.wait(40 * servers.SLOWNESS) == 0
    finally:
        process.kill()
        process.wait()
        if is_read:
            reader.join()
        process.stdout.close()
    if is_read:
        lost = re.search(rb'^W.*\] "(\d+) messages were lost here', read[0], re.M)
        assert lost and int(lost[1]) > 0
