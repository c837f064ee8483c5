# SPDX-License-Identifier: Apache-2.0
"""Warm-up (docs/scheduling.md, W-1 to W-9)."""

import concurrent.futures
import re

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import models, python_models, stateful
from harness import server as servers

VERBOSE = ["--log-verbose=1"]


def sample(name, data, datatype="TYPE_FP32", batch_size=1, count=0, dims="[ 2 ]"):
    return (f'model_warmup [ {{ name: "{name}" batch_size: {batch_size} count: {count} '
            f'inputs {{ key: "INPUT0" value {{ data_type: {datatype} dims: {dims} {data} }} }} }} ]\n')


def write(folder, name, extra, datatype="FP32", max_batch_size=4, instances=1, dims=(2,)):
    config = models.identity_config(datatype, dims, max_batch_size=max_batch_size, extra=extra)
    config = config.replace("count: 1 }", f"count: {instances} }}")
    return models.write_model(folder, name, config)


def runs(server, model, name):
    return sum(f"model '{model}' instance" in line and f"warmup sample '{name}'" in line
               for line in server.log.splitlines())


def wait_for_runs(server, model, name, count):
    """The lines of the log are written a moment after what they tell of."""
    servers.wait_until(lambda: runs(server, model, name) == count, f"{count} runs of sample {name}")


def test_w1_every_instance_runs_every_sample_before_the_model_is_ready(start_server, tmp_path):
    extra = sample("zeros", "zero_data: true", count=3) + sample("random", "random_data: true")
    write(tmp_path / "m", "warm", extra, instances=2)
    server = start_server(tmp_path / "m", args=VERBOSE)
    wait_for_runs(server, "warm", "zeros", 6)
    wait_for_runs(server, "warm", "random", 2)
    server.wait_for_log("successfully loaded 'warm'")
    lines = server.log.splitlines()
    ready = next(i for i, line in enumerate(lines) if "successfully loaded 'warm'" in line)
    assert all(i < ready for i, line in enumerate(lines) if "warmup sample" in line)


def test_w2_a_batch_is_requests_of_one(start_server, tmp_path):
    # The executed batch must fit into max_batch_size: five requests of one in a single execution.
    write(tmp_path / "m", "warm", sample("five", "zero_data: true", batch_size=5), max_batch_size=8)
    write(tmp_path / "m", "none", sample("none", "zero_data: true", batch_size=0))
    server = start_server(tmp_path / "m", args=VERBOSE)
    wait_for_runs(server, "warm", "five", 1)
    server.wait_for_log("successfully loaded 'none'")
    assert runs(server, "none", "none") == 0


def test_w3_data_from_a_file(start_server, tmp_path):
    folder = write(tmp_path / "m", "warm", sample("file", 'input_data_file: "two"'))
    (folder / "warmup").mkdir()
    (folder / "warmup" / "two").write_bytes(np.array([1, 2], np.float32).tobytes())
    text = write(tmp_path / "m", "text",
                 sample("text", 'input_data_file: "words"', "TYPE_STRING", dims="[ 1 ]"),
                 "BYTES", dims=(1,))
    (text / "warmup").mkdir()
    (text / "warmup" / "words").write_bytes(b"\x03\0\0\0abc")
    write(tmp_path / "m", "empty", sample("random", "random_data: true", "TYPE_STRING", dims="[ 3 ]"),
          "BYTES", dims=(3,))
    server = start_server(tmp_path / "m", args=VERBOSE)
    wait_for_runs(server, "warm", "file", 1)
    wait_for_runs(server, "text", "text", 1)
    wait_for_runs(server, "empty", "random", 1)


@pytest.mark.parametrize("extra, reason", [
    (sample("short", 'input_data_file: "short"'),
     "warmup setting expects 8 bytes, but the data provided from short"),
    (sample("open", "zero_data: true", dims="[ -1 ]"),
     "warmup setting expects all variable-size dimensions are specified for input 'INPUT0'"),
    (sample("nothing", ""), "warmup setting expects input 'INPUT0' to have input_data_type set"),
])
def test_w4_data_that_cannot_be_made_fails_the_load(start_server, tmp_path, extra, reason):
    folder = write(tmp_path / "m", "warm", extra)
    (folder / "warmup").mkdir()
    (folder / "warmup" / "short").write_bytes(b"1234")
    write(tmp_path / "m", "other", "")
    server = start_server(
        tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"])
    client = httpclient.InferenceServerClient(server.http)
    index = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert index["warm"]["state"] == "UNAVAILABLE"
    assert reason in index["warm"]["reason"]
    assert index["other"]["state"] == "READY"


FAILS = """
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("not today")) for _ in requests]
"""
GIVES_BACK = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return [None] * len(requests)
"""


def load_python(start_server, folder, code, extra):
    """The entry of the index of a Python model with this warm-up, and its server."""
    if not servers.has_backend("python"):
        pytest.skip("no backend python here")
    python_models.write(folder, "warm", code, dims=(2,), max_batch_size=4, extra=extra)
    server = start_server(folder, args=["--exit-on-error=false", "--strict-readiness=false", *VERBOSE],
                          env=python_models.ENVIRONMENT)
    (entry,) = httpclient.InferenceServerClient(server.http).get_model_repository_index()
    return entry, server


def test_w4_a_sample_that_fails_fails_the_load(start_server, tmp_path):
    entry, _ = load_python(start_server, tmp_path / "m", FAILS, sample("vain", "zero_data: true"))
    assert entry["state"] == "UNAVAILABLE"
    assert "failed to run warmup sample 'vain': not today" in entry["reason"]


def test_w4_a_model_that_is_not_iterative_cannot_give_a_sample_back(start_server, tmp_path):
    entry, _ = load_python(start_server, tmp_path / "m", GIVES_BACK, sample("vain", "zero_data: true"))
    assert entry["state"] == "UNAVAILABLE"
    assert "not configured to handle such a flag" in entry["reason"]


def test_w7_a_sample_that_is_given_back_was_executed(start_server, tmp_path):
    extra = sample("once", "zero_data: true", batch_size=3, count=2) + "sequence_batching { iterative_sequence: true }\n"
    entry, server = load_python(start_server, tmp_path / "m", GIVES_BACK, extra)
    assert entry["state"] == "READY"
    wait_for_runs(server, "warm", "once", 2)


def two_inputs(*names):
    inputs = "".join(f'inputs {{ key: "{name}" value {{ data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }} }} '
                     for name in names)
    return f'model_warmup [ {{ name: "these" batch_size: 1 {inputs} }} ]\n'


@pytest.mark.newer
@pytest.mark.parametrize("extra, reason", [
    (sample("integers", "zero_data: true", "TYPE_INT32"),
     "warmup sample 'integers': inference input 'INPUT0' data-type is 'INT32', but model 'warm' expects 'FP32'"),
    (sample("wide", "random_data: true", dims="[ 3 ]"),
     "warmup sample 'wide': unexpected shape for input 'INPUT0' for model 'warm'. Expected [-1,2], got [1,3]"),
    (sample("deep", "zero_data: true", dims="[ 1, 2 ]"), "warmup sample 'deep': unexpected shape for input 'INPUT0'"),
    (two_inputs("INPUT0", "OTHER"), "warmup sample 'these': expected 1 inputs but got 2 inputs for model 'warm'"),
    (two_inputs("OTHER"), "warmup sample 'these': unexpected inference input 'OTHER' for model 'warm'"),
    (two_inputs(), "missing required input(s) ['INPUT0']"),
])
def test_w8_a_sample_that_no_client_could_send_fails_the_load(start_server, tmp_path, extra, reason):
    write(tmp_path / "m", "warm", extra)
    server = start_server(
        tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"])
    client = httpclient.InferenceServerClient(server.http)
    (entry,) = client.get_model_repository_index()
    assert entry["state"] == "UNAVAILABLE"
    assert reason in entry["reason"]


@pytest.mark.newer
def test_w8_texts_in_a_file_are_checked_as_a_clients_are(start_server, tmp_path):
    folder = write(tmp_path / "m", "warm",
                   sample("words", 'input_data_file: "words"', "TYPE_STRING", dims="[ 2 ]"), "BYTES")
    (folder / "warmup").mkdir()
    (folder / "warmup" / "words").write_bytes(b"\x03\0\0\0abc")
    server = start_server(
        tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"])
    (entry,) = httpclient.InferenceServerClient(server.http).get_model_repository_index()
    assert "warmup sample 'words': expected 2 string elements for inference input 'INPUT0'" in entry["reason"]


def test_w5_warm_up_is_in_no_statistic(start_server, tmp_path):
    write(tmp_path / "m", "warm", sample("zeros", "zero_data: true", batch_size=2, count=3))
    server = start_server(tmp_path / "m")
    client = httpclient.InferenceServerClient(server.http)
    (statistics,) = client.get_inference_statistics("warm")["model_stats"]
    assert statistics["inference_count"] == 0
    assert statistics["execution_count"] == 0
    assert statistics["batch_stats"] == []
    assert ("nereid_batches_closed_total", "warm") not in server.scrape()


@pytest.mark.skipif(not servers.has_backend("onnxruntime"), reason="needs ONNX Runtime")
def test_w3_controls_of_a_sequence_model_are_inputs_like_others(start_server, tmp_path):
    inputs = "".join(
        f'inputs {{ key: "{name}" value {{ data_type: TYPE_INT32 dims: [ 1 ] zero_data: true }} }} '
        for name in ("INPUT", "START", "READY"))
    extra = f'model_warmup [ {{ name: "controls" batch_size: 1 {inputs} }} ]\n'
    stateful.write(tmp_path / "m", "warm", stateful.onnx_controls(True),
                   controls=[stateful.START, stateful.READY], extra=extra)
    server = start_server(tmp_path / "m", args=VERBOSE)
    wait_for_runs(server, "warm", "controls", 1)


ISOLATED = 'parameters { key: "isolation" value: { string_value: "process" } }\n'


@pytest.mark.newer
@pytest.mark.skipif(not servers.has_backend("onnxruntime"), reason="needs ONNX Runtime")
@pytest.mark.parametrize("extra", ["", ISOLATED], ids=["here", "isolated"])
@pytest.mark.parametrize("given", ["INPUT", "INPUT START STATE_IN"], ids=["first", "given"])
def test_w9_a_sample_starts_a_sequence_of_its_own(start_server, tmp_path, given, extra):
    inputs = "".join(
        f'inputs {{ key: "{name}" value {{ data_type: TYPE_INT32 dims: [ 1 ] zero_data: true }} }} '
        for name in given.split())
    extra += f'model_warmup [ {{ name: "states" batch_size: 3 count: 2 {inputs} }} ]\n'
    has_start = "START" in given
    stateful.write(tmp_path / "m", "warm", stateful.onnx_accumulate("INT32", True, has_start),
                   controls=[stateful.START] if has_start else [],
                   state=stateful.state_config("INT32", [1]), shows_state=[1], extra=extra)
    server = start_server(tmp_path / "m", args=VERBOSE)
    wait_for_runs(server, "warm", "states", 2)
    server.wait_for_log("successfully loaded 'warm'")
    assert "State configuration is missing" not in server.log
    # Nothing of the samples is left in the states of clients.
    client = httpclient.InferenceServerClient(server.http)
    tensor = httpclient.InferInput("INPUT", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[5]], np.int32))
    result = client.infer("warm", [tensor], sequence_id=1, sequence_start=True, sequence_end=True)
    assert result.as_numpy("STATE_OUT").tolist() == [[5]]


@pytest.mark.newer
def test_w6_an_unload_gives_up_a_load_in_progress(start_server, tmp_path):
    # 100,000 runs of 50 ms each.
    extra = ('parameters { key: "execute_delay_ms" value: { string_value: "50" } }\n'
             + sample("long", "zero_data: true", count=100_000))
    write(tmp_path / "m", "warm", extra)
    server = start_server(tmp_path / "m", args=[*VERBOSE, "--model-control-mode=explicit"])

    def load():
        with httpclient.InferenceServerClient(server.http, network_timeout=300) as client:
            client.load_model("warm")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        loading = pool.submit(load)
        server.wait_for_log("is running warmup sample 'long'")
        client = httpclient.InferenceServerClient(server.http, network_timeout=300)
        client.unload_model("warm")
        with pytest.raises(httpclient.InferenceServerException, match="given up"):
            loading.result(timeout=60)
    assert not client.is_model_ready("warm")


@pytest.mark.newer
def test_w6_a_load_that_was_given_up_says_so_whoever_comes_next(start_server, tmp_path):
    # The unloads that wait for the load are all let go at once, and race for what it left behind.
    extra = ('parameters { key: "execute_delay_ms" value: { string_value: "5" } }\n'
             + sample("long", "zero_data: true", count=100_000))
    write(tmp_path / "m", "warm", extra)
    server = start_server(tmp_path / "m", args=["--model-control-mode=explicit"])
    unloaders = 24

    def call(change):
        with httpclient.InferenceServerClient(server.http, network_timeout=300) as client:
            getattr(client, f"{change}_model")("warm")

    def state(client):
        (entry,) = client.get_model_repository_index()
        return entry.get("state")

    client = httpclient.InferenceServerClient(server.http)
    with concurrent.futures.ThreadPoolExecutor(unloaders + 1) as pool:
        for _ in range(20):
            loading = pool.submit(call, "load")
            servers.wait_until(lambda: state(client) == "LOADING", "a load in progress")
            unloads = [pool.submit(call, "unload") for _ in range(unloaders)]
            with pytest.raises(httpclient.InferenceServerException, match="given up"):
                loading.result(timeout=60)
            for unload in unloads:
                unload.result(timeout=60)


@pytest.mark.newer
@pytest.mark.parametrize("extra, error", [
    ("instance_group [ { count: 2147483647 } ]", "2147483647 instances, the limit is 4096"),
    (sample("long", "zero_data: true", count=4_000_000_000), "count 4000000000, the limit is 100000"),
])
def test_what_a_configuration_asks_for_is_bounded(start_server, tmp_path, extra, error):
    config = models.identity_config("FP32", (2,), max_batch_size=4)
    config = re.sub(r"instance_group.*\n", "", config) + extra
    models.write_model(tmp_path / "m", "much", config)
    server = start_server(tmp_path / "m", args=["--model-control-mode=explicit"])
    before = server.resident_bytes()
    with pytest.raises(httpclient.InferenceServerException):
        httpclient.InferenceServerClient(server.http).load_model("much")
    server.wait_for_log(error)
    assert server.resident_bytes() < before + (64 << 20)
