# SPDX-License-Identifier: Apache-2.0
"""Every family of the metrics page: name, type and labels, and the flags that decide which there are."""

import re
import urllib.request

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import Client

MODEL = ("model", "version")
# The families that dashboards made for Triton know, as its core/src/metrics.cc names them.
ALWAYS = {
    "nv_inference_request_success": ("counter", MODEL),
    "nv_inference_request_failure": ("counter", ("model", "reason", "version")),
    "nv_inference_count": ("counter", MODEL),
    "nv_inference_exec_count": ("counter", MODEL),
    "nv_inference_pending_request_count": ("gauge", MODEL),
    "nv_model_load_duration_secs": ("gauge", MODEL),
    "nv_pinned_memory_pool_total_bytes": ("gauge", ()),
    "nv_pinned_memory_pool_used_bytes": ("gauge", ()),
    # Of the identity backend, which makes it through the C API.
    "input_byte_size_counter": ("counter", MODEL),
}
COUNTERS = {f"nv_inference_{part}_duration_us": ("counter", MODEL)
            for part in ("request", "queue", "compute_input", "compute_infer", "compute_output")}
CPU = {name: ("gauge", ()) for name in
       ("nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes")}
# Of the server, not of a model.
OURS = {"nereid_budget_limit": ("gauge", None), "nereid_budget_used": ("gauge", None),
        "nereid_budget_refusals_total": ("counter", None),
        "nereid_stuck_threads": ("gauge", None), "nereid_watchdog_alarms_total": ("counter", None),
        "nereid_server_live": ("gauge", ()), "nereid_server_ready": ("gauge", ()),
        "nereid_queue_oldest_seconds": ("gauge", MODEL), "nereid_model_requests_in_flight": ("gauge", MODEL),
        "nereid_model_request_bytes_in_flight": ("gauge", MODEL),
        "nereid_execution_seconds_total": ("counter", MODEL), "nereid_model_instances": ("gauge", MODEL),
        "nereid_model_ready": ("gauge", MODEL), "nereid_model_versions": ("gauge", None),
        "process_cpu_seconds_total": ("counter", ()),
        **{f"process_{name}": ("gauge", ()) for name in
           ("resident_memory_bytes", "virtual_memory_bytes", "threads", "start_time_seconds", "open_fds", "max_fds")}}
QUANTILE = ("model", "version", "quantile")
SUMMARIES = {f"nv_inference_{part}_summary_us": ("summary", QUANTILE)
             for part in ("request", "queue", "compute_input", "compute_infer", "compute_output")}
BUCKET = ("model", "version", "le")
HISTOGRAMS = {"nv_inference_first_response_histogram_ms": ("histogram", BUCKET)}
CACHE = {name: ("counter", MODEL) for name in
         ("nv_cache_num_hits_per_model", "nv_cache_num_misses_per_model",
          "nv_cache_hit_duration_per_model", "nv_cache_miss_duration_per_model")}
CACHE_SUMMARIES = {name: ("summary", QUANTILE) for name in
                   ("nv_cache_hit_summary_per_model", "nv_cache_miss_summary_per_model")}
# Of the local cache, which makes them through the C API.
LOCAL_CACHE = {name: ("gauge", ()) for name in
               ("nv_cache_util", "nv_cache_num_entries", "nv_cache_num_hits", "nv_cache_num_misses",
                "nv_cache_num_lookups", "nv_cache_num_evictions", "nv_cache_lookup_duration",
                "nv_cache_insertion_duration")}
# Of the dashboard that Triton's repository carries for Kubernetes. Those of GPUs need one.
DASHBOARD = {
    "nv_inference_count", "nv_inference_request_failure", "nv_inference_request_success",
    "nv_inference_queue_duration_us", "nv_cpu_memory_used_bytes", "nv_cpu_utilization",
    "nv_inference_compute_infer_duration_us",
}


@pytest.fixture
def page(start_server, tmp_path):
    repository = tmp_path / "m"

    def extra(text):
        return models.identity_config("FP32", [-1], max_batch_size=8, extra=text)

    models.write_model(repository, "id", extra(""))
    models.write_model(repository, "tagged", extra('metric_tags { key: "team" value: "a\\"b" }\n'))

    def start(*args, cached=False):
        if cached:
            models.write_model(repository, "cached", extra("response_cache { enable: true }\n"))
            args += (f"--cache-directory={servers.backends().parent / 'caches'}",
                     "--cache-config=local,size=1048576")
        return start_server(repository, args=args)

    start.repository = repository
    return start


def text_of(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
        return reply.read().decode()


def families(server, model="id"):
    """{name: (type, labels)}, the labels of one model; every line must belong to a described family."""
    found = {}
    name = None
    for line in text_of(server).splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert len(line.split(maxsplit=3)) == 4, line
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name and name not in found
            found[name] = [line.split()[3], None]
        else:
            series, labels = re.match(r"^([a-z_]\w*)(?:\{(.*)\})? \S+$", line).groups()
            assert series in (name, *(name + end for end in ("_count", "_sum", "_bucket"))), line
            names = tuple(re.findall(r'(\w+)="', labels or ""))
            if f'model="{model}"' in (labels or f'model="{model}"'):
                found[name][1] = max(found[name][1] or (), names, key=len)
    return {name: tuple(entry) for name, entry in found.items()}


def values(server, family):
    return {labels: float(value) for labels, value in
            re.findall(rf"^{family}(?:\{{(.*)\}})? (\S+)$", text_of(server), re.M)}


def infer(server, model="id", count=1, batch=1, kind="http"):
    client = Client(kind, server)
    for _ in range(count):
        client.infer(model, [client.input("INPUT0", np.zeros((batch, 2), np.float32), "FP32")])
    client.close()


def without_gpus(found):
    return {name: entry for name, entry in found.items() if "gpu" not in name and name != "nv_energy_consumption"}


def test_every_family(page):
    server = page()
    assert without_gpus(families(server)) == {**ALWAYS, **OURS, **COUNTERS, **CPU}
    assert DASHBOARD <= set(families(server))


def test_the_page_says_who_is_ready(start_server, tmp_path):
    repository = tmp_path / "m"
    models.write_model(repository, "good", models.identity_config("FP32", [-1]))
    models.write_model(repository, "bad", models.identity_config("FP32", [-1]).replace('"identity"', '"nobody"'))
    server = start_server(repository, args=["--exit-on-error=false"], wait=False)
    servers.wait_until(server.has_metrics, "the metrics page")
    states = {'state="READY"': 1, 'state="LOADING"': 0, 'state="UNLOADING"': 0, 'state="UNAVAILABLE"': 1}
    servers.wait_until(lambda: values(server, "nereid_model_versions") == states, "a load and a failed one")
    assert values(server, "nereid_model_ready") == {'model="good",version="1"': 1}
    assert values(server, "nereid_model_load_failed") == {'model="bad",version="1"': 1}
    assert values(server, "nereid_server_live") == {"": 1}
    assert values(server, "nereid_server_ready") == {"": 0}
    assert not server.is_ready()


def test_failed_versions_are_named_up_to_a_hundred_and_counted_beyond(start_server, tmp_path):
    repository = tmp_path / "m"
    for i in range(103):
        models.write_model(repository, f"bad{i:03}", models.identity_config("FP32", [-1]).replace('"identity"', '"nobody"'))
    server = start_server(repository, args=["--exit-on-error=false"], wait=False)
    servers.wait_until(server.has_metrics, "the metrics page")
    servers.wait_until(lambda: values(server, "nereid_model_versions")['state="UNAVAILABLE"'] == 103, "failed loads")
    named = values(server, "nereid_model_load_failed")
    assert len(named) == 100 and set(named.values()) == {1}
    assert 'model="bad000",version="1"' in named


def test_what_was_unloaded_does_not_count_as_failed(start_server, tmp_path):
    repository = tmp_path / "m"
    models.write_model(repository, "good", models.identity_config("FP32", [-1]))
    server = start_server(repository, args=["--model-control-mode=explicit"])
    client = Client("http", server)
    client.client.load_model("good")
    assert values(server, "nereid_model_versions")['state="READY"'] == 1
    client.client.unload_model("good")
    client.close()
    servers.wait_until(lambda: sum(values(server, "nereid_model_versions").values()) == 0, "no model")
    assert values(server, "nereid_server_ready") == {"": 1}


def test_every_family_with_all_kinds_and_a_cache(page):
    server = page("--metrics-config=summary_latencies=true", "--metrics-config", "histogram_latencies=true",
                  cached=True)
    everything = {**ALWAYS, **OURS, **COUNTERS, **CPU, **SUMMARIES, **HISTOGRAMS, **LOCAL_CACHE}
    known = without_gpus(families(server))
    for name in list(known):
        if name in CACHE or name in CACHE_SUMMARIES:
            del known[name]
    assert known == everything
    # With a cache the time of a request means two things, so there is no summary of it.
    del everything["nv_inference_request_summary_us"]
    known = without_gpus(families(server, "cached"))
    assert known.pop("nv_inference_request_summary_us")[1] is None
    assert known == {**everything, **CACHE, **CACHE_SUMMARIES}


def test_what_the_local_cache_tells(page):
    server = page(cached=True)
    infer(server, "cached", 3)
    shown = {name: values(server, name)[""] for name in LOCAL_CACHE}
    assert {name: shown[f"nv_cache_num_{name}"] for name in ("entries", "hits", "misses", "lookups", "evictions")} == {
        "entries": 1, "hits": 2, "misses": 1, "lookups": 3, "evictions": 0}
    assert 0 < shown["nv_cache_util"] < 0.01


def test_counters_of_durations_can_be_left_out(page):
    server = page("--metrics-config=counter_latencies=false", "--metrics-config=summary_latencies=true")
    assert without_gpus(families(server)) == {**ALWAYS, **OURS, **CPU, **SUMMARIES}
    infer(server)
    assert values(server, "nv_inference_request_success")['model="id",version="1"'] == 1


def test_cpu_values_can_be_left_out(page):
    assert without_gpus(families(page("--allow-cpu-metrics=false"))) == {**ALWAYS, **OURS, **COUNTERS}


def test_cpu_values(page):
    server = page("--metrics-interval-ms=1")
    total = values(server, "nv_cpu_memory_total_bytes")[""]
    assert 0 < values(server, "nv_cpu_memory_used_bytes")[""] < total
    assert 0 <= values(server, "nv_cpu_utilization")[""] <= 1


def test_the_pinned_pool_is_as_large_as_it_was_told(page):
    server = page("--pinned-memory-pool-byte-size=1024")
    assert values(server, "nv_pinned_memory_pool_total_bytes") == {"": 1024}
    assert values(server, "nv_pinned_memory_pool_used_bytes") == {"": 0}


def test_metrics_can_be_left_out(page):
    server = page("--allow-metrics=false")
    with pytest.raises(OSError):
        text_of(server)


def test_tags_are_labels(page):
    assert r'_team="a\"b",model="tagged",version="1"' in values(page(), "nv_inference_count")


def test_quantiles_are_those_that_were_asked_for(page):
    server = page("--metrics-config=summary_latencies=true",
                  "--metrics-config=summary_quantiles=0.1:0.0.1,0.7:0.01,x,0.75:0.01")
    infer(server, count=20)
    text = text_of(server)
    assert {q for q in re.findall(r'quantile="([^"]*)"', text)} == {"0.1", "0.7", "0.75"}
    assert values(server, "nv_inference_queue_summary_us_count")['model="id",version="1"'] == 20
    server.wait_for_log("Invalid option: [x]")
    request = values(server, "nv_inference_request_summary_us_sum")['model="id",version="1"']
    parts = sum(values(server, f"nv_inference_{part}_summary_us_sum")['model="id",version="1"']
                for part in ("queue", "compute_input", "compute_infer", "compute_output"))
    assert 0 < request and parts <= request


def test_first_responses(page):
    models.write_model(page.repository, "own", models.identity_config(
        "FP32", [-1], max_batch_size=8,
        extra="model_metrics { metric_control: [ { metric_identifier: { family: "
              '"nv_inference_first_response_histogram_ms" } histogram_options: { '
              "buckets: [ -1, 0.0, 1, 2.5 ] } } ] }\n"
              'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'))
    server = page("--metrics-config=histogram_latencies=true")
    infer(server, "own", 3, kind="grpc")
    family = "nv_inference_first_response_histogram_ms"
    buckets = values(server, family + "_bucket")
    own = {labels: count for labels, count in buckets.items() if 'model="own"' in labels}
    assert own == {f'model="own",version="1",le="{le}"': 3 * (le == "+Inf") for le in ("-1", "0", "1", "2.5", "+Inf")}
    assert values(server, family + "_sum")['model="own",version="1"'] >= 60
    bounds = {re.search('le="(.*)"', labels).group(1) for labels in buckets if 'model="id"' in labels}
    assert bounds == {"100", "500", "2000", "5000", "+Inf"}


@pytest.mark.newer
def test_histograms_of_ours(page):
    server = page("--metrics-config=nereid_histograms=true")
    for batch in (1, 3, 3, 8):
        infer(server, batch=batch)
    labels = 'model="id",version="1"'
    for part in ("request", "queue", "compute"):
        buckets = list(values(server, f"nereid_{part}_duration_seconds_bucket").items())
        own = [count for name, count in buckets if name.startswith(labels)]
        assert own == sorted(own) and own[-1] == 4
        assert values(server, f"nereid_{part}_duration_seconds_count")[labels] == 4
    total = values(server, "nereid_request_duration_seconds_sum")[labels] * 1e6
    assert abs(total - values(server, "nv_inference_request_duration_us")[labels]) <= 1
    sizes = values(server, "nereid_batch_size_bucket")
    assert [sizes[f'{labels},le="{le}"'] for le in ("1", "2", "4", "8", "+Inf")] == [1, 1, 3, 4, 4]
    assert values(server, "nereid_batch_size_sum")[labels] == 15


@pytest.mark.parametrize("flag", ["counter_latencies", "counter_latencies=", "=x", "a,b=c"])
def test_settings_that_are_refused(page, flag):
    with pytest.raises(AssertionError, match="option format is <setting>=<value>"):
        page(f"--metrics-config={flag}")


def test_models_of_one_name_are_told_apart_by_their_namespaces(start_server, tmp_path):
    config = models.identity_config("FP32", [-1], max_batch_size=8)
    for repository in ("one", "two"):
        models.write_model(tmp_path / repository, "shared", config)
    models.write_model(tmp_path / "two", "only", config)
    server = start_server(tmp_path / "one", tmp_path / "two", args=["--model-namespacing=true"])
    infer(server, "only", count=3)

    def labels(repository, model):
        return f'model="{model}",namespace="{tmp_path / repository}",version="1"'

    everyone = {labels("one", "shared"), labels("two", "shared"), labels("two", "only")}
    assert values(server, "nv_inference_count") == dict.fromkeys(everyone, 0) | {labels("two", "only"): 3}
    seconds = values(server, "nv_model_load_duration_secs")
    assert set(seconds) == everyone
    assert all(value > 0 for value in seconds.values())
    assert len(set(seconds.values())) == 3  # each its own


def test_tags_are_labels_whose_values_may_be_any_text(start_server, empty_repository):
    models.write_model(empty_repository, "m", models.identity_config(
        "FP32", [-1], extra='metric_tags { key: "Team_2" value: "a \\"b\\" \\\\ c\\nd" }\nmetric_tags { key: "" value: "" }\n'))
    server = start_server(empty_repository)
    labels = next(label for label in values(server, "nv_inference_count"))
    assert labels == '_="",_Team_2="a \\"b\\" \\\\ c\\nd",model="m",version="1"'


@pytest.mark.newer
@pytest.mark.parametrize("extra, reason, place", [
    ('metric_tags { key: "a b" value: "x" }', "metric tag 'a b' of m cannot be the name of a label",
     "metric_tags['a b']: found 'a b'"),
    ('model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" } '
     "histogram_options { buckets: [ 5, 1, -3 ] } } }",
     "histogram options must specify finite 'buckets' in strictly ascending order",
     "model_metrics.metric_control[0].histogram_options.buckets: found [ 5, 1, -3 ]"),
    ('model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" } '
     "histogram_options { buckets: [ nan, 1, inf ] } } }",
     "histogram options must specify finite 'buckets' in strictly ascending order",
     "model_metrics.metric_control[0].histogram_options.buckets: found [ nan, 1, inf ]"),
])
def test_what_would_spoil_the_page_is_refused(start_server, empty_repository, extra, reason, place):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1], extra=extra + "\n"))
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    server.wait_for_log(place)
    (entry,) = wire.request(server, "POST", "/v2/repository/index").json()
    assert reason in entry["reason"]
