# SPDX-License-Identifier: Apache-2.0
"""The requests that a load sends, as bytes of HTTP and of gRPC."""

import dataclasses
import json
import struct

# The id that sequences are written with; the load generators put another of the same length there.
SEQUENCE_ID = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input. Its content are `data`, or the bytes of a shared memory region."""

    name: str
    datatype: str
    shape: tuple
    data: bytes = b""
    region: str = ""
    size: int = 0


def floats(name, *shape):
    """Some numbers, none of them slow to compute with."""
    count = 1
    for dim in shape:
        count *= dim
    some = struct.pack("<1000f", *(i % 997 / 8 for i in range(1000)))
    return Tensor(name, "FP32", shape, (some * (count // 1000 + 1))[: 4 * count])


def integers(name, datatype, values, *shape):
    code = {"INT32": "i", "UINT32": "I", "INT64": "q"}[datatype]
    return Tensor(name, datatype, shape or (len(values),), struct.pack(f"<{len(values)}{code}", *values))


@dataclasses.dataclass(frozen=True)
class Request:
    """One inference request. `parameters` may hold sequence_id and the like; `output` names an output
    that goes into the region `output_region`."""

    model: str
    tensors: tuple
    parameters: tuple = ()
    output: str = ""
    output_region: str = ""

    # HTTP.

    def http(self):
        """(body, length of its JSON part)."""
        inputs, tail = [], b""
        for tensor in self.tensors:
            described = {"name": tensor.name, "shape": list(tensor.shape), "datatype": tensor.datatype}
            if tensor.region:
                described["parameters"] = {
                    "shared_memory_region": tensor.region,
                    "shared_memory_byte_size": tensor.size,
                }
            else:
                described["parameters"] = {"binary_data_size": len(tensor.data)}
                tail += tensor.data
            inputs.append(described)
        document = {"inputs": inputs, "parameters": dict(self.parameters)}
        if self.output_region:
            region = {
                "shared_memory_region": self.output_region,
                "shared_memory_byte_size": self.tensors[0].size,
            }
            document["outputs"] = [{"name": self.output, "parameters": region}]
        else:
            document["parameters"]["binary_data_output"] = True
        head = json.dumps(document, separators=(",", ":")).encode()
        return head + tail, len(head) if tail else 0

    def http_json(self):
        """(body, 0): all of it is JSON."""
        (tensor,) = self.tensors
        numbers = struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data)
        described = {"name": tensor.name, "shape": list(tensor.shape), "datatype": tensor.datatype}
        described["data"] = [int(n) if n == int(n) else n for n in numbers]
        return json.dumps({"inputs": [described]}, separators=(",", ":")).encode(), 0

    def generate(self):
        """(body, 0) of the generate extension."""
        document = {}
        for tensor in self.tensors:
            code = {"INT32": "i", "UINT32": "I"}[tensor.datatype]
            document[tensor.name] = list(struct.unpack(f"<{len(tensor.data) // 4}{code}", tensor.data))
        return json.dumps(document, separators=(",", ":")).encode(), 0

    # gRPC.

    def grpc(self):
        """A ModelInferRequest."""
        message = _field(1, self.model.encode())
        for key, value in self.parameters:
            message += _field(4, _field(1, key.encode()) + _field(2, _parameter(value)))
        for tensor in self.tensors:
            shape = b"".join(map(_varint, tensor.shape))
            described = _field(1, tensor.name.encode()) + _field(2, tensor.datatype.encode())
            described += _field(3, shape)
            if tensor.region:
                described += _region(4, tensor.region, tensor.size)
            message += _field(5, described)
        if self.output_region:
            described = _field(1, self.output.encode())
            message += _field(6, described + _region(2, self.output_region, self.tensors[0].size))
        return message + b"".join(_field(7, t.data) for t in self.tensors if not t.region)


def sequence(model, tensor):
    """The first, a middle and the last request of a sequence."""
    return tuple(
        Request(
            model,
            (tensor,),
            (("sequence_id", SEQUENCE_ID), ("sequence_start", start), ("sequence_end", end)),
        )
        for start, end in ((True, False), (False, False), (False, True))
    )


def repeat(count):
    """A request that is answered by `count` responses at once."""
    return Request(
        "repeat",
        (
            integers("IN", "INT32", range(count)),
            integers("DELAY", "UINT32", [0] * count),
            integers("WAIT", "UINT32", [0]),
        ),
    )


def first_output(answer):
    """The bytes of the first output in a ModelInferResponse."""
    at = 0
    while at < len(answer):
        tag, at = _read_varint(answer, at)
        size, at = _read_varint(answer, at)
        if tag >> 3 == 6:
            return answer[at : at + size]
        at += size
    return None


# Protobuf, as far as requests need it.


def _varint(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _field(number, content):
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _parameter(value):
    """An InferParameter."""
    if isinstance(value, bool):
        return b"\x08" + _varint(value)
    if isinstance(value, int):
        return b"\x10" + _varint(value)
    return _field(3, value.encode())


def _region(number, name, size):
    """The two parameters that name a shared memory region, as entries of a map."""
    return b"".join(
        _field(number, _field(1, key) + _field(2, _parameter(value)))
        for key, value in ((b"shared_memory_region", name), (b"shared_memory_byte_size", size))
    )
