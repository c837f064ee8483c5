# SPDX-License-Identifier: Apache-2.0
"""Servers: their options, their life, their models."""

import dataclasses
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from harness import models

import nereid

EXPLICIT = nereid.ModelControlMode.EXPLICIT
ONES = np.ones((1, 16), dtype=np.int32)


def infer(server, model="simple"):
    (response,) = server.model(model).infer(inputs={"INPUT0": ONES, "INPUT1": ONES})
    return response


def test_a_server_says_what_it_is(server):
    assert server.live() and server.ready()
    metadata = server.metadata()
    assert metadata["name"] == "embedded" and "statistics" in metadata["extensions"]
    assert isinstance(server._ptr(), int)


def test_models_say_what_they_are(server):
    model = server.model("simple")
    assert model.ready() and not server.model("nothing").ready()
    assert [tensor["name"] for tensor in model.metadata()["inputs"]] == ["INPUT0", "INPUT1"]
    assert model.config()["max_batch_size"] == 8
    assert model.batch_properties() == nereid.ModelBatchFlag.FIRST_DIM
    assert server.model("repeat").batch_properties() == nereid.ModelBatchFlag.UNKNOWN
    assert model.transaction_properties() == nereid.ModelTxnPropertyFlag.ONE_TO_ONE
    before = model.statistics()["model_stats"][0]["inference_count"]
    infer(server)
    assert model.statistics()["model_stats"][0]["inference_count"] == before + 1
    for ask in (nereid.Model.metadata, nereid.Model.config, nereid.Model.statistics, nereid.Model.batch_properties):
        with pytest.raises(nereid.TritonError, match="nothing"):
            ask(server.model("nothing"))


def test_the_index_is_a_dictionary(server):
    index = server.models()
    assert index["simple", 1].state == "READY" and index["simple"].version == -1
    assert "simple" in index and ("simple", 1) in index and "nothing" not in index
    assert index.get("nothing") is None and index.get("simple").name == "simple"
    for key in ("nothing", ("simple", 2)):
        with pytest.raises(KeyError):
            index[key]


def test_a_server_that_does_not_run_can_do_nothing():
    server = nereid.Server()
    for ask in (
        server.ready,
        server.models,
        server.metrics,
        server.stop,
        lambda: server.model("a"),
        lambda: server.load("a"),
    ):
        with pytest.raises(nereid.InvalidArgumentError, match="Server not started"):
            ask()


def test_a_server_starts_once_and_may_start_again(start):
    server = start()
    with pytest.raises(nereid.InvalidArgumentError, match="Server already started"):
        server.start()
    model = server.model("simple")
    server.stop()
    with pytest.raises(nereid.TritonError):
        list(model.infer(inputs={"INPUT0": ONES, "INPUT1": ONES}))
    assert infer(server.start(wait_until_ready=True, timeout=30)).final


def test_what_is_wrong_with_a_start_is_told(tmp_path):
    with pytest.raises(nereid.InvalidArgumentError, match="Model repository must be specified"):
        nereid.Server(model_repository=None).start()
    with pytest.raises(nereid.InternalError):
        nereid.Server(model_repository=str(tmp_path / "nowhere")).start()
    for wrong in ({"server_id": 1}, {"model_repository": 1}, {"exit_timeout": "long"}, {"log_info": "yes"}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            nereid.Server(**{"model_repository": str(tmp_path), **wrong}).start()
    with pytest.raises(TypeError):
        nereid.Server(no_such_option=1)


def test_every_option_is_taken(tmp_path, start, repository):
    log = tmp_path / "log"
    options = nereid.Options(
        model_repository=[str(repository)],
        server_id="all",
        model_control_mode=EXPLICIT,
        startup_models=["identity"],
        strict_model_config=True,
        rate_limiter_mode=nereid.RateLimitMode.EXEC_COUNT,
        rate_limiter_resources=[nereid.RateLimiterResource("R", 4, 0)],
        pinned_memory_pool_size=1 << 20,
        cuda_memory_pool_sizes={0: 1 << 20},
        cache_config={"local": {"size": 1 << 20}},
        min_supported_compute_capability=7.5,
        exit_on_error=False,
        strict_readiness=False,
        exit_timeout=5,
        buffer_manager_thread_count=1,
        model_load_thread_count=2,
        model_load_retry_count=1,
        model_namespacing=False,
        enable_peer_access=False,
        log_file=str(log),
        log_verbose=1,
        log_format=nereid.LogFormat.ISO8601,
        metrics=True,
        gpu_metrics=False,
        cpu_metrics=False,
        metrics_interval=1000,
        model_load_device_limits=[nereid.ModelLoadDeviceLimit(nereid.InstanceGroupKind.GPU, 0, 0.5)],
        backend_configuration={"onnxruntime": {"default-max-batch-size": "4"}},
        host_policies={"cpu_0": {"cpu-cores": "0"}},
        metrics_configuration={"": {"summary_latencies": "true"}},
        model_config_name="small",
    )
    set_here = {field.name for field in dataclasses.fields(options)}
    assert set_here >= {"cache_directory", "backend_directory", "repo_agent_directory"}
    with nereid.Server(options, server_id="all of them") as server:
        assert server.metadata()["name"] == "all of them"
        assert server.model("identity").ready()
        nereid.LogMessage(nereid.LogLevel.WARN, "from the program")
    text = log.read_text()
    assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ W .*test_server\.py:\d+\].*from the program", text, re.M), text
    start(log_format=nereid.LogFormat.DEFAULT)  # the log is the process's: back to what it was


def test_models_come_and_go(start, repository):
    server = start(model_control_mode=EXPLICIT, startup_models=["identity"])
    assert server.models()["simple", -1].state is None
    assert {model.name for model in server.models(exclude_not_ready=True).values()} == {"identity"}
    model = server.load("simple")
    assert model.ready() and infer(server).final
    kept = infer(server).outputs["OUTPUT0"]
    server.unload("simple", wait_until_unloaded=True, timeout=30)
    assert not model.ready() and kept.to_list()[0][0] == 2
    with pytest.raises(nereid.TritonError):
        server.load("nothing")
    config = {"backend": "identity", "max_batch_size": 3, "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}  # fmt: skip
    assert server.load("identity", {"config": json.dumps(config)}).config()["max_batch_size"] == 3
    onnx = (repository / "simple" / "1" / "model.onnx").read_bytes()
    contents = {"config": json.dumps({"backend": "onnxruntime"}), "file:1/model.onnx": onnx}
    assert server.load("uploaded", contents).ready() and infer(server, "uploaded").final
    with pytest.raises(nereid.InvalidArgumentError, match="'config'"):
        server.load("identity", {"config": {"not": "JSON"}})
    server.unload(server.model("identity"), unload_dependents=True, wait_until_unloaded=True)


def test_repositories_come_and_go(start, tmp_path):
    server = start(model_control_mode=EXPLICIT)
    other = tmp_path / "other"
    models.write_model(other, "folder", models.identity_config("FP32", [-1]))
    server.register_model_repository(str(other), {"folder": "renamed"})
    assert server.load("renamed").ready()
    server.unregister_model_repository(str(other))
    with pytest.raises(nereid.TritonError):
        server.unregister_model_repository(str(other))


def test_polling_finds_new_models(start, tmp_path):
    models.write_model(tmp_path, "first", models.identity_config("FP32", [-1]))
    server = start(model_repository=str(tmp_path), model_control_mode=nereid.ModelControlMode.POLL)
    models.write_model(tmp_path, "second", models.identity_config("FP32", [-1]))
    server.poll_model_repository()
    assert server.model("second").ready()
    with pytest.raises(nereid.UnavailableError):
        server.load("first")


def test_metrics_of_the_server_and_of_the_program(server):
    infer(server)
    page = server.metrics()
    assert 'nv_inference_request_success{model="simple",version="1"}' in page
    family = nereid.MetricFamily(nereid.MetricKind.COUNTER, "program_events", "What happened")
    events = nereid.Metric(family, {"kind": "good"})
    events.increment(2)
    events.increment(0.5)
    assert events.value == 2.5 and events.kind == nereid.MetricKind.COUNTER
    with pytest.raises(nereid.TritonError):
        events.set_value(1)
    level = nereid.Metric(nereid.MetricFamily(nereid.MetricKind.GAUGE, "program_level", "How high"))
    level.set_value(7)
    level.increment(-3)
    assert level.value == 4
    sizes = nereid.Metric(nereid.MetricFamily(nereid.MetricKind.HISTOGRAM, "program_sizes", "How big"), buckets=[1, 10])
    sizes.observe(5)
    page = server.metrics()
    assert 'program_events{kind="good"} 2.5' in page and "program_level 4" in page
    assert 'program_sizes_bucket{le="10"} 1' in page
    del events, level, sizes, family
    assert "program_" not in server.metrics()


def test_a_program_that_stops_nothing_ends_well(repository):
    program = f"""
import sys
sys.path[:] = {sys.path!r}
import threading, numpy, nereid
server = nereid.Server(model_repository={str(repository)!r}).start()
model = server.model("slow")
kept = [model.infer(inputs={{"INPUT0": numpy.array([1], dtype=numpy.int32)}}) for _ in range(2)]
threading.Thread(target=lambda: list(model.infer(inputs={{"INPUT0": numpy.array([1], dtype=numpy.int32)}})), daemon=True).start()
del server
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_waiting_program_can_be_interrupted(repository):
    program = f"""
import sys
sys.path[:] = {sys.path!r}
import os, signal, threading, time, numpy, nereid
signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever runs the tests may ignore
server = nereid.Server(model_repository={str(repository)!r}).start()
inputs = {{"IN": numpy.array([1], dtype=numpy.int32), "DELAY": numpy.array([3000], dtype=numpy.uint32), "WAIT": numpy.zeros(1, dtype=numpy.uint32)}}
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    list(server.model("repeat").infer(inputs=inputs))
except KeyboardInterrupt:
    assert time.monotonic() - began < 2.5
    print("interrupted", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "interrupted"), done.stderr


PYTHON_MODEL = b"""
import sys
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        prefix = sys.prefix.encode()
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() * 2),
                 pb_utils.Tensor("PREFIX", np.array([prefix], dtype=object))]
            )
            for request in requests
        ]
"""
PYTHON_CONFIG = """
backend: "python"
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "PREFIX" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def test_models_in_python_run_under_this_programs_interpreter(start, tmp_path):
    models.write_model(tmp_path, "twice", PYTHON_CONFIG, {"1": {"model.py": PYTHON_MODEL}})
    server = start(model_repository=str(tmp_path))
    (response,) = server.model("twice").infer(inputs={"IN": np.array([1, 2], dtype=np.int32)})
    assert response.outputs["OUT"].to_list() == [2, 4]
    assert response.outputs["PREFIX"].to_string_array().tolist() == [sys.prefix]
