# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch's Python interface as backends/pytorch/model.py and the models of its test use, on numpy.

It stands in where PyTorch is not installed; NEREID_TORCH_PYTHON runs the same test with the real one.
"""

import contextlib
import pickle

import numpy as np

from . import jit, nn  # noqa: F401
from ._tensor import Tensor

_threads = {"intra": None, "inter": None}


class _Capsule:
    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


def from_dlpack(capsule):
    return np.from_dlpack(_Capsule(capsule)).copy().view(Tensor)


def ones(*shape):
    return np.ones(shape, np.float32).view(Tensor)


def full(shape, value):
    return np.full(shape, value, np.float32).view(Tensor)


def cat(tensors, axis):
    return np.concatenate(tensors, axis).view(Tensor)


def split(tensor, sizes):
    return [part.view(Tensor) for part in np.split(tensor, np.cumsum(sizes)[:-1])]


def save(state, path):
    with open(path, "wb") as file:
        pickle.dump(state, file)


def load(path, map_location=None, *, weights_only):
    assert weights_only  # objects of other kinds could run code
    with open(path, "rb") as file:
        return pickle.load(file)


def device(name):
    return name


def set_num_threads(count):
    _threads["intra"] = count


def get_num_threads():
    return _threads["intra"]


def set_num_interop_threads(count):
    _threads["inter"] = count


def get_num_interop_threads():
    return _threads["inter"]


@contextlib.contextmanager
def inference_mode(mode=True):
    yield


def compile(module, backend="inductor", disable=False):
    def compiled(*arguments):
        if backend == "broken" and not disable:
            raise RuntimeError("no working C++ compiler found")
        return module(*arguments)

    return compiled
