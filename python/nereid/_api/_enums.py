# SPDX-License-Identifier: Apache-2.0
"""Enumerations of the C API, with its numbers."""

import enum


class DataType(enum.IntEnum):
    """Element types of tensors."""

    INVALID = 0
    BOOL = 1
    UINT8 = 2
    UINT16 = 3
    UINT32 = 4
    UINT64 = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FP16 = 10
    FP32 = 11
    FP64 = 12
    BYTES = 13
    BF16 = 14


class MemoryType(enum.IntEnum):
    """Where memory lies."""

    CPU = 0
    CPU_PINNED = 1
    GPU = 2


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, as DLPack numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16


class ModelControlMode(enum.IntEnum):
    """Who decides which models are loaded: the start, polling, or `load` and `unload`."""

    NONE = 0
    POLL = 1
    EXPLICIT = 2


class RateLimitMode(enum.IntEnum):
    """Whether instances compete for resources."""

    OFF = 0
    EXEC_COUNT = 1


class InstanceGroupKind(enum.IntEnum):
    """What a model instance runs on."""

    AUTO = 0
    CPU = 1
    GPU = 2
    MODEL = 3


class LogFormat(enum.IntEnum):
    """How log lines begin."""

    DEFAULT = 0
    ISO8601 = 1


class LogLevel(enum.IntEnum):
    """Severity of a log line."""

    INFO = 0
    WARN = 1
    ERROR = 2
    VERBOSE = 3


class MetricFormat(enum.IntEnum):
    """Form of the metrics page."""

    PROMETHEUS = 0


class MetricKind(enum.IntEnum):
    """What a metric does with its values."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class ModelBatchFlag(enum.IntFlag):
    """How requests to a model are batched."""

    UNKNOWN = 1
    FIRST_DIM = 2


class ModelTxnPropertyFlag(enum.IntFlag):
    """Whether a model sends one response to each request, or any number."""

    ONE_TO_ONE = 1
    DECOUPLED = 2


class RequestFlag(enum.IntFlag):
    """Where in its sequence a request stands."""

    SEQUENCE_START = 1
    SEQUENCE_END = 2
