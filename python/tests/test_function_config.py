# SPDX-License-Identifier: Apache-2.0
"""The configuration of a function in protobuf's text format, for every field that a configuration has."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, text_format

import nereid
from nereid._functions import _repository

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


@pytest.fixture(scope="module")
def message_class(tmp_path_factory):
    """The class of ModelConfig as proto/model_config.proto describes it."""
    out = tmp_path_factory.mktemp("descriptors") / "config.pb"
    protoc = shutil.which("protoc")
    command = [protoc] if protoc else [sys.executable, "-m", "grpc_tools.protoc"]
    subprocess.run(
        [*command, f"--proto_path={PROTO}", f"--descriptor_set_out={out}", "model_config.proto"], check=True
    )
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def values_of(field, is_in_list=False):
    """A value for each leaf below the field, as Python programs write it."""
    if is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        for one in values_of(value):
            yield {"a key" if key.type == key.TYPE_STRING else 7: one}
    elif field.is_repeated and not is_in_list:
        for one in values_of(field, True):
            yield [one]
    elif field.message_type is not None:
        yield {}
        for inner in field.message_type.fields:
            for one in values_of(inner):
                yield {inner.name: one}
    elif field.enum_type is not None:
        yield from (value.name for value in field.enum_type.values)
    else:
        yield {"string": 'a "text"', "bool": True, "float": 0.5, "double": 0.5, "bytes": "text"}.get(
            {field.TYPE_STRING: "string", field.TYPE_BOOL: "bool", field.TYPE_FLOAT: "float",
             field.TYPE_DOUBLE: "double", field.TYPE_BYTES: "bytes"}.get(field.type), 3)


def test_every_field_is_written_so_that_it_can_be_read(message_class):
    count = 0
    for field in message_class.DESCRIPTOR.fields:
        for value in values_of(field):
            text = _repository.to_text({field.name: value})
            expected = json_format.ParseDict({field.name: value}, message_class())
            assert text_format.Parse(text, message_class()) == expected, text
            count += 1
    assert count > 200


def test_the_lists_of_maps_and_enumerations_are_those_of_the_proto(message_class):
    maps, enumerations, others, seen = set(), set(), set(), set()

    def visit(message):
        if message.full_name in seen:
            return
        seen.add(message.full_name)
        for field in message.fields:
            if is_map(field):
                maps.add(field.name)
            elif field.enum_type is not None:
                enumerations.add(field.name)
            elif field.type == field.TYPE_STRING or field.message_type is not None:
                others.add((message.name, field.name))
            if field.message_type is not None:
                visit(field.message_type)

    visit(message_class.DESCRIPTOR)
    assert (_repository._MAPS, _repository._ENUMERATIONS) == (maps, enumerations)
    # A name means the same everywhere, but for the inputs of a model and of a CUDA graph.
    assert {one for one in others if one[1] in maps | enumerations} == {("ModelConfig", "input")}


@pytest.mark.parametrize("value, text", [
    (np.int64(5), "5"), (np.float32(0.5), "0.5"), (np.float64(0.5), "0.5"), (np.bool_(True), "true"),
    (True, "true"), (nereid.DataType.FP32, "11"), (2**63, "9223372036854775808"), ("x", '"x"')])
def test_numbers_of_any_make_are_written_as_numbers(value, text):
    assert _repository.to_text({"field": value}) == f"field: {text}\n"
