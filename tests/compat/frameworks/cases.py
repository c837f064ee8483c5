# SPDX-License-Identifier: Apache-2.0
"""What a case is: a model with its configuration, and requests to it."""

import dataclasses

import numpy as np
from harness import models


@dataclasses.dataclass
class Request:
    """`tensors` are (name, datatype, array); `options` are parameters of the request, such as sequence_id."""

    name: str
    tensors: list
    outputs: list | None = None
    options: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Case:
    """A model of `framework`. What its file is: (kind, datatype, dims) for openvino_models, TorchScript code,
    or `files` as they are."""

    name: str
    framework: str
    config: str
    requests: list = dataclasses.field(default_factory=list)
    code: str | None = None
    weights: dict = dataclasses.field(default_factory=dict)
    made: tuple | None = None
    files: dict | None = None
    file_name: str | None = None


def values(datatype, *shape, seed=5):
    """Small numbers, which any type can add without going over its limits."""
    rng = np.random.default_rng(seed)
    if datatype in ("BOOL", "BYTES"):
        return models.random_tensor(rng, datatype, shape)
    return rng.integers(0, 50, shape).astype(models.TYPES[datatype][1])


def fp32(*names, dims=(4,), extra=""):
    return [(name, "FP32", dims, extra) for name in names]


def request(name, *tensors, datatype="FP32", **more):
    """Tensors are (name, shape), with values of `datatype`; or (name, datatype, array)."""
    made = [t if len(t) == 3 else (t[0], datatype, values(datatype, *t[1])) for t in tensors]
    return Request(name, made, **more)


def mistakes(first, second, output, width=4, batched=True):
    """Requests that do not fit a model with these two FP32 inputs of `width` elements."""
    lead = (1,) if batched else ()
    good = [(first, (*lead, width)), (second, (*lead, width))]
    return [
        request("no input", good[0]),
        request("an unknown input", *good, ("other", (*lead, width))),
        request("an input twice", good[0], good[0]),
        request("another type", *good, datatype="INT32"),
        request("one type of two", (first, "INT64", values("INT64", *lead, width)), good[1]),
        request("a dimension more", *[(n, (*s, 1)) for n, s in good]),
        request("a dimension less", *[(n, s[1:]) for n, s in good]),
        request("too wide", *[(n, (*lead, width + 1)) for n, s in good]),
        request("no elements", *[(n, (*lead, 0)) for n, s in good]),
        request("one output", *good, outputs=[output]),
        request("an unknown output", *good, outputs=["other"]),
        request("an output twice", *good, outputs=[output, output]),
    ]


def batches(*names, width=4, most=8):
    """Batches of every interesting size."""
    sizes = (1, 2, most, most + 1, 0)
    return [request(f"{n} rows", *[(name, (n, width)) for name in names]) for n in sizes] + [
        request("batches of two sizes", *[(name, (i + 1, width)) for i, name in enumerate(names)])
    ]
