# SPDX-License-Identifier: Apache-2.0
"""The servers that are compared: where their files are, and how each is asked.

A server's folder has one folder for each workload, with all that its user writes: `start`, the command for
sh, and the files that the command reads. The bench copies it, adds the model or the function, and starts it with
PORT, GRPC_PORT and METRICS_PORT in the environment. The servers from PyPI have requirements.txt beside these.
"""

import dataclasses
import json
import os
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
JSON = "Content-Type: application/json"
ROW = 256  # numbers in a request


@dataclasses.dataclass(frozen=True)
class Request:
    path: str
    body: bytes
    headers: tuple = (JSON,)


# --- The protocols: each makes a request from a row, and reads the row of a reply ----------------


class Protocol:
    """JSON with the lists that users of these packages write themselves."""

    def __init__(self, path, given, received, is_batch=False):
        self.path, self.given, self.received, self.is_batch = path, given, received, is_batch

    def request(self, workload, row):
        values = [row.tolist()] if self.is_batch else row.tolist()
        document = {self.given: values} if self.given else values
        return Request(self.path, json.dumps(document, separators=(",", ":")).encode())

    def read(self, body):
        document = json.loads(body)
        return np.asarray(document[self.received] if self.received else document, np.float32).reshape(-1)


class OpenInference:
    """The protocol of KServe and Triton, all of it JSON."""

    def request(self, workload, row):
        tensor = {"name": "INPUT0", "shape": [1, row.size], "datatype": "FP32", "data": row.tolist()}
        body = json.dumps({"inputs": [tensor]}, separators=(",", ":")).encode()
        return Request(f"/v2/models/{workload.model}/infer", body)

    def read(self, body):
        return np.asarray(json.loads(body)["outputs"][0]["data"], np.float32)


class BinaryOpenInference:
    """The same with its extension for binary tensors."""

    def request(self, workload, row):
        data = row.tobytes()
        tensor = {"name": "INPUT0", "shape": [1, row.size], "datatype": "FP32"}
        tensor["parameters"] = {"binary_data_size": len(data)}
        document = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
        head = json.dumps(document, separators=(",", ":")).encode()
        headers = ("Content-Type: application/octet-stream", f"Inference-Header-Content-Length: {len(head)}")
        return Request(f"/v2/models/{workload.model}/infer", head + data, headers)

    def read(self, body):
        # The tensor is the end of the reply, behind JSON whose length stands in a header.
        return np.frombuffer(body[-4 * ROW :], np.float32)


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str  # of its folder
    title: str
    protocols: dict  # by what they are called in the tables
    package: str = ""  # on PyPI, whose version the tables name
    env: tuple = ()  # what a measurement wants and users need not care about: nothing is reported home
    of: str = ""  # the server whose packages it runs with, if not its own

    def folder(self, workload):
        return HERE / self.name / workload.name

    @property
    def requirements(self):
        return HERE / (self.of or self.name) / "requirements.txt"


OPEN_INFERENCE = {"JSON": OpenInference(), "binary": BinaryOpenInference()}
PEERS = (
    Peer("nereid", "Nereid", OPEN_INFERENCE),
    Peer("triton", "Triton", OPEN_INFERENCE),
    # Ray gives its workers the lowest priority but for four; on a machine with neighbours they would starve.
    Peer(
        "ray_serve", "Ray Serve", {"JSON": Protocol("/", "input", "output")}, "ray",
        (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_worker_niceness", "0")),
    ),
    Peer(
        "bentoml", "BentoML", {"JSON": Protocol("/predict", "rows", None, is_batch=True)}, "bentoml",
        (("BENTOML_DO_NOT_TRACK", "True"),),
    ),
    Peer("litserve", "LitServe", {"JSON": Protocol("/predict", "input", "output")}, "litserve"),
    Peer("mlserver", "MLServer", {"JSON": OpenInference()}, "mlserver"),
)

# Not in the tables of docs/performance.md: asked for by name, as docs/ray.md says.
BY_NAME = (
    Peer(
        "nereid_ray", "nereid.ray", OPEN_INFERENCE, "ray",
        (("RAY_worker_niceness", "0"),), of="ray_serve",
    ),
)


def lines_written(folder):
    """Lines of the files in a folder that are neither empty nor comments."""
    lines = []
    # Triton's ONNX model is a link to ours, and its user writes it as well.
    for root, _, files in os.walk(folder, followlinks=True):
        for file in files:
            lines += map(str.strip, pathlib.Path(root, file).read_text().splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))
