# SPDX-License-Identifier: Apache-2.0
"""What is measured: one Row is one load, run by one tool over one protocol."""

import dataclasses

MIB_OF_FLOATS = 262144


@dataclasses.dataclass(frozen=True)
class Row:
    tool: str  # http_load, h2load, perf_analyzer/http or perf_analyzer/grpc
    model: str
    shape: tuple
    clients: int = 1
    streams: int = 1
    json: bool = False
    input: str = "INPUT0"
    is_batched: bool = False
    floor: str = ""  # the floor program that bounds it: http_echo or grpc_echo
    is_quick: bool = False  # part of --quick

    @property
    def size(self):
        count = 1
        for dim in self.shape:
            count *= dim
        if count >= MIB_OF_FLOATS:
            return f"{count // MIB_OF_FLOATS} MB"
        return f"{count} numbers in JSON" if self.json else f"{count} numbers"

    @property
    def title(self):
        at_once = f"{self.clients}×{self.streams}" if self.tool == "h2load" else f"{self.clients}"
        protocol = "gRPC" if self.tool in ("h2load", "perf_analyzer/grpc") else "HTTP"
        return f"{protocol} {self.model}, {self.size}, {at_once}"


def all_rows():
    tiny, tiny_batch = (16,), (1, 16)
    rows = [
        Row("http_load", "id", tiny, 1, floor="http_echo"),
        Row("http_load", "id", tiny, 16, floor="http_echo", is_quick=True),
        Row("http_load", "id_batched", tiny_batch, 1, is_batched=True),
        Row("http_load", "id_batched", tiny_batch, 16, is_batched=True, is_quick=True),
        Row("http_load", "id", (1000,), 1, json=True),
        Row("http_load", "id", (1000,), 16, json=True, is_quick=True),
        Row("h2load", "id", tiny, 1, 1, floor="grpc_echo"),
        Row("h2load", "id", tiny, 4, 4, floor="grpc_echo", is_quick=True),
        Row("h2load", "id", tiny, 16, 1, floor="grpc_echo", is_quick=True),
        Row("h2load", "id", tiny, 1, 64, floor="grpc_echo"),
        Row("h2load", "id_batched", tiny_batch, 4, 4, is_batched=True),
    ]
    for clients in (1, 16):
        quick = clients == 16
        rows += [
            Row("http_load", "ensemble", tiny, clients, is_quick=quick),
            Row("http_load", "ensemble_batched", tiny_batch, clients, is_batched=True, is_quick=quick),
        ]
    rows += [
        Row("http_load", "ensemble", (MIB_OF_FLOATS,), 1),
        Row("h2load", "ensemble", tiny, 4, 4),
    ]
    for mebibytes in (1, 16):
        shape, quick = (mebibytes * MIB_OF_FLOATS,), mebibytes == 1
        rows += [
            Row("http_load", "id", shape, 1, floor="http_echo", is_quick=quick),
            Row("http_load", "id", shape, 4, floor="http_echo"),
            Row("h2load", "id", shape, 1, 1, floor="grpc_echo", is_quick=quick),
            Row("h2load", "id", shape, 1, 4, floor="grpc_echo"),
        ]
    for model, shape, name in (("digits", (1, 64), "pixels"), ("mlp", (1, 256), "INPUT0")):
        for clients in (1, 16, 64):
            quick = clients == 16
            rows += [
                Row("http_load", model, shape, clients, input=name, is_batched=True, is_quick=quick),
                Row("h2load", model, shape, clients, 1, input=name, is_batched=True, is_quick=quick),
            ]
    for protocol in ("http", "grpc"):
        tool = f"perf_analyzer/{protocol}"
        rows += [
            Row(tool, "id", tiny, 1, is_quick=True),
            Row(tool, "id", tiny, 16),
            Row(tool, "id_batched", tiny_batch, 16, is_batched=True),
            Row(tool, "digits", (1, 64), 16, input="pixels", is_batched=True),
            Row(tool, "id", (MIB_OF_FLOATS,), 1),
        ]
    return rows
