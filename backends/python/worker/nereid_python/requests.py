# SPDX-License-Identifier: Apache-2.0
"""Requests to a model, its own requests to other models, responses, and senders."""

import enum
import json
import struct
import threading

from . import native, tensors
from . import protocol as p
from .errors import ErrorCode, TritonError, TritonModelException
from .session import session
from .tensors import Tensor

RELEASE_ALL, RELEASE_RESCHEDULE = 1, 2
COMPLETE_FINAL = 1
_ALIGNMENT = 64
# Smaller tensors are copied instead of being searched for in shared memory.
_SMALL = 4096


def _parameters_json(parameters):
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


def _require(condition, what, value):
    if not condition:
        raise TypeError(
            "incompatible arguments: %s must not be %s" % (what, type(value).__name__)
        )


def _text(value):
    # Models pass on texts from BYTES tensors.
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else value


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


class MemoryType(enum.Enum):
    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2


class PreferredMemory:
    """pb_utils.PreferredMemory. Outputs are in the memory of the CPU in any case."""

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        _require(isinstance(preferred_memory_type, MemoryType), "preferred_memory_type",
                 preferred_memory_type)
        _require(_is_int(preferred_device_id), "preferred_device_id", preferred_device_id)
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
        request_id = _text(request_id)
        model_name = _text(model_name)
        _require(isinstance(request_id, str), "request_id", request_id)
        _require(correlation_id is not None, "correlation_id", correlation_id)
        _require(isinstance(inputs, (list, tuple)), "inputs", inputs)
        _require(isinstance(requested_output_names, (list, tuple, set, frozenset)),
                 "requested_output_names", requested_output_names)
        _require(isinstance(model_name, str), "model_name", model_name)
        _require(_is_int(model_version), "model_version", model_version)
        _require(_is_int(flags) and flags >= 0, "flags", flags)
        _require(_is_int(timeout) and timeout >= 0, "timeout", timeout)
        _require(preferred_memory is None or isinstance(preferred_memory, PreferredMemory),
                 "preferred_memory", preferred_memory)
        _require(trace is None or isinstance(trace, InferenceTrace), "trace", trace)
        for tensor in inputs:
            if tensor is None:
                raise TritonModelException(
                    "Input tensor for request with id '%s' and model name '%s' should not be empty."
                    % (request_id, model_name)
                )
            _require(isinstance(tensor, Tensor), "an element of inputs", tensor)
        requested_output_names = [_text(name) for name in requested_output_names]
        for name in requested_output_names:
            _require(isinstance(name, str), "an element of requested_output_names", name)
            if not name:
                raise TritonModelException(
                    "Requested output name for request with id '%s' and model name '%s' should not "
                    "be empty." % (request_id, model_name)
                )
        if not _is_int(correlation_id) and not isinstance(correlation_id, str):
            raise TritonModelException("Correlation ID must be integer or string")
        self._id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        self._outputs = frozenset(requested_output_names)
        self._model_name = model_name
        self._model_version = model_version
        self._flags = flags
        self._timeout = timeout
        self._preferred_memory = preferred_memory
        self._trace = trace
        self._parameters = _parameters_json(parameters)
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

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation_id

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        _require(_is_int(flags) and flags >= 0, "flags", flags)
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
        _require(_is_int(flags) and flags >= 0, "flags", flags)
        self._release_flags = flags

    def get_response_sender(self):
        sender = self._sender
        if sender is None:
            self._sender = sender = InferenceResponseSender(self._handle, self._outputs)
        return sender

    def is_cancelled(self):
        handle = self._handle
        return handle is not None and _is_cancelled(handle)

    def exec(self, decoupled=False):
        _require(isinstance(decoupled, bool), "decoupled", decoupled)
        if not session.may_infer:
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        return _stream(self) if decoupled else _infer(self)

    def async_exec(self, decoupled=False):
        _require(isinstance(decoupled, bool), "decoupled", decoupled)
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


for _slot in ("_id", "_correlation_id", "_parameters", "_trace", "_timeout"):
    setattr(InferenceRequest, _slot, _Lazy(InferenceRequest.__dict__[_slot]))


def _is_cancelled(handle):
    if not session.has_calls:
        return False
    _, answer = session.memory.ask(p.IS_CANCELLED, p.U64.pack(handle))
    return len(answer) == 8 and p.U64.unpack(answer)[0] != 0


_NO_PARAMETERS = "{}"


def _check_response(output_tensors, error, parameters):
    """Checks the arguments of a response that is more than a list of tensors, and returns them."""
    _require(isinstance(output_tensors, (list, tuple)), "output_tensors", output_tensors)
    _require(error is None or isinstance(error, TritonError), "error", error)
    for tensor in output_tensors:
        if tensor is None:
            raise TritonModelException("Output tensor for inference response should not be empty.")
        _require(isinstance(tensor, Tensor), "an element of output_tensors", tensor)
    text = _NO_PARAMETERS if parameters is None else _parameters_json(parameters)
    return list(output_tensors), error, text


class InferenceResponse(native.Response):
    """pb_utils.InferenceResponse."""

    __slots__ = ("__weakref__",)

    def output_tensors(self):
        return self._tensors

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return self._parameters


# --- Writing tensors and responses ---


class Writer:
    """Collects descriptions of tensors and their data, which are then written into one block: the data
    after the descriptions. With `shares`, data that lies in shared memory stays where it is."""

    __slots__ = ("_parts", "_size", "_data", "_data_size", "_shares")

    def __init__(self, shares):
        self._parts = []  # bytes, or (before, place among the data or None, address, size, after)
        self._size = 0
        self._data = []
        self._data_size = 0
        self._shares = shares

    def add(self, text):
        self._parts.append(text)
        self._size += len(text)

    def add_tensor(self, tensor):
        number = tensor._type
        array = tensor._values()
        before, after, length = tensors.head(tensor._name, number, array.shape)
        self._size += length
        if number == tensors.BYTES:
            array = tensors.serialize(array)
            size = len(array)
        else:
            size = array.nbytes
            if self._shares and size > _SMALL and array.flags.c_contiguous:
                memory = session.memory
                offset = array.__array_interface__["data"][0] - memory.address
                if 0 <= offset and offset + size <= memory.size:
                    self._parts.append((before, False, offset, size, after))
                    return
        self._parts.append((before, True, self._data_size, size, after))
        if size:
            self._data.append((self._data_size, size, array))
            self._data_size += -(-size // _ALIGNMENT) * _ALIGNMENT

    def write(self):
        """Writes everything into a block: returns its offset and the size of the descriptions."""
        memory = session.memory
        meta_size = self._size
        data_at = -(-meta_size // _ALIGNMENT) * _ALIGNMENT
        offset = memory.allocate(data_at + self._data_size)
        start = offset + p.HEADER_SIZE
        data_at += start
        pack = p.TENSOR_DATA.pack
        pieces = []
        for part in self._parts:
            if type(part) is bytes:
                pieces.append(part)
            else:
                before, is_data, place, size, after = part
                pieces.append(before)
                pieces.append(pack(place + data_at if is_data else place, size))
                pieces.append(after)
        to = memory.bytes
        to[start : start + meta_size] = b"".join(pieces)
        for place, size, array in self._data:
            place += data_at
            if type(array) is bytes:
                to[place : place + size] = array
            elif size <= _SMALL:
                to[place : place + size] = array.tobytes()
            else:
                tensors.copy_to(memory.array, place, array)
        return offset, meta_size

    def add_response(self, response, outputs, release_flags):
        """Adds a response, without outputs that were not requested."""
        error = response._error
        if error is not None:
            text = error._message.encode("utf-8", "surrogateescape")
            self.add(p.RESPONSE.pack(p.FAILURE, release_flags, int(error._code), len(text))
                     + p.padded(text))
            return
        wanted = [tensor for tensor in response._tensors if tensor._name in outputs]
        parameters = response._parameters
        text = b"" if parameters == "{}" else parameters.encode("utf-8", "surrogateescape")
        self.add(p.RESPONSE.pack(p.TENSORS, release_flags, len(wanted), len(text)))
        for tensor in wanted:
            self.add_tensor(tensor)
        if text:
            self.add(p.padded(text))


_NO_RESPONSE = [p.RESPONSE.pack(p.NONE, flags, 0, 0) for flags in range(3)]


def no_response(release_flags):
    return _NO_RESPONSE[release_flags] if release_flags < 3 else p.RESPONSE.pack(
        p.NONE, release_flags, 0, 0)


class InferenceResponseSender:
    """pb_utils.InferenceResponseSender."""

    def __init__(self, handle, outputs):
        self._handle = handle  # None for requests that the model made
        self._outputs = outputs
        self._lock = threading.Lock()
        self._is_closed = False
        self._sent = 0
        self._generation = session.generation

    def __del__(self):
        # A client that waits for the end gets an error.
        if self._handle is not None and not self._is_closed and session.owns(self):
            session.tell(p.CLOSE, p.U64.pack(self._handle))

    def _count(self, response, flags):
        """Checks that the response may be sent now."""
        if self._handle is None:
            raise TritonModelException(
                "Unable to send response. Response sender has no reference to the decoupled state "
                "of the model."
            )
        with self._lock:
            if not session.is_decoupled:
                if response is not None and self._sent > 0:
                    raise TritonModelException(
                        "Unable to send response. Non-decoupled model cannot send more than one "
                        "response."
                    )
                if response is None and flags == COMPLETE_FINAL and self._sent == 0:
                    raise TritonModelException(
                        "Unable to send response. Non-decoupled model cannot send complete final "
                        "before sending a response."
                    )
            if self._is_closed:
                raise TritonModelException(
                    "Unable to send response. Response sender has been closed."
                )
            if flags == COMPLETE_FINAL:
                self._is_closed = True
            self._sent += 1

    def send(self, response=None, flags=0):
        _require(response is None or isinstance(response, InferenceResponse), "response", response)
        _require(isinstance(flags, int) and flags >= 0, "flags", flags)
        if flags not in (0, COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        self._count(response, flags)
        writer = Writer(shares=False)
        writer.add(p.SEND_HEAD.pack(self._handle, flags, response is not None))
        if response is not None:
            writer.add_response(response, self._outputs, RELEASE_ALL)
        offset, size = writer.write()
        session.memory.post(p.SEND, offset, size)

    def is_cancelled(self):
        return self._handle is not None and _is_cancelled(self._handle)

    def _close(self):
        """Records that the server has completed the request."""
        with self._lock:
            self._is_closed = True


# --- Requests that the model makes ---


def _write_request(request, is_stream):
    correlation = request._correlation_id
    is_text = isinstance(correlation, str)
    inputs = request.inputs()
    writer = Writer(shares=True)
    trace = request._trace
    writer.add(
        p.INFER_HEAD.pack(
            trace._handle if trace is not None else 0,
            request._model_version,
            0 if is_text else correlation & 0xFFFFFFFFFFFFFFFF,
            request._timeout,
            request._flags,
            is_text,
            is_stream,
            len(inputs),
            len(request._outputs),
        )
        + p.sized(request._model_name)
        + p.sized(request._id)
        + p.sized(correlation if is_text else "")
        + p.sized("" if request._parameters == "{}" else request._parameters)
    )
    for tensor in inputs:
        writer.add_tensor(tensor)
    for name in request._outputs:
        writer.add(p.sized(name))
    return writer.write()


def _read_response(at, size):
    """Returns a response of another model, or None for an end without one, and whether it is the last."""
    memory = session.memory
    kind, is_last, count, text_size = p.REPLY_HEAD.unpack_from(memory.bytes, at)
    place = at + p.REPLY_HEAD.size
    if kind == p.NONE:
        memory.let_go(at)
        return None, True
    outputs = []
    if kind == p.TENSORS:
        for _ in range(count):
            name, number, shape, data, byte_size, place = tensors.read(memory.bytes, place)
            block = memory.hold(data) if byte_size else None
            outputs.append(Tensor._in_block(name, number, shape, block, data, byte_size))
    text = bytes(memory.bytes[place : place + text_size]).decode("utf-8", "surrogateescape")
    memory.let_go(at)
    if kind == p.TENSORS:
        response = InferenceResponse(outputs)
        response._parameters = text or "{}"
    else:
        response = InferenceResponse([], TritonError(text, ErrorCode(count)))
        response._parameters = ""
    return response, bool(is_last)


def _failed(at, size):
    text = ""
    if at:
        text = bytes(session.memory.bytes[at : at + size]).decode("utf-8", "replace")
        session.memory.let_go(at)
    return InferenceResponse(
        [], TritonError(text or "An error occurred while performing BLS request.")
    )


def _submit(request, is_stream):
    """Returns the block with the request, and outcome, place and size of the reply."""
    memory = session.memory
    offset, size = _write_request(request, is_stream)
    memory.post(p.INFER, offset, size)
    return (offset, *memory.wait_for_reply(offset, frees=not is_stream))


def _infer(request):
    _, outcome, at, size = _submit(request, False)
    if outcome != p.OK:
        return _failed(at, size)
    return _read_response(at, size)[0]


def _stream(request):
    block, outcome, at, size = _submit(request, True)
    if outcome != p.OK:
        session.memory.free(block)
        return ResponseIterator(None, [_failed(at, size)])
    number = p.U64.unpack_from(session.memory.bytes, at)[0]
    session.memory.let_go(at)
    # The inputs stay as long as another model may read them, those in the block, too.
    return ResponseIterator(number, [], request, block)


class ResponseIterator:
    """The responses of a decoupled model, in order of arrival; once all have arrived, they can be iterated
    again."""

    def __init__(self, stream, responses, request=None, block=None):
        self._stream = stream  # None once all have arrived
        self._responses = responses
        self._request = request
        self._block = block
        self._at = 0
        self._lock = threading.Lock()
        self._generation = session.generation

    def __iter__(self):
        if self._stream is None and self._at >= len(self._responses):
            self._at = 0
        return self

    def __next__(self):
        with self._lock:
            if self._at < len(self._responses):
                self._at += 1
                return self._responses[self._at - 1]
            if self._stream is None:
                raise StopIteration
            self._fetch()
            self._at += 1
            return self._responses[self._at - 1]

    def _look_ahead(self):
        with self._lock:
            if self._stream is not None and not self._responses:
                self._fetch()

    def _fetch(self):
        memory = session.memory
        offset = memory.put(p.U64.pack(self._stream))
        memory.post(p.STREAM_NEXT, offset, 8)
        outcome, at, size = memory.wait_for_reply(offset)
        if outcome != p.OK:
            response, is_last = _failed(at, size), True
        else:
            response, is_last = _read_response(at, size)
        if response is None:
            # As in Triton, an end without a response counts as a response without outputs.
            response = InferenceResponse([])
        self._responses.append(response)
        if is_last:
            self._end()

    def _end(self):
        session.tell(p.STREAM_CLOSE, p.U64.pack(self._stream))
        session.memory.free(self._block)
        self._stream = None
        self._request = None

    def cancel(self):
        if self._stream is not None:
            session.tell(p.STREAM_CANCEL, p.U64.pack(self._stream))

    def __del__(self):
        if self._stream is not None and session.owns(self):
            self._end()
