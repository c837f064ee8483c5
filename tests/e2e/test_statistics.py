# SPDX-License-Identifier: Apache-2.0
"""The statistics extension: the fields of its document, over both protocols, and what they count."""

import json
import time
import urllib.error
import urllib.request

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from google.protobuf import json_format
from harness import models
from harness import server as servers
from harness.clients import Client

DURATION = {"count", "ns"}
INFERENCE = ["success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
             "cache_hit", "cache_miss"]
FIELDS = ["name", "version", "last_inference", "inference_count", "execution_count", "inference_stats",
          "response_stats", "batch_stats", "memory_usage"]
COMPUTE = ["compute_input", "compute_infer", "compute_output"]


@pytest.fixture
def own_server(start_server, tmp_path):
    def add(name, extra="", versions=None):
        models.write_model(tmp_path / "m", name,
                           models.identity_config("FP32", [-1], max_batch_size=8, extra=extra), versions)

    add("plain")
    add("versions", "version_policy { all { } }\n", {"1": {}, "3": {}})
    add("cached", "response_cache { enable: true }\n")
    add("slow", 'dynamic_batching { }\nparameters { key: "execute_delay_ms" value { string_value: "30" } }\n')
    return start_server(tmp_path / "m", args=[
        f"--cache-directory={servers.backends().parent / 'caches'}", "--cache-config=local,size=1048576"])


def by_http(server, path):
    with urllib.request.urlopen(f"http://{server.http}/v2/models{path}/stats", timeout=10) as reply:
        return json.load(reply)["model_stats"]


def by_grpc(server, name="", version=""):
    with grpcclient.InferenceServerClient(server.grpc) as client:
        reply = client.get_inference_statistics(name, version)
    return [json_format.MessageToDict(model, preserving_proto_field_name=True,
                                      always_print_fields_with_no_presence=True)
            for model in reply.model_stats]


def infer(server, model, batch=1, kind="http", version="", value=0.0):
    client = Client(kind, server)
    tensor = np.full((batch, 2), value, np.float32)
    client.infer(model, [client.input("INPUT0", tensor, "FP32")], model_version=version)
    client.close()


def numbers(value):
    """As HTTP prints them: gRPC's JSON has 64-bit integers as texts."""
    if isinstance(value, dict):
        return {k: v if k in ("name", "version") else numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [numbers(v) for v in value]
    return int(value) if isinstance(value, str) and value.isdigit() else value


def test_the_fields_are_those_of_the_document(own_server):
    infer(own_server, "plain", 3)
    (stats,) = by_http(own_server, "/plain")
    assert list(stats) == FIELDS
    assert list(stats["inference_stats"]) == INFERENCE
    assert all(set(d) == DURATION for d in stats["inference_stats"].values())
    assert [list(b) for b in stats["batch_stats"]] == [["batch_size", *COMPUTE]]
    assert stats["response_stats"] == {} and stats["memory_usage"] == []
    assert abs(stats["last_inference"] / 1000 - time.time()) < 60


def test_both_protocols_say_the_same(own_server):
    infer(own_server, "plain", 3)
    infer(own_server, "plain", 1, "grpc")
    (http,) = by_http(own_server, "/plain")
    (grpc,) = by_grpc(own_server, "plain")
    assert numbers(grpc) == http


def test_counts_of_requests_and_batches(own_server):
    for batch in (1, 3, 3):
        infer(own_server, "plain", batch)
    (stats,) = by_http(own_server, "/plain")
    assert (stats["inference_count"], stats["execution_count"]) == (7, 3)
    counts = {name: d["count"] for name, d in stats["inference_stats"].items()}
    assert counts == {"success": 3, "fail": 0, "queue": 3, "cache_hit": 0, "cache_miss": 0,
                      **dict.fromkeys(COMPUTE, 3)}
    assert [(b["batch_size"], b["compute_infer"]["count"]) for b in stats["batch_stats"]] == [(1, 1), (3, 2)]


def test_failed_requests_only_fail(own_server):
    client = Client("http", own_server)
    with pytest.raises(Exception, match="data-type"):
        client.infer("plain", [client.input("INPUT0", np.zeros((1, 2), np.int32), "INT32")])
    client.close()
    counts = {n: d["count"] for n, d in by_http(own_server, "/plain")[0]["inference_stats"].items()}
    assert counts.pop("fail") == 1
    assert set(counts.values()) == {0}


def test_durations_are_consistent(own_server):
    """What a request takes in the queue and in its execution is part of what it takes at all."""
    for model in ("plain", "slow"):
        for kind in ("http", "grpc"):
            infer(own_server, model, kind=kind)
    for model in ("plain", "slow"):
        (stats,) = by_http(own_server, f"/{model}")
        ns = {name: d["ns"] for name, d in stats["inference_stats"].items()}
        assert 0 < ns["queue"] + sum(ns[part] for part in COMPUTE) <= ns["success"]
        for part in COMPUTE:
            assert sum(b[part]["ns"] for b in stats["batch_stats"]) == ns[part]
    assert ns["compute_input"] + ns["compute_infer"] + ns["compute_output"] >= 2 * 30_000_000


def test_versions_are_told_apart(own_server):
    infer(own_server, "versions", version="1")
    infer(own_server, "versions", version="1")
    infer(own_server, "versions")
    assert [(s["version"], s["inference_count"]) for s in by_http(own_server, "/versions")] == [("1", 2), ("3", 1)]
    assert [s["inference_count"] for s in by_http(own_server, "/versions/versions/1")] == [2]
    assert [s["version"] for s in by_grpc(own_server, "versions", "3")] == ["3"]
    names = {(s["name"], s["version"]) for s in by_http(own_server, "")}
    assert names == {("plain", "1"), ("versions", "1"), ("versions", "3"), ("cached", "1"), ("slow", "1")}
    assert {(s["name"], s["version"]) for s in by_grpc(own_server)} == names


def test_hits_and_misses(own_server):
    for value in (1.0, 1.0, 2.0):
        infer(own_server, "cached", value=value)
    (stats,) = by_http(own_server, "/cached")
    counts = {name: d["count"] for name, d in stats["inference_stats"].items()}
    assert counts == {"success": 3, "fail": 0, "queue": 3, "cache_hit": 1, "cache_miss": 2,
                      **dict.fromkeys(COMPUTE, 2)}
    assert stats["inference_stats"]["cache_hit"]["ns"] > 0
    assert stats["inference_count"] == 2


@pytest.mark.parametrize("path, error", [
    ("/none", "requested model 'none' is not available"),
    ("/plain/versions/9", "requested model version is not available for model 'plain'"),
])
def test_what_is_not_there(own_server, path, error):
    with pytest.raises(urllib.error.HTTPError) as caught:
        by_http(own_server, path)
    assert caught.value.code == 400
    assert json.load(caught.value) == {"error": error}


@pytest.mark.newer
def test_memory_that_a_backend_reports(start_server, tmp_path):
    library = servers.build_folder() / "tests" / "backends" / "libtriton_corners.so"
    if not library.exists():
        pytest.skip("the tests' backend is not built")
    folder = models.write_model(
        tmp_path / "m", "reports",
        'backend: "corners"\n'
        f"input [ {models.tensor_config('SIZE', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('BYTES', 'UINT8', [-1])} ]\n"
        "instance_group [ { kind: KIND_CPU count: 3 } ]\n")
    (folder / "libtriton_corners.so").symlink_to(library)
    server = start_server(tmp_path / "m", args=["--model-control-mode=explicit", "--load-model=reports"])

    def check(instances):
        (http,), (grpc,) = by_http(server, "/reports"), by_grpc(server, "reports")
        expected = [{"type": "CPU", "id": 0, "byte_size": 10 * instances}, {"type": "GPU", "id": 0, "byte_size": 1000}]
        assert http["memory_usage"] == expected and numbers(grpc["memory_usage"]) == expected
        labels = 'memory_id="0",memory_type="%s",model="reports",version="1"'
        with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
            lines = [line for line in reply.read().decode().splitlines() if line.startswith("nereid_model_memory")]
        assert lines == [f"nereid_model_memory_bytes{{{labels % use['type']}}} {use['byte_size']}" for use in expected]

    check(3)
    # One instance less, in place, holds so much less.
    config = folder / "config.pbtxt"
    config.write_text(config.read_text().replace("count: 3", "count: 2"))
    with httpclient.InferenceServerClient(server.http) as client:
        client.load_model("reports")
    check(2)


@pytest.mark.newer  # Triton's backend reports nothing
@pytest.mark.parametrize("is_external", [False, True])
def test_the_weights_of_an_onnx_model_are_counted_once(is_external, start_server, tmp_path):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the ONNX Runtime backend is not built")
    model = models.onnx_mlp((64, 512, 512, 8))
    weights = sum(4 * np.prod(i.dims, dtype=int) for i in model.graph.initializer)
    folder = models.write_model(
        tmp_path / "m", "mlp",
        'platform: "onnxruntime_onnx"\ninstance_group [ { kind: KIND_CPU count: 3 } ]\n',
        {"1": {} if is_external else {"model.onnx": model}})
    if is_external:
        onnx.save(model, folder / "1" / "model.onnx", save_as_external_data=True, location="weights")
    server = start_server(tmp_path / "m", args=["--model-control-mode=explicit", "--load-model=mlp"])

    (stats,) = by_http(server, "/mlp")
    (use,) = stats["memory_usage"]  # of all instances together, which share a session
    assert (use["type"], use["id"]) == ("CPU", 0)
    assert weights <= use["byte_size"] < 1.05 * weights + 10_000
    assert server.scrape()["nereid_model_memory_bytes", "mlp"] == use["byte_size"]
    with httpclient.InferenceServerClient(server.http) as client:
        client.unload_model("mlp")
        servers.wait_until(lambda: not client.is_model_ready("mlp"), "the model is gone")
    assert ("nereid_model_memory_bytes", "mlp") not in server.scrape()
