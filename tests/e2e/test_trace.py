# SPDX-License-Identifier: Apache-2.0
"""The trace extension: settings, sampling, trace files, and spans at an OpenTelemetry collector (S05)."""

import json
import pathlib
import queue
import re
import socket
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import certificates, models, wire
from harness import server as servers
from harness.clients import Client
from harness.collector import Collector, collect
from tritonclient.utils import InferenceServerException

OFF = {"trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0",
       "trace_file": "", "trace_mode": "triton"}
REQUEST = {"REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
           "COMPUTE_END", "REQUEST_END", "INFER_RESPONSE_COMPLETE"}
FRONTENDS = {
    "http": {"HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"},
    "grpc": {"GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"},
}
PARENT = "00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01"

ENSEMBLE = """platform: "ensemble"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "id" model_version: -1 input_map { key: "INPUT0" value: "IN" }
    output_map { key: "OUTPUT0" value: "MIDDLE" } },
  { model_name: "other" model_version: -1 input_map { key: "INPUT0" value: "MIDDLE" }
    output_map { key: "OUTPUT0" value: "OUT" } } ] }
"""


@pytest.fixture
def traced(start_server, tmp_path):
    """Starts a server with the given trace flags; its trace file is `file` in the temporary folder."""
    repository = tmp_path / "m"
    for name in ("id", "other"):
        models.write_model(repository, name, models.identity_config("INT32", [-1], max_batch_size=8))
    models.write_model(repository, "text", models.identity_config("BYTES", [-1], max_batch_size=8))
    models.write_model(repository, "both", ENSEMBLE)

    def start(*config, args=(), env=None):
        env = {"no_proxy": "127.0.0.1", **(env or {})}
        return start_server(repository, args=[*(f"--trace-config={c}" for c in config), *args], env=env)

    start.file = tmp_path / "trace.json"
    return start


def infer(server, kind="http", model="id", request_id="", tensor=((1, 2, 3),), datatype="INT32", name="INPUT0",
          **options):
    client = Client(kind, server)
    tensor = np.array(tensor, models.TYPES[datatype][1])
    client.infer(model, [client.input(name, tensor, datatype)], request_id=request_id, **options)
    client.close()


def records(path):
    """The records of a trace file by their id: what is known of it, its timestamps, its tensors."""
    traces = {}
    for record in json.loads(pathlib.Path(path).read_text()):
        trace = traces.setdefault(record["id"], {"timestamps": {}, "tensors": []})
        for stamp in record.pop("timestamps", []):
            trace["timestamps"][stamp["name"]] = stamp["ns"]
        if "tensor" in record:
            trace["tensors"].append((record["activity"], record["tensor"]))
        elif len(record) > 1:
            trace.update(record)
    return traces


def settings(server, body=None, model=""):
    """Status and JSON of the reply."""
    path = f"models/{model}/trace/setting" if model else "trace/setting"
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(f"http://{server.http}/v2/{path}", data=data, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def by_grpc(reply):
    values = {name: list(value.value) for name, value in reply.settings.items()}
    return {name: value if name == "trace_level" else value[0] for name, value in values.items()}


# -- Settings --


def test_nobody_is_traced_by_default(server):
    assert settings(server) == (200, OFF)
    assert settings(server, model="id_pair") == (200, OFF)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        assert by_grpc(client.get_trace_settings()) == OFF
        assert by_grpc(client.get_trace_settings("id_pair")) == OFF


def test_settings_of_models_and_of_the_server(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=6", "count=9")
    all_of_it = OFF | {"trace_level": ["TIMESTAMPS"], "trace_rate": "6", "trace_count": "9",
                       "trace_file": str(traced.file)}
    assert settings(server)[1] == all_of_it
    # A model has its own rate, and the server's for the rest.
    assert settings(server, {"trace_rate": "2"}, "id")[1] == all_of_it | {"trace_rate": "2"}
    assert settings(server, {"trace_count": "5", "trace_rate": "7", "log_frequency": "3"})[0] == 200
    now = all_of_it | {"trace_count": "5", "trace_rate": "7", "log_frequency": "3"}
    assert settings(server, model="id")[1] == now | {"trace_rate": "2"}
    assert settings(server, model="other")[1] == now
    # Cleared, it follows the server again; the server goes back to its start.
    assert settings(server, {"trace_rate": None}, "id")[1] == now
    assert settings(server, {"trace_rate": None, "trace_count": None, "log_frequency": None})[1] == all_of_it
    with grpcclient.InferenceServerClient(server.grpc) as client:
        changed = client.update_trace_settings("id", {"trace_level": ["TIMESTAMPS", "TENSORS"]})
        assert by_grpc(changed) == all_of_it | {"trace_level": ["TIMESTAMPS", "TENSORS"]}
        assert by_grpc(client.update_trace_settings("id", {"trace_level": []})) == all_of_it
    http = httpclient.InferenceServerClient(server.http)
    assert http.update_trace_settings(settings={"trace_level": "OFF"} | {"trace_level": ["OFF"]}) == (
        all_of_it | {"trace_level": ["OFF"]})
    http.close()


REFUSED = [
    ({"trace_rate": "x"}, "Unable to parse 'trace_rate', got: x"),
    ({"trace_rate": "10000000000"},
     "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 10000000000"),
    ({"trace_count": "10000000000"},
     "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 10000000000"),
    ({"trace_count": "-2"}, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"),
    ({"log_frequency": "x"}, "Unable to parse 'log_frequency', got: x"),
    ({"trace_level": ["OFF", "TENSORS"]}, "Expect only one trace level 'OFF' is specified"),
    ({"trace_level": ["TIMESTAMPS"]}, "Attempting to set invalid trace setting :trace file name is not given"),
]


@pytest.mark.parametrize("body, error", REFUSED)
def test_what_is_refused(server, body, error):
    assert settings(server, body) == (400, {"error": error})
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as caught:
            client.update_trace_settings(settings=body)
    assert caught.value.message() == error.replace("got:-2", "got: -2")  # as Triton writes either
    assert settings(server) == (200, OFF)


def test_models_that_are_not_there(server):
    error = "Request for unknown model : none"
    for body in (None, {"log_frequency": "1"}):
        assert settings(server, body, "none") == (400, {"error": error})
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match=error):
            client.get_trace_settings("none")


def test_s05_the_file_cannot_be_changed_by_clients(server, tmp_path):
    other = tmp_path / "other.json"
    error = "trace file location can not be updated through network protocol"
    for model in ("", "id_pair"):
        assert settings(server, {"trace_file": str(other)}, model) == (501, {"error": error})
        with grpcclient.InferenceServerClient(server.grpc) as client:
            with pytest.raises(InferenceServerException, match=error) as caught:
                client.update_trace_settings(model, {"trace_file": str(other)})
            assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
    assert settings(server) == (200, OFF)
    assert not other.exists()


# -- Files --


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_request_leaves_its_timestamps(traced, kind):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=1")
    infer(server, kind, request_id='a"b\n')
    server.stop()
    (trace,) = records(traced.file).values()
    stamps = trace["timestamps"]
    assert set(stamps) == REQUEST | FRONTENDS[kind]
    assert (trace["model_name"], trace["model_version"], trace["request_id"]) == ("id", 1, 'a"b\n')
    assert "parent_id" not in trace
    order = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
             "COMPUTE_END", "REQUEST_END"]
    assert [stamps[name] for name in order] == sorted(stamps[name] for name in order)
    first, last = ("HTTP_RECV_START", "HTTP_SEND_END") if kind == "http" else (
        "GRPC_WAITREAD_START", "GRPC_SEND_END")
    assert stamps[first] <= stamps["REQUEST_START"] and stamps["COMPUTE_END"] <= stamps[last]


def test_receiving_ends_with_the_last_byte(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=1")
    value = {"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [1]}
    body = json.dumps({"inputs": [value]}).encode()
    with wire.Connection(server) as connection:
        connection.send(
            b"POST /v2/models/id/infer HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        assert connection.receive().status == 100
        connection.send(body)
        assert connection.receive().status == 200
    server.stop()
    (trace,) = records(traced.file).values()
    stamps = trace["timestamps"]
    assert stamps["HTTP_RECV_START"] < stamps["HTTP_RECV_END"] <= stamps["REQUEST_START"]


def test_streams_are_traced(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=1")
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put(error))
        value = grpcclient.InferInput("INPUT0", [1, 1], "INT32").set_data_from_numpy(np.zeros((1, 1), np.int32))
        for _ in range(3):
            client.async_stream_infer("id", [value])
        assert [answers.get(timeout=30) for _ in range(3)] == [None] * 3
        client.stop_stream()
    server.stop()
    traces = records(traced.file)
    assert [set(t["timestamps"]) for t in traces.values()] == [REQUEST | FRONTENDS["grpc"]] * 3


def test_steps_of_an_ensemble_name_their_parent(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "level=TENSORS", "rate=1")
    infer(server, model="both", name="IN", request_id="1")
    server.stop()
    traces = records(traced.file)
    assert {(i, t["model_name"], t.get("parent_id"), t["request_id"]) for i, t in traces.items()} == {
        (1, "both", None, "1"), (2, "id", 1, "1"), (3, "other", 1, "1")}
    shown = {"data": "1,2,3", "shape": "1,3", "dtype": "INT32"}
    assert traces[1]["tensors"] == [("TENSOR_QUEUE_INPUT", {"name": "IN", **shown}),
                                    ("TENSOR_BACKEND_OUTPUT", {"name": "OUT", **shown})]
    for step in (2, 3):
        assert traces[step]["tensors"] == [("TENSOR_QUEUE_INPUT", {"name": "INPUT0", **shown}),
                                           ("TENSOR_BACKEND_OUTPUT", {"name": "OUTPUT0", **shown})]


def test_texts_in_tensors_stay_json(traced):
    server = traced(f"triton,file={traced.file}", "level=TENSORS", "rate=1")
    infer(server, model="text", tensor=[['a"\n', "b"]], datatype="BYTES")
    server.stop()
    (trace,) = records(traced.file).values()
    assert trace["tensors"][0][1]["data"] == '"a"\n","b"'
    assert trace["timestamps"] == {}


def test_every_sixth_and_files_of_two(traced):
    server = traced(f"triton,file={traced.file}", "triton,log-frequency=2", "level=TIMESTAMPS", "rate=6")
    for i in range(20):
        infer(server, ("http", "grpc")[i % 2], request_id=str(i))
    server.stop()
    assert not traced.file.exists()
    found = [[t["request_id"] for t in records(f"{traced.file}.{i}").values()] for i in (0, 1)]
    assert found == [["5", "11"], ["17"]]


def test_a_count_is_used_up(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=1")
    for _ in range(3):
        infer(server)
    assert settings(server, {"trace_count": "2"})[1]["trace_count"] == "2"
    for _ in range(4):
        infer(server, request_id="counted")
    assert settings(server)[1]["trace_count"] == "0"
    indexed = pathlib.Path(f"{traced.file}.0")
    servers.wait_until(indexed.exists, "the file of the counted ones")
    server.stop()
    assert [t["request_id"] for t in records(indexed).values()] == ["counted"] * 2
    assert len(records(traced.file)) == 3


def test_a_model_of_its_own(traced):
    server = traced(f"triton,file={traced.file}", "level=OFF", "rate=1")
    settings(server, {"trace_level": ["TIMESTAMPS"]}, "other")
    for model in ("id", "other", "id"):
        infer(server, model=model)
    settings(server, {"trace_level": None}, "other")
    infer(server, model="other")
    server.stop()
    assert [t["model_name"] for t in records(traced.file).values()] == ["other"]


def test_failed_requests_leave_whole_traces(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=1")
    with pytest.raises(InferenceServerException):
        infer(server, name="WRONG")
    server.stop()
    (trace,) = records(traced.file).values()
    assert {"REQUEST_START", "REQUEST_END", "INFER_RESPONSE_COMPLETE"} <= set(trace["timestamps"])


def test_deprecated_flags(traced):
    args = [f"--trace-file={traced.file}", "--trace-level=MIN", "--trace-rate=1", "--trace-count=4",
            "--trace-log-frequency=50"]
    server = traced(args=args)
    assert settings(server)[1] == OFF | {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "4",
                                         "log_frequency": "50", "trace_file": str(traced.file)}
    for name in ("file", "level", "rate", "count", "log-frequency"):
        assert server.log.count(f"Warning: '--trace-{name}' has been deprecated") == 1


@pytest.mark.parametrize("flags, error", [
    (["--trace-config=rate=x"], 'Bad option: "--trace-config rate"'),
    (["--trace-config=rate="], "--trace-config option format is '<trace mode>,<setting>=<value>'"),
    (["--trace-config=,rate=1"], "No trace mode specified"),
    (["--trace-config=jaeger,rate=1"], "invalid value for trace mode option: jaeger"),
    (["--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,bsp_schedule_delay=x"],
     'Bad option: "--trace-config opentelemetry,bsp_schedule_delay"'),
    (["--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,url=https://x:y"],
     "expected http[s]://<host>:<port>/<path>, got: https://x:y"),
])
@pytest.mark.newer
def test_flags_that_are_refused(traced, flags, error):
    with pytest.raises(AssertionError, match=re.escape(error)):
        traced(args=flags)


# -- Spans --


@pytest.fixture
def collector():
    with Collector() as running:
        yield running
        running.shutdown()


def telemetry(collector, *more):
    return ("mode=opentelemetry", "level=TIMESTAMPS", f"opentelemetry,url={collector.url}",
            "opentelemetry,bsp_schedule_delay=50", *more)


def tree(spans):
    """The names of the spans, each with the names of those inside it."""
    names = {span.span_id: span.name for span in spans}
    found = {}
    for span in spans:
        found.setdefault(names.get(span.parent_span_id, ""), []).append(span.name)
    return {parent: sorted(children) for parent, children in found.items()}


def events(spans, name):
    (span,) = [span for span in spans if span.name == name]
    return [event.name for event in span.events]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_spans_of_a_request(traced, collector, kind):
    server = traced(*telemetry(collector, "rate=1", "opentelemetry,resource=service.name=tested",
                               "opentelemetry,resource=key=a=b"))
    infer(server, kind, request_id="7")
    resource, spans = collect(collector, 3)
    assert resource["service.name"] == "tested" and resource["key"] == "a=b"
    assert tree(spans) == {"": ["InferRequest"], "InferRequest": ["id"], "id": ["compute"]}
    assert set(events(spans, "InferRequest")) == FRONTENDS[kind] | {"INFER_RESPONSE_COMPLETE"}
    assert events(spans, "id") == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
    assert events(spans, "compute") == ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
                                        "COMPUTE_END"]
    assert len({span.trace_id for span in spans}) == 1
    assert all(span.kind == 2 and span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    (request,) = [span for span in spans if span.name == "id"]
    attributes = {a.key: a.value.string_value or a.value.int_value for a in request.attributes}
    assert attributes == {"triton.model_name": "id", "triton.model_version": 1, "triton.trace_id": 1,
                          "triton.trace_parent_id": 0, "triton.request_id": "7"}


def test_spans_of_an_ensemble(traced, collector):
    server = traced(*telemetry(collector, "rate=1"))
    infer(server, model="both", name="IN")
    _, spans = collect(collector, 6)
    assert tree(spans) == {"": ["InferRequest"], "InferRequest": ["both"], "both": ["id", "other"],
                           "id": ["compute"], "other": ["compute"]}


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_client_that_traces_is_traced(traced, collector, kind):
    """Whatever the rate is, and as part of the client's own trace."""
    server = traced(*telemetry(collector, "rate=0"))
    infer(server, kind)
    infer(server, kind, headers={"traceparent": "00-" + "0" * 32 + "-b7ad6b7169242424-01"})
    infer(server, kind, headers={"traceparent": PARENT, "tracestate": "a=b"})
    _, spans = collect(collector, 3)
    assert {span.trace_id.hex() for span in spans} == {PARENT[3:35]}
    assert {span.trace_state for span in spans} == {"a=b"}
    (root,) = [span for span in spans if span.name == "InferRequest"]
    assert root.parent_span_id.hex() == PARENT[36:52]
    server.stop()
    assert collector.requests.empty()


def test_settings_in_this_mode(traced, collector):
    server = traced(*telemetry(collector, "rate=0"))
    assert settings(server)[1] == {
        "trace_level": ["TIMESTAMPS"], "trace_rate": "0", "trace_count": "-1", "trace_mode": "opentelemetry",
        "url": collector.url, "bsp_schedule_delay": "50", "bsp_max_queue_size": "2048",
        "bsp_max_export_batch_size": "512"}


def test_spans_leave_in_batches_and_at_the_end(traced, collector):
    server = traced("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={collector.url}",
                    "opentelemetry,bsp_schedule_delay=3600000", "opentelemetry,bsp_max_export_batch_size=4")
    for _ in range(2):
        infer(server)
    _, spans = collector.next()
    assert len(spans) == 4
    server.stop()
    _, spans = collector.next()
    assert len(spans) == 2


def test_spans_that_do_not_fit_are_told_of(traced, collector):
    server = traced("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={collector.url}",
                    "opentelemetry,bsp_max_queue_size=1")
    infer(server)
    server.wait_for_log("BatchSpanProcessor queue is full - dropping span.")


def test_a_collector_that_is_away_disturbs_nobody(traced):
    (port,) = servers.free_ports(1)
    server = traced("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url=127.0.0.1:{port}/x",
                    "opentelemetry,bsp_schedule_delay=10", "opentelemetry,bsp_max_queue_size=2")
    for _ in range(3):
        infer(server)
    servers.wait_until(lambda: "failed to export" in server.log, "word of the failure")
    infer(server)
    server.stop()


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"])
def test_spans_over_tls_with_an_authority_of_ones_own(traced, tmp_path, variable):
    authority = certificates.make(tmp_path, "authority")
    with Collector(certificates.make(tmp_path, "collector", authority)) as collector:
        server = traced(*telemetry(collector, "rate=1"), env={variable: str(authority.cert)})
        infer(server)
        _, spans = collect(collector, 3)
        assert "InferRequest" in {span.name for span in spans}
        assert settings(server)[1]["url"] == collector.url
        server.stop()
        collector.shutdown()


def test_spans_go_to_no_collector_whose_certificate_nobody_vouches_for(traced, tmp_path):
    authority = certificates.make(tmp_path, "authority")
    with Collector(certificates.make(tmp_path, "collector", authority)) as collector:
        server = traced(*telemetry(collector, "rate=1"))
        infer(server)
        server.wait_for_log("curlCode: 60")
        server.stop()
        assert collector.requests.empty()
        collector.shutdown()


def test_spans_that_the_collector_cannot_take_now_are_sent_again(traced, collector):
    collector.statuses.put(503)
    server = traced(*telemetry(collector, "rate=1"))
    infer(server)
    _, refused = collector.next()
    _, again = collector.next()
    assert [span.span_id for span in again] == [span.span_id for span in refused]
    assert "failed to export" not in server.log


def test_a_collector_that_stands_still_does_not_hold_up_the_end(traced):
    """It takes the connection and never replies; its kernel does that for it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = traced("mode=opentelemetry", "level=TIMESTAMPS", "rate=1",
                        f"opentelemetry,url=127.0.0.1:{silent.getsockname()[1]}/x",
                        "opentelemetry,bsp_schedule_delay=10")
        for _ in range(3):
            infer(server)
        server.stop()


def test_generate_is_traced(traced):
    server = traced(f"triton,file={traced.file}", "level=TIMESTAMPS", "rate=1")
    for path in ("generate", "generate_stream"):
        request = urllib.request.Request(f"http://{server.http}/v2/models/text/{path}", data=b'{"INPUT0":["a"]}')
        with urllib.request.urlopen(request, timeout=10) as reply:
            assert b'"a"' in reply.read()
    server.stop()
    traces = records(traced.file)
    assert [set(t["timestamps"]) for t in traces.values()] == [REQUEST | FRONTENDS["http"]] * 2
