# SPDX-License-Identifier: Apache-2.0
"""Requests to a model, and those that it makes itself."""

import enum

from . import native
from .arguments import is_int, parameters_json, plain, require, text_of
from .calls import infer, stream
from .errors import TritonModelException
from .responses import RELEASE_ALL, InferenceResponseSender, is_cancelled
from .session import session
from .tensors import Tensor


class MemoryType(enum.Enum):
    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2


class PreferredMemory:
    """pb_utils.PreferredMemory. Outputs are in the memory of the CPU in any case."""

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        require(isinstance(preferred_memory_type, MemoryType), "preferred_memory_type",
                 preferred_memory_type)
        preferred_device_id = plain(preferred_device_id)
        require(is_int(preferred_device_id), "preferred_device_id", preferred_device_id)
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class InferenceTrace:
    """pb_utils.InferenceTrace."""

    __slots__ = ("_handle", "_context")

    def __init__(self):
        self._handle = 0
        self._context = ""

    def get_context(self):
        return self._context or None


class InferenceRequest(native.Request):
    """pb_utils.InferenceRequest."""

    __slots__ = (
        "_id",
        "_correlation_id",
        "_timeout",
        "_parameters",
        "_model_name",
        "_model_version",
        "_preferred_memory",
        "_trace",
        "__weakref__",
    )

    def __init__(
        self,
        request_id="",
        correlation_id=0,
        inputs=None,
        requested_output_names=None,
        model_name=None,
        model_version=-1,
        flags=0,
        timeout=0,
        preferred_memory=None,
        trace=None,
        parameters=None,
    ):
        request_id = text_of(request_id)
        model_name = text_of(model_name)
        correlation_id, model_version, flags, timeout = map(
            plain, (correlation_id, model_version, flags, timeout))
        require(isinstance(request_id, str), "request_id", request_id)
        require(correlation_id is not None, "correlation_id", correlation_id)
        require(isinstance(inputs, (list, tuple)), "inputs", inputs)
        require(isinstance(requested_output_names, (list, tuple, set, frozenset)),
                 "requested_output_names", requested_output_names)
        require(isinstance(model_name, str), "model_name", model_name)
        require(is_int(model_version), "model_version", model_version)
        require(is_int(flags) and flags >= 0, "flags", flags)
        require(is_int(timeout) and timeout >= 0, "timeout", timeout)
        require(preferred_memory is None or isinstance(preferred_memory, PreferredMemory),
                 "preferred_memory", preferred_memory)
        require(trace is None or isinstance(trace, InferenceTrace), "trace", trace)
        inputs = list(inputs)
        for tensor in inputs:
            if tensor is None:
                raise TritonModelException(
                    "Input tensor for request with id '%s' and model name '%s' should not be empty."
                    % (request_id, model_name)
                )
            require(isinstance(tensor, Tensor), "an element of inputs", tensor)
        requested_output_names = [text_of(name) for name in requested_output_names]
        for name in requested_output_names:
            require(isinstance(name, str), "an element of requested_output_names", name)
            if not name:
                raise TritonModelException(
                    "Requested output name for request with id '%s' and model name '%s' should not "
                    "be empty." % (request_id, model_name)
                )
        if not is_int(correlation_id) and not isinstance(correlation_id, str):
            raise TritonModelException("Correlation ID must be integer or string")
        self._id = request_id
        self._correlation_id = correlation_id
        self._inputs = inputs
        self._outputs = frozenset(requested_output_names)
        self._model_name = model_name
        self._model_version = model_version
        self._flags = flags
        self._timeout = timeout
        self._preferred_memory = preferred_memory
        self._trace = trace
        self._parameters = parameters_json(parameters)
        self._release_flags = RELEASE_ALL
        self._sender = None

    def _read_texts(self):
        """Reads the details of the request, which most models do not use."""
        correlation, is_text, self._timeout, *texts = self._details()
        texts = [text.decode("utf-8", "surrogateescape") for text in texts]
        self._id = texts[0]
        self._correlation_id = texts[1] if is_text else correlation
        self._parameters = texts[2] or "{}"
        trace = InferenceTrace()
        trace._handle = self._handle
        trace._context = texts[3]
        self._trace = trace
        self._model_name = session.model_name
        self._model_version = session.model_version
        self._preferred_memory = None

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation_id

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        flags = plain(flags)
        require(is_int(flags) and flags >= 0, "flags", flags)
        self._flags = flags

    def timeout(self):
        return self._timeout

    def parameters(self):
        return self._parameters

    def trace(self):
        return self._trace if self._trace is not None else InferenceTrace()

    def preferred_memory(self):
        return self._preferred_memory

    def model_name(self):
        return self._model_name

    def model_version(self):
        return self._model_version

    def requested_output_names(self):
        return set(self._outputs)

    def set_release_flags(self, flags):
        flags = plain(flags)
        require(is_int(flags) and flags >= 0, "flags", flags)
        self._release_flags = flags

    def get_response_sender(self):
        sender = self._sender
        if sender is None:
            made = InferenceResponseSender(self._handle, self._outputs)
            sender = self._keep_sender(made)
            if sender is not made:
                made._close()  # the other one completes the request
        return sender

    def is_cancelled(self):
        handle = self._handle
        return handle is not None and is_cancelled(handle)

    def exec(self, decoupled=False):
        decoupled = plain(decoupled)
        require(isinstance(decoupled, bool), "decoupled", decoupled)
        if not session.may_infer:
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        return stream(self) if decoupled else infer(self)

    def async_exec(self, decoupled=False):
        decoupled = plain(decoupled)
        require(isinstance(decoupled, bool), "decoupled", decoupled)
        import asyncio  # the caller has imported it already

        return asyncio.get_running_loop().run_in_executor(None, self._exec_ahead, decoupled)

    def _exec_ahead(self, decoupled):
        """Like exec(), but waiting for the first response does not block the event loop."""
        result = self.exec(decoupled)
        if decoupled:
            result._look_ahead()
        return result


class _Lazy:
    """A slot that is read from the request's block on first use."""

    def __init__(self, slot):
        self._slot = slot

    def __get__(self, request, kind):
        try:
            return self._slot.__get__(request, kind)
        except AttributeError:
            if request is None or request._handle is None:
                raise
            request._read_texts()
            return self._slot.__get__(request, kind)

    def __set__(self, request, value):
        self._slot.__set__(request, value)


for _slot in (
    "_id",
    "_correlation_id",
    "_parameters",
    "_trace",
    "_timeout",
    "_model_name",
    "_model_version",
    "_preferred_memory",
):
    setattr(InferenceRequest, _slot, _Lazy(InferenceRequest.__dict__[_slot]))
