# SPDX-License-Identifier: Apache-2.0
"""Requests that a model makes to other models, and what it gets from them."""

import threading

from . import protocol as p
from . import tensors
from .errors import ErrorCode, TritonError
from .responses import InferenceResponse
from .session import session
from .tensors import Tensor
from .writer import Writer


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


# Requests that have their reply and that another model may still read: the process that made each,
# its block, and itself, because its inputs may be in memory of other objects.
lent = []


def let_go_of_requests():
    """Frees the requests that no other model reads any more."""
    for entry in lent[:]:
        generation, block, _ = entry
        is_own = generation == session.generation
        if is_own and not session.memory.is_released(block):
            continue
        try:
            lent.remove(entry)
        except ValueError:
            continue  # another thread has done so
        if is_own:
            session.memory.free(block)


def _submit(request, is_stream):
    """Returns outcome, place and size of the reply."""
    memory = session.memory
    offset, size = _write_request(request, is_stream)
    entry = (session.generation, offset, request)
    memory.post(p.INFER, offset, size)
    reply = memory.wait_for_reply(offset, frees=False)
    # Another model may read its inputs after it has responded.
    lent.append(entry)
    let_go_of_requests()
    return reply


def infer(request):
    outcome, at, size = _submit(request, False)
    if outcome != p.OK:
        return _failed(at, size)
    return _read_response(at, size)[0]


def stream(request):
    outcome, at, size = _submit(request, True)
    if outcome != p.OK:
        return ResponseIterator(None, [_failed(at, size)])
    number = p.U64.unpack_from(session.memory.bytes, at)[0]
    session.memory.let_go(at)
    return ResponseIterator(number, [])


class ResponseIterator:
    """The responses of a decoupled model, in order of arrival; once all have arrived, they can be iterated
    again."""

    def __init__(self, stream, responses):
        self._stream = stream  # None once all have arrived
        self._responses = responses
        self._at = 0
        # A destructor of the model's may ask for the next one, too, on a thread that is just doing so.
        self._lock = threading.RLock()
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
        self._stream = None

    def cancel(self):
        stream = self._stream  # which another thread may be ending
        if stream is not None:
            session.tell(p.STREAM_CANCEL, p.U64.pack(stream))

    def __del__(self):
        if self._stream is not None and session.owns(self):
            self._end()
