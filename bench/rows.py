# SPDX-License-Identifier: Apache-2.0
"""The loads that are measured: one Row is one load, run by one tool over one protocol.

`number` is the row of the table of aims in docs/performance.md. An aim is a figure (see report.py), what
it is compared by, and the value.
"""

import dataclasses
import json
import typing

import bodies

MIB_OF_FLOATS = 262144
FLOORS = {"http_load": "http_floor", "grpc_load": "grpc_floor"}


@dataclasses.dataclass(frozen=True)
class Row:
    number: int
    group: str  # of models, which are served together: see models.py
    title: str
    tool: str  # http_load, grpc_load, h2load, perf_analyzer/http or perf_analyzer/grpc
    model: str
    make: typing.Callable  # the requests: one, or the three of a sequence
    clients: int = 1  # connections
    streams: int = 1  # of gRPC: calls at once on each connection
    form: str = "binary"  # of HTTP: binary, json or sse
    options: tuple = ()  # further ones of the load generator
    is_streaming: bool = False  # ModelStreamInfer
    is_batched: bool = False  # the first dimension is that of the batch
    unit: str = "request"  # or response: what costs and rates are counted by
    expected: typing.Callable = None  # whether an answer is right
    floor: str = ""  # what bounds it: see limits.py
    aims: tuple = ()
    rate_of: str = ""  # an open loop at 70 % of what the row of this title reached
    counts_batches: bool = False
    rounds: int = 0  # another number of rounds than the others
    is_quick: bool = False  # part of --quick
    models: tuple = ()  # of Zipf's law, instead of `model`

    @property
    def key(self):
        return f"{self.title} ({self.tool})"

    def paths(self):
        last = "generate_stream" if self.form == "sse" else "infer"
        return [f"/v2/models/{model}/{last}" for model in self.models or (self.model,)]


def size_text(count):
    return f"{count // MIB_OF_FLOATS} MB" if count >= MIB_OF_FLOATS else f"{count} floats"


def is_identity(tensor):
    """Whether an answer brings the tensor back."""

    def check(answer, is_http):
        if is_http:
            return answer.endswith(tensor.data) and b'"OUTPUT0"' in answer[: len(answer) - len(tensor.data)]
        return bodies.first_output(answer) == tensor.data

    return check


def is_same_json(answer, _):
    numbers = json.loads(answer)["outputs"][0]["data"]
    return numbers == [i % 997 / 8 for i in range(len(numbers))]


def simple(number, group, tool, model, shape, clients=1, streams=1, name="INPUT0", **more):
    """A row of one request with one tensor of floats."""
    count = shape[-1]
    at_once = f"{clients}×{streams}" if "grpc" in tool or tool == "h2load" else f"{clients}"
    protocol = "gRPC" if "grpc" in tool or tool == "h2load" else "HTTP"
    title = f"{protocol} {model}, {size_text(count)}, {at_once}"
    if more.get("form") == "json":
        title = f"{protocol} {model}, {count} floats in JSON, {at_once}"
    if model.startswith(("id", "ensemble", "cached", "python")) and "expected" not in more:
        more["expected"] = lambda *answer: is_identity(bodies.floats(name, *shape))(*answer)
    more.setdefault("title", title)
    return Row(
        number=number,
        group=group,
        tool=tool,
        model=model,
        make=lambda: [bodies.Request(model, (bodies.floats(name, *shape),))],
        clients=clients,
        streams=streams,
        **more,
    )


def identity_rows():
    small, aims = (16,), (("C", ">=", 6), ("cpu_us", "<=", 6))
    rows = [
        simple(
            1, "plain", "http_load", "id", small, clients, floor="http_floor", is_quick=clients == 16,
            aims=aims + ((("T", ">=", 4),) if clients >= 16 else ()),
        )
        for clients in (1, 16, 64)
    ]
    rows += [
        simple(1, "plain", "http_load", "id_batched", (1, 16), clients, is_batched=True, floor="http_floor")
        for clients in (1, 16)
    ]
    for clients, streams in ((1, 1), (4, 4), (16, 1), (1, 64)):
        aims = (("C", ">=", 8), ("T", ">=", 6)) + ((("cpu_us", "<=", 5),) if streams == 4 else ())
        rows.append(
            simple(
                2, "plain", "grpc_load", "id", small, clients, streams, floor="grpc_floor",
                aims=() if clients == 16 else aims, is_quick=streams == 4,
            )
        )
    rows.append(simple(2, "plain", "grpc_load", "id_batched", (1, 16), 4, 4, is_batched=True, floor="grpc_floor"))
    rows.append(simple(2, "plain", "h2load", "id", small, 4, 4, floor="grpc_floor"))
    rows += [
        simple(
            3, "plain", "http_load", "id", (1000,), clients, form="json", expected=is_same_json,
            aims=(("T", ">=", 4),), is_quick=clients == 16,
        )
        for clients in (1, 16)
    ]
    return rows


def large_rows():
    rows = []
    for mebibytes in (1, 4, 16):
        for tool, least in (("http_load", 3), ("grpc_load", 2.5)):
            aims = (("C", ">=", least if mebibytes == 16 else 2.2), ("M", ">=", 4))
            for at_once in (1, 4):
                both = (at_once, 1) if tool == "http_load" else (1, at_once)
                rows.append(
                    simple(
                        4, "plain", tool, "id", (mebibytes * MIB_OF_FLOATS,), *both, floor=FLOORS[tool], aims=aims,
                        is_quick=mebibytes == 1 and at_once == 1,
                    )
                )
    return rows


def shared_memory_rows():
    rows = []
    for mebibytes, least in ((1, 2), (16, 1.1)):
        size = mebibytes << 20
        tensor = bodies.Tensor("INPUT0", "FP32", (size // 4,), region="bench_in", size=size)
        request = bodies.Request("id", (tensor,), output="OUTPUT0", output_region="bench_out")
        for tool, protocol in (("http_load", "HTTP"), ("grpc_load", "gRPC")):
            rows.append(
                Row(
                    5, "shared memory", f"{protocol} id, {mebibytes} MB in shared memory, 1", tool, "id",
                    lambda request=request: [request], floor=f"memcpy {mebibytes}",
                    aims=(("L", ">=", least),), is_quick=mebibytes == 1,
                )
            )
    return rows


def onnx_rows():
    rows = []
    for model, shape, name, least in (("digits", (1, 64), "pixels", 4), ("mlp", (1, 256), "INPUT0", 2.5)):
        for tool in ("http_load", "grpc_load"):
            for clients in (1, 4, 16, 64):
                aims = ()
                if clients == 64:
                    aims = (("T", ">=", least), ("batch", ">=", 1.5))
                    aims += (("efficiency", ">=", 0.9),) if model == "mlp" else ()
                rows.append(
                    simple(
                        6, "onnx", tool, model, shape, clients, name=name, is_batched=True, floor=f"ort {model}",
                        aims=aims, counts_batches=True, is_quick=clients == 16 and tool == "http_load",
                    )
                )
        for tool, protocol in (("http_load", "HTTP"), ("grpc_load", "gRPC")):
            clients, streams = (128, 1) if tool == "http_load" else (4, 32)
            of = f"{protocol} {model}, {size_text(shape[-1])}, 64" + ("×1" if tool == "grpc_load" else "")
            rows.append(
                simple(
                    6, "onnx", tool, model, shape, clients, streams, name=name, is_batched=True,
                    title=f"{protocol} {model}, open loop at 70 %", rate_of=f"{of} ({tool})",
                    aims=(("L99", ">=", 2),), counts_batches=True,
                )
            )
    return rows


def python_rows():
    rows = []
    for instances in (1, 2):
        model = f"python_{instances}"
        for shape, least in (((16,), 2), ((MIB_OF_FLOATS,), 1.5)):
            for clients in (1, 16) if shape == (16,) else (1, 4):
                rows.append(
                    simple(
                        7, "python", "http_load", model, shape, clients, aims=(("T", ">=", least),),
                        is_quick=instances == 1 and clients == 16,
                    )
                )
        rows.append(simple(7, "python", "grpc_load", model, (16,), 4, 4, aims=(("T", ">=", 2),)))
    return rows


def ensemble_rows():
    rows = []
    for model, small, large in (
        ("ensemble", (16,), (4 * MIB_OF_FLOATS,)),
        ("ensemble_batched", (1, 16), (1, 4 * MIB_OF_FLOATS)),
    ):
        batched = model == "ensemble_batched"
        for tool, clients, streams in (("http_load", 1, 1), ("http_load", 16, 1), ("grpc_load", 4, 4)):
            rows.append(
                simple(
                    8, "plain", tool, model, small, clients, streams, is_batched=batched, floor=FLOORS[tool],
                    aims=(("T", ">=", 6), ("C", ">=", 10)), is_quick=clients == 16 or streams == 4,
                )
            )
        for tool in ("http_load", "grpc_load"):
            rows.append(
                simple(
                    8, "plain", tool, model, large, is_batched=batched, floor=FLOORS[tool],
                    aims=(("T", ">=", 2.5),),
                )
            )
    return rows


def sequence_rows():
    rows = []
    for model, text in (("direct", "Direct"), ("oldest", "Oldest"), ("implicit", "implicit state")):
        tensor = bodies.integers("INPUT", "INT32", [1], 1, 1)
        shared = {
            "make": lambda model=model, tensor=tensor: bodies.sequence(model, tensor),
            "options": ("--sequence-length=20",),
            "aims": (("T", ">=", 4),),
            "is_batched": True,
            "counts_batches": True,
        }
        for live in (1, 8, 64):
            title = f"gRPC stream, {text}, {live} live"
            rows.append(
                Row(
                    9, "sequences", title, "grpc_load", model, clients=1, streams=live, is_streaming=True,
                    floor="grpc_floor", is_quick=live == 8, **shared,
                )
            )
        for live in (1, 16):
            title = f"HTTP, {text}, {live} live"
            rows.append(
                Row(9, "sequences", title, "http_load", model, clients=live, floor="http_floor", **shared)
            )
    return rows


def stream_rows():
    rows, aims = [], (("T", ">=", 8), ("lost", "<=", 0))
    for tool, protocol, more in (
        ("grpc_load", "gRPC stream", {"is_streaming": True, "floor": "grpc_floor"}),
        ("http_load", "SSE", {"form": "sse", "floor": "http_floor"}),
    ):
        for count, requests in ((1, 0), (100, 0), (1000, 0), (1000, 1000)):
            title = f"{protocol}, {count} responses a request"
            options = [f"--responses={count}", "--stall=3"]
            if requests:
                title = f"{protocol}, {requests} requests of {count} responses: none lost"
                options.append(f"--requests={requests}")
            rows.append(
                Row(
                    10, "streams", title, tool, "repeat", lambda count=count: [bodies.repeat(count)],
                    unit="response", options=tuple(options), rounds=1 if requests else 0,
                    aims=aims if not requests else aims[1:], is_quick=count == 100, **more,
                )
            )
        streams = {"streams": 4} if tool == "grpc_load" else {"clients": 4}
        rows.append(
            Row(
                10, "streams", f"{protocol}, 100 responses a request, 4 at once", tool, "repeat",
                lambda: [bodies.repeat(100)], unit="response", options=("--responses=100", "--stall=3"),
                aims=aims[1:], **streams, **more,
            )
        )
    return rows


def cache_rows():
    aims = (("C", ">=", 5),)
    return [
        simple(11, "cache", "http_load", "cached", (16,), 16, floor="http_floor", aims=aims, is_quick=True),
        simple(11, "cache", "grpc_load", "cached", (16,), 4, 4, floor="grpc_floor", aims=aims),
        simple(11, "cache", "http_load", "cached", (MIB_OF_FLOATS,), 1, floor="http_floor", aims=aims),
    ]


def perf_analyzer_rows():
    rows = []
    for protocol in ("http", "grpc"):
        tool, number = f"perf_analyzer/{protocol}", 1 if protocol == "http" else 2
        rows += [
            simple(number, "plain", tool, "id", (16,), 1),
            simple(number, "plain", tool, "id_batched", (1, 16), 8, is_batched=True),
            simple(4, "plain", tool, "id", (MIB_OF_FLOATS,), 1),
        ]
    return rows


def real_rows():
    """A text detector and a text recogniser (convolutions; the second with attention) and a recurrent model
    that hears speech, of 1 to 50 ms, as a new user serves them: a file in a folder."""
    tensors = {
        "detector": (bodies.floats("x", 1, 3, 320, 320),),
        "recogniser": (bodies.floats("x", 1, 3, 48, 160),),
        "recurrent": (bodies.floats("input", 16, 512), bodies.floats("state", 2, 16, 128)),  # 16 voices
    }
    return [
        Row(
            14, "real", f"HTTP {model}, {clients}", "http_load", model,
            lambda model=model: [bodies.Request(model, tensors[model])],
            clients=clients, is_batched=model != "recurrent", counts_batches=True,
            aims=(("T", ">=", 1), ("L99", ">=", 1)),
        )
        for model in tensors
        for clients in (1, 4, 16)
    ]


def all_rows():
    rows = identity_rows() + large_rows() + shared_memory_rows() + onnx_rows() + python_rows()
    rows += ensemble_rows() + sequence_rows() + stream_rows() + cache_rows() + perf_analyzer_rows()
    rows += real_rows()
    # One server for all the rows of a group.
    groups = list(dict.fromkeys(row.group for row in rows))
    return sorted(rows, key=lambda row: (groups.index(row.group), row.number))
