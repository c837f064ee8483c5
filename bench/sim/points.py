# SPDX-License-Identifier: Apache-2.0
"""The loads that are both measured and simulated, on models whose time is waiting: so that three replicas, a balancer and
the clients fit one small machine."""

import dataclasses

from sim import batching

# What the models wait: seconds, and seconds more for each row of a batch.
WAITS = {"path": (0.0, 0.0), "eager": (0.004, 0.001), "delayed": (0.004, 0.001), "pair": (0.005, 0.0)}
POLICIES = {
    "path": batching.Policy(),
    "eager": batching.Policy(True, 8),
    "delayed": batching.Policy(True, 8, (4, 8), 0.01),
    "pair": batching.Policy(),
}
INSTANCES = {"path": 1, "eager": 1, "delayed": 1, "pair": 2}
CONFIG = """backend: "python"
max_batch_size: {most}
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: {instances} }} ]
{batching}
"""
WAITING = """import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        time.sleep({fixed} + {per_row} * sum(len(tensor) for tensor in tensors))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", tensor)]) for tensor in tensors]
"""


def dynamic_batching(policy):
    """The part of a model's configuration that says the same as the policy."""
    if not policy.is_dynamic:
        return ""
    parts = [f"preferred_batch_size: [ {', '.join(map(str, policy.preferred))} ]"] if policy.preferred else []
    if policy.delay:
        parts.append(f"max_queue_delay_microseconds: {round(policy.delay * 1e6)}")
    return f"dynamic_batching {{ {' '.join(parts)} }}"


def configuration(model):
    return CONFIG.format(most=8, instances=INSTANCES[model], batching=dynamic_batching(POLICIES[model]))


@dataclasses.dataclass(frozen=True)
class Point:
    """A load. `front` is what is asked: "replica", or HAProxy before one ("one") or three ("least requests",
    "round robin")."""

    model: str
    front: str
    clients: int = 0
    rate: float = 0.0
    is_fitted: bool = False  # parameters come from it
    fitted: str = ""  # the figure that they make right, which so proves nothing

    @property
    def replicas(self):
        return 1 if self.front in ("replica", "one") else 3

    @property
    def load(self):
        return f"{self.clients} clients" if self.clients else f"{self.rate:g} requests/s"

    @property
    def key(self):
        return f"{self.model}, {self.front}, {self.load}"


def _closed(model, front, *clients):
    return [Point(model, front, clients=count) for count in clients]


def _open(model, front, *rates):
    return [Point(model, front, rate=rate) for rate in rates]


POINTS = [
    Point("path", "replica", clients=1, is_fitted=True, fitted="p50"),
    Point("path", "one", clients=1, is_fitted=True),
    Point("eager", "replica", clients=1, is_fitted=True, fitted="p50"),
    Point("eager", "replica", clients=32, is_fitted=True, fitted="per_second"),
    *_closed("eager", "replica", 2, 4, 8, 16),
    *_open("eager", "replica", 200, 350, 500),
    *_closed("delayed", "replica", 2, 6, 16),
    *_open("delayed", "replica", 200, 400),
    *_closed("pair", "replica", 1, 8),
    *_open("pair", "replica", 200, 300),
    *_closed("eager", "least requests", 3, 12, 48),
    *_open("eager", "least requests", 600, 1000, 1500),
    *_closed("eager", "round robin", 12),
    *_open("eager", "round robin", 1000),
    *_open("pair", "least requests", 700),
]
