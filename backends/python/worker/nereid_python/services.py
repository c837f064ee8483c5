# SPDX-License-Identifier: Apache-2.0
"""The server's services for a model besides inference: log, metrics, control of other models."""

import enum
import json
import struct
import sys

from . import protocol as p
from .arguments import number_of, plain
from .errors import TritonModelException
from .session import session


def _ask(kind, payload):
    """Makes a call; returns its reply, or raises an exception with the server's text."""
    outcome, answer = session.memory.ask(kind, payload)
    if outcome != p.OK:
        raise TritonModelException(
            "Failed to process the request for model '%s', message: %s"
            % (session.name, answer.decode("utf-8", "replace"))
        )
    return answer


class LogLevel(enum.Enum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


def _log(level, message, depth=2):
    if not isinstance(message, str) or not isinstance(level, LogLevel):
        raise TypeError(
            "incompatible arguments: expected a str and a level, got %s and %s"
            % (type(message).__name__, type(level).__name__)
        )
    frame = sys._getframe(depth)
    file, line = frame.f_code.co_filename, frame.f_lineno
    if session.has_calls:
        session.tell(
            p.LOG,
            struct.pack("<II", level.value, line)
            + p.sized(p.for_people(file))
            + p.sized(p.for_people(message)),
        )
    else:
        sys.stderr.write("%s %s:%d] %s\n" % (level.name[0], file, line, message))


class Logger:
    """pb_utils.Logger."""

    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message, level=LogLevel.INFO):
        _log(level, message)

    @staticmethod
    def log_info(message):
        _log(LogLevel.INFO, message)

    @staticmethod
    def log_warn(message):
        _log(LogLevel.WARNING, message)

    @staticmethod
    def log_error(message):
        _log(LogLevel.ERROR, message)

    @staticmethod
    def log_verbose(message):
        _log(LogLevel.VERBOSE, message)


class MetricKind(enum.IntEnum):
    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class Metric:
    """pb_utils.Metric; made by MetricFamily.Metric()."""

    def __init__(self, number):
        self._number = number
        self._generation = session.generation
        self._is_cleared = False

    def _change(self, kind, what, value):
        self._ask(kind, what, struct.pack("<Qd", self._number, number_of(value)))

    def _ask(self, kind, what, payload):
        try:
            if self._is_cleared:
                raise TritonModelException(
                    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. "
                    "The 'MetricFamily' object should be deleted AFTER its corresponding 'Metric' "
                    "objects have been deleted."
                )
            return _ask(kind, payload)
        except TritonModelException as error:
            raise TritonModelException("Failed to %s metric value: %s" % (what, error)) from None

    def increment(self, value):
        self._change(p.METRIC_INCREMENT, "increment", value)

    def set(self, value):
        self._change(p.METRIC_SET, "set", value)

    def observe(self, value):
        self._change(p.METRIC_OBSERVE, "observe", value)

    def value(self):
        return p.F64.unpack(self._ask(p.METRIC_VALUE, "get", p.U64.pack(self._number)))[0]

    def _clear(self):
        if not self._is_cleared:
            self._is_cleared = True
            if session.owns(self):
                session.memory.ask(p.METRIC_DELETE, p.U64.pack(self._number))

    def __del__(self):
        self._clear()


class MetricFamily:
    """pb_utils.MetricFamily."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name, description, kind):
        self._number = None
        self._generation = session.generation
        if not isinstance(name, str) or not isinstance(description, str) or not isinstance(
            kind, MetricKind
        ):
            raise TypeError("MetricFamily(): expected two str and a kind of metric")
        self._kind = kind
        self._metrics = []
        try:
            answer = _ask(
                p.METRIC_FAMILY_NEW, p.U64.pack(kind.value) + p.sized(name) + p.sized(p.for_people(description))
            )
        except TritonModelException as error:
            raise TritonModelException("Error when creating MetricFamily: %s" % error) from None
        self._number = p.U64.unpack(answer)[0]

    def Metric(self, labels=None, buckets=None):
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is not None:
            if not isinstance(buckets, list):
                raise TritonModelException("Failed to create metric. Buckets must be a list.")
            if self._kind != MetricKind.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        elif self._kind == MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        values = [float(bucket) for bucket in buckets or ()]
        try:
            answer = _ask(
                p.METRIC_NEW,
                p.U64.pack(self._number)
                + p.sized(json.dumps(labels))
                + struct.pack("<QQ%dd" % len(values), buckets is not None, len(values), *values),
            )
        except TritonModelException as error:
            raise TritonModelException("Error when creating Metric: %s" % error) from None
        metric = Metric(p.U64.unpack(answer)[0])
        self._metrics.append(metric)
        return metric

    def __del__(self):
        if self._number is None or not session.owns(self):
            return
        for metric in self._metrics:
            metric._clear()
        session.memory.ask(p.METRIC_FAMILY_DELETE, p.U64.pack(self._number))


def load_model(model_name, config="", files=None):
    """pb_utils.load_model."""
    if not isinstance(model_name, str) or not isinstance(config, str):
        raise TypeError("load_model(): the name and the config must be str")
    if files is None:
        files = {}
    if not isinstance(files, dict):
        raise TritonModelException(
            "failed to load model '%s', files should be a dictionary of file paths and file contents"
            % model_name
        )
    files = list(files.items())
    payload = p.sized(model_name) + p.sized(config) + p.U64.pack(len(files))
    for path, content in files:
        payload += p.sized(path) + p.sized(bytes(content))
    try:
        _ask(p.LOAD_MODEL, payload)
    except TritonModelException as error:
        raise TritonModelException("Failed to load model: %s" % error) from None


def unload_model(model_name, unload_dependents=False):
    """pb_utils.unload_model."""
    unload_dependents = plain(unload_dependents)
    if not isinstance(model_name, str) or not isinstance(unload_dependents, bool):
        raise TypeError("unload_model(): expected a str and a bool")
    try:
        _ask(p.UNLOAD_MODEL, p.sized(model_name) + p.U64.pack(unload_dependents))
    except TritonModelException as error:
        raise TritonModelException("Failed to unload model: %s" % error) from None


def is_model_ready(model_name, model_version=""):
    """pb_utils.is_model_ready."""
    if not isinstance(model_name, str) or not isinstance(model_version, str):
        raise TypeError("is_model_ready(): the name and the version must be str")
    try:
        answer = _ask(p.IS_MODEL_READY, p.sized(model_name) + p.sized(model_version))
    except TritonModelException as error:
        raise TritonModelException("Failed to check model readiness: %s" % error) from None
    return p.U64.unpack(answer)[0] != 0


def get_model_dir():
    """pb_utils.get_model_dir: the folder of the model's version."""
    return session.model_dir
