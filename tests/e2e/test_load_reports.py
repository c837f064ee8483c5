# SPDX-License-Identifier: Apache-2.0
"""What responses tell balancers and clients of the server's load: ORCA reports, and when to try again."""

import base64
import concurrent.futures
import json
import struct
import subprocess

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from harness import models, python_models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2, service_pb2_grpc

pytestmark = pytest.mark.newer  # ours

FORMAT = "endpoint-load-metrics-format"
ANSWER = "endpoint-load-metrics"


def orca_report():
    """The class of xds.data.orca.v3.OrcaLoadReport, of which only the field in use is declared."""
    file = descriptor_pb2.FileDescriptorProto(name="orca.proto", package="xds.data.orca.v3", syntax="proto3")
    message = file.message_type.add(name="OrcaLoadReport")
    entry = message.nested_type.add(name="NamedMetricsEntry")
    entry.options.map_entry = True
    field = descriptor_pb2.FieldDescriptorProto
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=field.TYPE_DOUBLE, label=field.LABEL_OPTIONAL)
    message.field.add(
        name="named_metrics", number=8, type=field.TYPE_MESSAGE, label=field.LABEL_REPEATED,
        type_name=".xds.data.orca.v3.OrcaLoadReport.NamedMetricsEntry",
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("xds.data.orca.v3.OrcaLoadReport"))


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("loads")
    models.write_model(folder, "m", models.identity_config("FP32", [2]))
    adaptive = parameter("execute_delay_ms", 100) + parameter("adaptive_concurrency", "true")
    models.write_model(folder, "adaptive", models.identity_config("FP32", [2]) + adaptive)
    with servers.running(folder) as running:
        yield running


@pytest.fixture
def stub(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def request(model="m"):
    tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.zeros(2, np.float32))
    return service_pb2.ModelInferRequest(
        model_name=model, inputs=[tensor._get_tensor()], raw_input_contents=[tensor._get_content()]
    )


def trailers(call):
    return dict(call.trailing_metadata())


def report(server, folder, rpc, count=1, message=None):
    """The named metrics of the report that a call gets. Asked by curl: grpcio keeps the report for its balancing."""
    message = (message or request()).SerializeToString()
    (folder / "messages").write_bytes((struct.pack(">BI", 0, len(message)) + message) * count)
    given = ["content-type: application/grpc", "te: trailers", f"{FORMAT}: bin"]
    command = ["curl", "-sS", "--http2-prior-knowledge", "-D-", "-o", folder / "responses"]
    command += [argument for one in given for argument in ("-H", one)]
    command += ["--data-binary", f"@{folder / 'messages'}", f"http://{server.grpc}/inference.GRPCInferenceService/{rpc}"]
    heads = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    fields = dict(line.split(": ", 1) for line in heads.splitlines() if ": " in line)
    assert fields["grpc-status"] == "0"
    return dict(orca_report().FromString(base64.b64decode(fields["endpoint-load-metrics-bin"])).named_metrics)


def test_a_call_gets_the_report_that_it_asks_for(server, tmp_path):
    assert report(server, tmp_path, "ModelInfer") == {"requests_in_flight": 0, "queue_oldest_seconds": 0}


@pytest.mark.parametrize("wanted", [None, "xml", "JSON", ""])
def test_who_asks_for_nothing_or_for_what_is_not_there_gets_nothing(stub, wanted):
    _, call = stub.ModelInfer.with_call(request(), metadata=[(FORMAT, wanted)] if wanted is not None else None)
    assert [name for name in trailers(call) if "load" in name] == []


def parsed(text, form):
    """The named metrics of a report as text, read as the reference's own test reads it."""
    if form == "json":
        assert text.startswith("JSON ")
        return json.loads(text.removeprefix("JSON "))["named_metrics"]
    assert text.startswith("TEXT ")
    pairs = (pair.split("=") for pair in text.removeprefix("TEXT ").split(", "))
    return {name.removeprefix("named_metrics."): float(value) for name, value in pairs}


@pytest.mark.parametrize("form", ["json", "text"])
def test_every_model_has_a_report_as_text(server, stub, form):
    _, call = stub.ModelInfer.with_call(request(), metadata=[(FORMAT, form)])
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [0, 0]}]}
    reply = wire.request(server, "POST", "/v2/models/m/infer", json.dumps(body), {FORMAT: form})
    generated = wire.request(server, "POST", "/v2/models/m/generate", '{"INPUT0": [1, 2]}', {FORMAT: form})
    assert reply.status == generated.status == 200
    for text in (trailers(call)[ANSWER], reply.headers[ANSWER], generated.headers[ANSWER]):
        assert parsed(text, form) == {"requests_in_flight": 0, "queue_oldest_seconds": 0}


def test_requests_over_http_that_ask_for_nothing_get_nothing(server):
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [0, 0]}]}
    for given in ({}, {FORMAT: "xml"}, {"endpoint-load-metrics-type": "json"}):
        for path, text in (("infer", json.dumps(body)), ("generate", '{"INPUT0": [1, 2]}')):
            reply = wire.request(server, "POST", f"/v2/models/m/{path}", text, given)
            assert reply.status == 200 and ANSWER not in reply.headers


def test_a_stream_gets_the_report_at_its_end(server, tmp_path):
    assert "queue_oldest_seconds" in report(server, tmp_path, "ModelStreamInfer", count=2)


CACHED = """
class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(
            "nv_trt_llm_kv_cache_block_metrics", "blocks of the cache", pb_utils.MetricFamily.GAUGE)
        self.values = []
        for kind, value in (("used", 5), ("max", 10), ("tokens_per", 64)):
            metric = self.family.Metric(labels={"kv_cache_block_type": kind, "model": "cached"})
            metric.set(value)
            self.values.append(metric)
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""


LANGUAGE = """
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] },
        { name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] },
        { name: "bad_words" data_type: TYPE_STRING dims: [ 1 ] },
        { name: "stop_words" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def test_the_report_of_a_language_model(start_server, tmp_path):
    """What the reference's L0_orca asks, over both protocols. Its metrics come first, as the reference writes them."""
    repository = tmp_path / "models"
    python_models.write(repository, "cached", CACHED, config=LANGUAGE)
    server = python_models.start(start_server, repository)
    starts = {
        "text": "TEXT named_metrics.kv_cache_utilization=0.500000, named_metrics.max_token_capacity=640, ",
        "json": 'JSON {"named_metrics":{"kv_cache_utilization":0.5,"max_token_capacity":640,',
    }
    question = {"text_input": "hello world", "max_tokens": 20, "bad_words": "", "stop_words": ""}
    inputs = []
    for name, value, kind in (("text_input", b"hello", "BYTES"), ("max_tokens", 20, "INT32"),
                              ("bad_words", b"", "BYTES"), ("stop_words", b"", "BYTES")):  # fmt: skip
        tensor = grpcclient.InferInput(name, [1], kind)
        tensor.set_data_from_numpy(np.array([value], np.int32 if kind == "INT32" else object))
        inputs.append(tensor)
    message = service_pb2.ModelInferRequest(
        model_name="cached",
        inputs=[tensor._get_tensor() for tensor in inputs],
        raw_input_contents=[tensor._get_content() for tensor in inputs],
    )
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for form, start in starts.items():
            _, call = stub.ModelInfer.with_call(message, metadata=[(FORMAT, form)])
            assert trailers(call)[ANSWER].startswith(start)
            reply = wire.request(server, "POST", "/v2/models/cached/generate", json.dumps(question), {FORMAT: form})
            assert reply.status == 200 and reply.headers[ANSWER].startswith(start)
            named = parsed(reply.headers[ANSWER], form)
            assert named["kv_cache_utilization"] == 0.5 and named["max_token_capacity"] == 640
    reply = wire.request(server, "POST", "/v2/models/cached/generate", json.dumps(question))
    assert reply.status == 200 and ANSWER not in reply.headers
    named = report(server, tmp_path, "ModelInfer", message=message)
    assert named["kv_cache_utilization"] == 0.5 and named["max_token_capacity"] == 640


HELD = """
class TritonPythonModel:
    def execute(self, requests):
        while not os.path.exists("{}"):
            time.sleep(0.01)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""


def test_a_report_counts_the_requests_that_are_not_answered(start_server, tmp_path):
    """Those beside the one that it comes with. One of the three is executed, and two wait."""
    repository = tmp_path / "models"
    python_models.write(repository, "held", HELD.format(tmp_path / "go"), dims=[2])
    models.write_model(repository, "m", models.identity_config("FP32", [2]))
    server = python_models.start(start_server, repository)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [stub.ModelInfer.future(request("held")) for _ in range(3)]
        waiting = ("nv_inference_pending_request_count", "held")
        servers.wait_until(lambda: server.scrape().get(waiting) == 2, "one to be executed and two to wait")
        named = report(server, tmp_path, "ModelInfer")
        assert named["requests_in_flight"] == 3 and named["queue_oldest_seconds"] > 0
        in_flight = [("nereid_model_requests_in_flight", "held"), ("nereid_model_request_bytes_in_flight", "held")]
        assert [server.scrape()[name] for name in in_flight] == [3, 3 * request("held").ByteSize()]
        (tmp_path / "go").touch()
        for call in calls:
            call.result(timeout=60)
        assert [server.scrape()[name] for name in in_flight] == [0, 0]
        assert report(server, tmp_path, "ModelInfer") == {"requests_in_flight": 0, "queue_oldest_seconds": 0}


def test_clients_of_grpc_understand_the_report(stub):
    assert stub.ModelInfer(request(), metadata=[(FORMAT, "bin")]).model_name == "m"


def test_an_overloaded_model_says_when_to_try_again(stub):
    def ask():
        try:
            stub.ModelInfer(request("adaptive"))
        except grpc.RpcError as error:
            return error
        return None

    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        refused = [error for error in pool.map(lambda _: ask(), range(60)) if error is not None]
    assert refused
    for error in refused:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        assert int(trailers(error)["grpc-retry-pushback-ms"]) >= 1
