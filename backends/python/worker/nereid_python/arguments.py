# SPDX-License-Identifier: Apache-2.0
"""Checks what models pass to the classes of pb_utils, and brings it into one form."""

import json
import operator

import numpy as np

from .errors import TritonModelException


def parameters_json(parameters):
    if parameters is None:
        return "{}"
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect dict, got %s" % type(parameters))
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(
                "Expect parameters keys to have type str, found type %s" % type(key)
            )
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )
    return json.dumps(parameters)


def require(condition, what, value):
    if not condition:
        raise TypeError(
            "incompatible arguments: %s must not be %s" % (what, type(value).__name__)
        )


def text_of(value):
    # Models pass on texts from BYTES tensors.
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else value


def plain(value):
    """Returns an integer or a boolean of numpy's, or of another library's, as Python's own; anything else as it
    is."""
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    try:
        return operator.index(value)
    except TypeError:
        return value


def number_of(value):
    """Returns a number, of Python's or another library's, as a float. Raises TypeError for anything else."""
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise TypeError("the value must be a number, not %s" % type(value).__name__)


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)
