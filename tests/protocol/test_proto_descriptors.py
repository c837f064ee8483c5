# SPDX-License-Identifier: Apache-2.0
"""The messages in proto/ are those that Triton's clients speak.

Every message, field, enum value and method of ours is compared with the descriptors that the
tritonclient wheel carries, in both directions. Comments and file names do not matter; anything that
changes bytes, JSON or text format does.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2

PROTO_DIR = pathlib.Path(__file__).resolve().parents[2] / "proto"

# What the protocol of Triton 2.73 has and the wheels of some releases before it lack. Only additions
# may stand here; a wheel that has them is compared in full.
NEWER_THAN_THE_WHEEL = {
    # Limits the requests in work at each step of an ensemble.
    "field inference.ModelEnsembling.max_inflight_requests",
}


def compile_descriptors(out_dir):
    """Compiles our files with protoc (or grpcio-tools) and returns {file name: descriptor}."""
    out = os.path.join(out_dir, "ours.pb")
    protoc = shutil.which("protoc")
    command = [protoc] if protoc else [sys.executable, "-m", "grpc_tools.protoc"]
    files = sorted(path.name for path in PROTO_DIR.glob("*.proto"))
    subprocess.run(
        [*command, f"--proto_path={PROTO_DIR}", f"--descriptor_set_out={out}", *files], check=True
    )
    descriptors = descriptor_pb2.FileDescriptorSet()
    with open(out, "rb") as f:
        descriptors.ParseFromString(f.read())
    return {f.name: f for f in descriptors.file}


def facts_of_enum(enum, path, facts):
    facts[f"enum {path}"] = {"options": str(enum.options)}
    for value in enum.value:
        facts[f"value {path}.{value.name}"] = {"number": value.number, "options": str(value.options)}


def facts_of_message(message, path, facts):
    facts[f"message {path}"] = {
        "map entry": message.options.map_entry,
        "oneofs": [oneof.name for oneof in message.oneof_decl],
        "reserved": [(r.start, r.end) for r in message.reserved_range] + list(message.reserved_name),
    }
    for field in message.field:
        in_oneof = field.HasField("oneof_index")
        facts[f"field {path}.{field.name}"] = {
            "number": field.number,
            "type": descriptor_pb2.FieldDescriptorProto.Type.Name(field.type),
            "type name": field.type_name,
            "label": descriptor_pb2.FieldDescriptorProto.Label.Name(field.label),
            "oneof": message.oneof_decl[field.oneof_index].name if in_oneof else None,
            "optional": field.proto3_optional,
            "options": str(field.options),
        }
    for nested in message.nested_type:
        facts_of_message(nested, f"{path}.{nested.name}", facts)
    for enum in message.enum_type:
        facts_of_enum(enum, f"{path}.{enum.name}", facts)


def facts_of_file(file):
    """Flattens a descriptor into {"kind full.name": what matters about it}."""
    facts = {f"package {file.package}": {"syntax": file.syntax}}
    for message in file.message_type:
        facts_of_message(message, f"{file.package}.{message.name}", facts)
    for enum in file.enum_type:
        facts_of_enum(enum, f"{file.package}.{enum.name}", facts)
    for service in file.service:
        for method in service.method:
            facts[f"method {file.package}.{service.name}/{method.name}"] = {
                "input": method.input_type,
                "output": method.output_type,
                "client streams": method.client_streaming,
                "server streams": method.server_streaming,
            }
    return facts


def differences(ours, theirs, newer=frozenset()):
    """Lists in words what differs; `newer` names what only we may have."""
    problems = [f"missing: {name}" for name in sorted(theirs.keys() - ours.keys())]
    problems += [f"unknown to the wheel: {name}" for name in sorted(ours.keys() - theirs.keys() - newer)]
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            problems.append(f"differs: {name}: {ours[name]}, the wheel has {theirs[name]}")
    return problems


def descriptor_of(module):
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return compile_descriptors(tmp_path_factory.mktemp("descriptors"))


def test_model_config_is_that_of_the_wheel(ours):
    from tritonclient.grpc import model_config_pb2

    theirs = facts_of_file(descriptor_of(model_config_pb2))
    assert differences(facts_of_file(ours["model_config.proto"]), theirs, NEWER_THAN_THE_WHEEL) == []


def test_grpc_service_is_that_of_the_wheel(ours):
    from tritonclient.grpc import service_pb2

    theirs = facts_of_file(descriptor_of(service_pb2))
    assert differences(facts_of_file(ours["grpc_service.proto"]), theirs, NEWER_THAN_THE_WHEEL) == []


def test_what_is_newer_than_the_wheel_is_there(ours):
    facts = facts_of_file(ours["model_config.proto"]) | facts_of_file(ours["grpc_service.proto"])
    assert NEWER_THAN_THE_WHEEL <= facts.keys()
    limit = facts["field inference.ModelEnsembling.max_inflight_requests"]
    assert (limit["number"], limit["type"], limit["label"]) == (2, "TYPE_UINT32", "LABEL_OPTIONAL")


def test_health_is_the_standard_protocol(ours):
    # The wheel has no health messages; these are the published grpc.health.v1, Check and Watch.
    facts = facts_of_file(ours["health.proto"])
    package = "grpc.health.v1"
    request, response = f".{package}.HealthCheckRequest", f".{package}.HealthCheckResponse"
    unary = {"input": request, "output": response, "client streams": False, "server streams": False}
    assert facts[f"method {package}.Health/Check"] == unary
    assert facts[f"method {package}.Health/Watch"] == {**unary, "server streams": True}
    service = facts[f"field {package}.HealthCheckRequest.service"]
    status = facts[f"field {package}.HealthCheckResponse.status"]
    assert (service["number"], service["type"]) == (1, "TYPE_STRING")
    assert (status["number"], status["type"]) == (1, "TYPE_ENUM")
    values = {
        name.rsplit(".", 1)[1]: fact["number"] for name, fact in facts.items() if name.startswith("value ")
    }
    assert values == {"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3}


def test_the_comparison_notices_every_kind_of_change(ours):
    original = ours["grpc_service.proto"]
    facts = facts_of_file(original)

    def changed(edit):
        copy = descriptor_pb2.FileDescriptorProto()
        copy.CopyFrom(original)
        edit(copy)
        return differences(facts_of_file(copy), facts)

    def message(file, name):
        return next(m for m in file.message_type if m.name == name)

    assert changed(lambda f: None) == []
    assert changed(lambda f: setattr(message(f, "ModelInferRequest").field[0], "number", 99))
    assert changed(lambda f: setattr(message(f, "ModelInferRequest").field[0], "name", "modelname"))
    assert changed(lambda f: setattr(message(f, "ModelInferRequest").field[0], "type", 12))
    assert changed(lambda f: setattr(message(f, "ModelInferRequest").field[0], "label", 3))
    assert changed(lambda f: message(f, "InferParameter").field[0].ClearField("oneof_index"))
    assert changed(lambda f: message(f, "TraceSettingRequest").nested_type[1].options.Clear())
    assert changed(lambda f: message(f, "ModelInferRequest").field.pop())
    assert changed(lambda f: setattr(f.service[0].method[0], "server_streaming", True))
    assert changed(lambda f: f.service[0].method.pop())
    assert changed(lambda f: setattr(f, "package", "other"))
