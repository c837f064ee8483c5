# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of cases/*.json against a server. README.md says how a case is written."""

import json
import pathlib
import re

import grpc
from google.protobuf import json_format
from google.protobuf import message_factory
from tritonclient.grpc import service_pb2

from harness import server as servers
from harness import transports, wire

CASES = pathlib.Path(__file__).parent / "cases"
SERVICE = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
TIMEOUT = 20 * servers.SLOWNESS
RULE = re.compile(r"<(any|integer|number|text)>|<match (.*)>", re.S)


def load():
    """(file, case) of every case there is."""
    for path in sorted(CASES.glob("*.json")):
        content = json.loads(path.read_text())
        for case in content["cases"]:
            yield path.stem, {"server": content.get("server", "shared"), **case}


def steps(case):
    return case.get("steps") or [case]


class Front:
    """A proxy in front of servers, as the cases see a server."""

    def __init__(self, http_port, grpc=None):
        self.http_port, self.grpc = http_port, grpc
        self.transport = transports.Tcp()

    def connect(self, service, timeout=30):
        return self.transport.connect(self, service, timeout)


class Mismatch(AssertionError):
    """A reply is not what the case expects."""


def expect(condition, text):
    if not condition:
        raise Mismatch(text)


def match(expected, got, where="reply"):
    """Whether `got` is what the rules of `expected` allow: see README.md."""
    if isinstance(expected, str) and (rule := RULE.fullmatch(expected)):
        kind, pattern = rule.groups()
        if pattern is not None:
            expect(isinstance(got, str) and re.fullmatch(pattern, got, re.S), f"{where}: {got!r} is not {expected}")
        elif kind == "integer":
            # Protobuf's JSON writes 64-bit numbers as text.
            expect(isinstance(got, int) or str(got).isdigit(), f"{where}: {got!r} is not an integer")
        elif kind == "number":
            expect(isinstance(got, int | float), f"{where}: {got!r} is not a number")
        elif kind == "text":
            expect(isinstance(got, str), f"{where}: {got!r} is not a text")
        return
    if isinstance(expected, dict):
        expect(isinstance(got, dict), f"{where}: {got!r} is not an object")
        wanted = {name for name in expected if name != "<more>"}
        missing = wanted - set(got)
        more = set(got) - wanted if "<more>" not in expected else set()
        expect(not missing and not more, f"{where}: missing {sorted(missing)}, unexpected {sorted(more)} in {got}")
        for name in wanted:
            match(expected[name], got[name], f"{where}.{name}")
        return
    if isinstance(expected, list):
        expect(isinstance(got, list) and len(got) == len(expected), f"{where}: {got!r}, expected {expected!r}")
        for at, (one, other) in enumerate(zip(expected, got, strict=True)):
            match(one, other, f"{where}[{at}]")
        return
    expect(type(expected) is type(got) and expected == got, f"{where}: {got!r}, expected {expected!r}")


# -- HTTP --


def encode(request):
    """The body and the headers of an HTTP request."""
    headers = dict(request.get("headers", {}))
    if "repeat" in request:
        return (request["text"] * request["repeat"]).encode(), headers
    if "json" not in request:
        return request.get("text", "").encode(), headers
    text = json.dumps(request["json"], separators=(",", ":")).encode()
    if "binary" in request:
        headers.setdefault("Inference-Header-Content-Length", str(len(text)))
    return text + bytes.fromhex(request.get("binary", "")), headers


def run_http(server, request, expected):
    body, headers = encode(request)
    with wire.Connection(server, TIMEOUT) as connection:
        reply = connection.request(request["method"], request["path"], body, headers)
        check_http(reply, expected)
        # Whatever the request was, the connection goes on.
        if reply.headers.get("connection", "").lower() != "close":
            expect(connection.request("GET", "/v2/health/live").status == 200, "the connection is of no use any more")


def check_http(reply, expected):
    allowed = expected["status"] if isinstance(expected["status"], list) else [expected["status"]]
    expect(reply.status in allowed, f"status {reply.status}, expected {allowed}: {reply}")
    if reply.status >= 400 and "text" not in expected:
        expect(reply.error is not None and set(reply.json()) == {"error"}, f"not an error object: {reply}")
    check_error(reply.error, expected)
    if "text" in expected:
        match(expected["text"], reply.body.decode(errors="backslashreplace"))
    if "json" in expected:
        match(expected["json"], wire.split_reply(reply)[0])
    if "binary" in expected:
        match(expected["binary"], wire.split_reply(reply)[1].hex())
    for name, value in expected.get("headers", {}).items():
        match(value, reply.headers.get(name), f"header {name}")


def check_error(error, expected):
    if "error" in expected:
        match(expected["error"], error, "error")
    if "error_prefix" in expected:
        expect(str(error).startswith(expected["error_prefix"]), f"error: {error!r}, expected {expected['error_prefix']!r}…")
    if "error_contains" in expected:
        expect(expected["error_contains"] in str(error), f"error: {error!r}, expected …{expected['error_contains']!r}…")


# -- gRPC --


def classes(rpc):
    method = SERVICE.methods_by_name[rpc]
    return (message_factory.GetMessageClass(method.input_type), message_factory.GetMessageClass(method.output_type))


def to_message(cls, value):
    return json_format.ParseDict(value, cls())


def to_json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def run_grpc(server, request, expected):
    metadata = list(request.get("metadata", {}).items())
    with grpc.insecure_channel(server.grpc) as channel:
        if request["rpc"] == "ModelStreamInfer":
            return run_stream(channel, request, expected, metadata)
        if "/" in request["rpc"]:
            call = channel.unary_unary(request["rpc"])
            message = bytes.fromhex(request.get("bytes", ""))
        else:
            given, answer = classes(request["rpc"])
            call = channel.unary_unary(
                f"/inference.GRPCInferenceService/{request['rpc']}",
                request_serializer=lambda message: message if isinstance(message, bytes) else message.SerializeToString(),
                response_deserializer=answer.FromString)
            message = bytes.fromhex(request["bytes"]) if "bytes" in request else to_message(given, request.get("message", {}))
        try:
            reply = call(message, timeout=TIMEOUT, metadata=metadata)
        except grpc.RpcError as error:
            expect(error.code().name == expected["code"], f"{error.code().name}: {error.details()}, expected {expected['code']}")
            return check_error(error.details(), expected)
        expect(expected["code"] == "OK", f"OK, expected {expected['code']}: {reply}")
        if "bytes" in expected:
            match(expected["bytes"], reply.hex())
        if "message" in expected:
            match(expected["message"], to_json(reply))


def run_stream(channel, request, expected, metadata):
    given, answer = classes("ModelStreamInfer")
    call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer",
                                 request_serializer=given.SerializeToString, response_deserializer=answer.FromString)
    replies = call(iter([to_message(given, value) for value in request["messages"]]), timeout=TIMEOUT, metadata=metadata)
    got = []
    try:
        for reply in replies:
            got.append(to_json(reply))
    except grpc.RpcError as error:
        check_error(error.details(), expected)
    expect(replies.code().name == expected["code"], f"{replies.code().name}, expected {expected['code']}")
    if "messages" in expected:
        match(expected["messages"], got)


# -- The command line --


def run_command(request, expected):
    process = servers.run_to_end(request["command"])
    expect(process.returncode == expected["exit"] or (expected["exit"] == "failure" and process.returncode != 0),
           f"exit status {process.returncode}, expected {expected['exit']}:\n{process.stdout}")
    for text in expected.get("output_contains", []):
        expect(text in process.stdout, f"no {text!r} in the output:\n{process.stdout}")


def run(case, get_server):
    """Raises Mismatch at the first reply that is not as expected. get_server(kind) gives a server."""
    for step in steps(case):
        request, expected = step["request"], step["expect"]
        if "command" in request:
            run_command(request, expected)
        elif "rpc" in request:
            run_grpc(get_server(case["server"]), request, expected)
        else:
            run_http(get_server(case["server"]), request, expected)
