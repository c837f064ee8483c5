# SPDX-License-Identifier: Apache-2.0
"""The module that a Python model imports:

    import triton_python_backend_utils as pb_utils

Compatible with the module of that name in Triton Inference Server."""

import json

import numpy as np

from nereid_python.calls import ResponseIterator
from nereid_python.errors import TritonError, TritonModelException
from nereid_python.native import get_input_tensor_by_name
from nereid_python.requests import (
    InferenceRequest,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
from nereid_python.responses import InferenceResponse, InferenceResponseSender
from nereid_python.services import (
    Logger,
    LogLevel,
    Metric,
    MetricFamily,
    MetricKind,
    get_model_dir,
    is_model_ready,
    load_model,
    unload_model,
)
from nereid_python.tensors import _NUMPY_TYPES, Tensor, deserialize, serialize

__all__ = [
    "InferenceRequest", "InferenceResponse", "InferenceResponseSender", "InferenceTrace", "Logger",
    "LogLevel", "MemoryType", "Metric", "MetricFamily", "MetricKind", "ModelConfig",
    "PreferredMemory", "ResponseIterator", "Tensor", "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU", "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START", "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE", "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    "TRITON_STRING_TO_NUMPY", "TritonError", "TritonModelException", "deserialize_bytes_tensor",
    "get_input_config_by_name", "get_input_tensor_by_name", "get_model_dir",
    "get_output_config_by_name", "get_output_tensor_by_name", "is_model_ready", "load_model",
    "numpy_to_triton_type", "serialize_byte_tensor", "triton_string_to_numpy",
    "triton_to_numpy_type", "unload_model", "using_decoupled_model_transaction_policy",
]

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU

TRITON_STRING_TO_NUMPY = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


class _SharedMemory:
    """Triton's tests read this; memory without a fixed size always has the same amount left."""

    def free_memory(self):
        return 1 << 30


def serialize_byte_tensor(input_tensor):
    """Returns the encoded bytes of an array of texts; an empty tuple for an empty one, None for an array
    of another type."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype == np.object_ or input_tensor.dtype.type is np.bytes_:
        return serialize(input_tensor)
    return None


def deserialize_bytes_tensor(encoded_tensor):
    """Decodes the bytes of serialize_byte_tensor() into a flat array of bytes objects."""
    return deserialize(encoded_tensor)


def _by_name(tensors, name):
    for tensor in tensors:
        if tensor._name == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response, name):
    """Returns the output of this name, or None."""
    return _by_name(inference_response.output_tensors(), name)


def _config_by_name(model_config, kind, name):
    for properties in model_config.get(kind, ()):
        if properties["name"] == name:
            return properties
    return None


def get_input_config_by_name(model_config, name):
    """Returns the input of this name in a model's configuration, a dict, or None."""
    return _config_by_name(model_config, "input", name)


def get_output_config_by_name(model_config, name):
    """Returns the output of this name in a model's configuration, a dict, or None."""
    return _config_by_name(model_config, "output", name)


def using_decoupled_model_transaction_policy(model_config):
    """Returns whether a model is decoupled by its configuration, a dict."""
    policy = model_config.get("model_transaction_policy")
    return policy["decoupled"] if policy is not None else False


_TYPES = dict(_NUMPY_TYPES)
_TYPES[13] = np.object_


def triton_to_numpy_type(data_type):
    """The numpy type of a data type's number; None for one that has none."""
    return _TYPES.get(data_type)


def numpy_to_triton_type(data_type):
    """The number of the data type of a numpy type; None for one that has none."""
    for number, kind in _TYPES.items():
        if data_type == kind:
            return number
    return 13 if data_type == np.bytes_ else None


def triton_string_to_numpy(triton_type_string):
    """The numpy type of a data type as configurations spell it."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


class ModelConfig:
    """A model's configuration, which auto_complete_config() completes."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config)

    def as_dict(self):
        """Returns the configuration, which must not be changed."""
        return self._model_config

    @property
    def _name(self):
        return self._model_config["name"]

    def set_max_batch_size(self, max_batch_size):
        """Sets max_batch_size. Raises ValueError if the configuration has a larger one."""
        given = self._model_config["max_batch_size"]
        if given > max_batch_size:
            raise ValueError(
                "configuration specified max_batch_size %s, but in auto-complete-config function for "
                "model '%s' specified max_batch_size %s" % (given, self._name, max_batch_size)
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        """Enables dynamic batching. Raises ValueError if the configuration has another scheduler."""
        for scheduler in ("sequence_batching", "ensemble_scheduling"):
            if scheduler in self._model_config:
                raise ValueError(
                    "Configuration specified scheduling_choice as '%s', but auto-complete-config "
                    "function for model '%s' tries to set scheduling_choice as 'dynamic_batching'"
                    % (scheduler, self._name)
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input):
        """Adds an input, a dict of name, data_type, dims and perhaps optional; or completes the one of
        that name. Raises ValueError when they contradict each other."""
        self._add("input", input, ("name", "data_type", "dims", "optional"),
                  "'name', 'data_type', 'dims' and 'optional'")

    def add_output(self, output):
        """Like add_input, for an output, which cannot be optional."""
        self._add("output", output, ("name", "data_type", "dims"), "'name', 'data_type' and 'dims'")

    def _add(self, kind, tensor, allowed, allowed_text):
        where = "in auto-complete-config function for model '%s'" % self._name
        for key in tensor:
            if key not in allowed:
                raise ValueError(
                    "%s '%s' %s contains property other than %s."
                    % (kind, tensor["name"], where, allowed_text)
                )
        if "name" not in tensor:
            raise ValueError("%s %s is missing 'name' property." % (kind, where))
        for key in ("data_type", "dims"):
            if key not in tensor:
                raise ValueError(
                    "%s '%s' %s is missing '%s' property." % (kind, tensor["name"], where, key)
                )
        given = _config_by_name(self._model_config, kind, tensor["name"])
        if given is None:
            self._model_config[kind].append(tensor)
            return
        self._check(kind, given, tensor)
        for key in allowed[1:]:
            if key in tensor:
                given[key] = tensor[key]

    def _check(self, kind, given, tensor):
        name = tensor["name"]
        if given["data_type"] not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                "unable to load model '%s', configuration expects datatype %s for %s '%s', model "
                "provides %s" % (self._name, given["data_type"], kind, name, tensor["data_type"])
            )
        what = "model '%s', tensor '%s': the model expects " % (self._name, name)
        if given["dims"] and given["dims"] != tensor["dims"]:
            raise ValueError(
                what + "dims %s but the model configuration specifies dims %s"
                % (tensor["dims"], given["dims"])
            )
        if "optional" in given and "optional" in tensor and given["optional"] != tensor["optional"]:
            raise ValueError(
                what + "optional %s but the model configuration specifies optional %s"
                % (tensor["optional"], given["optional"])
            )

    def set_model_transaction_policy(self, transaction_policy_dict):
        """Raises ValueError for what a policy does not have, and for a contradiction."""
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(
                    "model transaction property in auto-complete-config function for model '%s' "
                    "contains property other than 'decoupled'." % self._name
                )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", wanted) != wanted:
            raise ValueError(
                "trying to change decoupled property in auto-complete-config for model '%s', which is "
                "already set to '%s'." % (self._name, policy["decoupled"])
            )
        policy["decoupled"] = wanted
