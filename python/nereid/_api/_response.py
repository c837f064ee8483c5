# SPDX-License-Identifier: Apache-2.0
"""Responses, and the two ways of waiting for them."""

from __future__ import annotations

import asyncio
import atexit
import collections
import logging
import os
import queue
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Optional, Union

from nereid import _core
from nereid._api._enums import DataType, MemoryType
from nereid._api._errors import AlreadyExistsError, InvalidArgumentError, TritonError
from nereid._api._memorybuffer import MemoryBuffer
from nereid._api._tensor import Tensor

if TYPE_CHECKING:
    from nereid._api._model import Model
    from nereid._api._request import InferenceRequest

_DATA_TYPES = tuple(DataType)
_MEMORY_TYPES = tuple(MemoryType)

_logger = logging.getLogger("nereid")

# In which process this is. A child made by fork has no server that it could ask for anything.
_process = os.getpid()


def _note_fork() -> None:
    global _process
    _process = os.getpid()


os.register_at_fork(after_in_child=_note_fork)


class Class(NamedTuple):
    """One of the best classes of an output."""

    value: Any
    index: int
    label: str


@dataclass
class InferenceResponse:
    """An answer of a model. Its outputs stay as long as something uses them, even after the server is gone.

    Parameters
    ----------
    model : Model
        With the version that answered.
    request_id : Optional[str]
    parameters : dict[str, str | int | bool | float]
        What the model said besides its outputs.
    outputs : dict[str, Tensor]
    error : Optional[TritonError]
        Why there are no outputs.
    classification_label : Optional[str]
        The label of the best class, where classes were asked for of one output.
    final : bool
        Whether no response follows. A decoupled model may say so by a response that is otherwise empty.
    classes : dict[str, list[list[Class]]]
        By output and then by element of the batch: the best classes, the best first. (Not in Triton's
        package.)
    """

    model: Model
    request_id: Optional[str] = None
    parameters: dict[str, Union[str, int, bool, float]] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    error: Optional[TritonError] = None
    classification_label: Optional[str] = None
    final: bool = False
    classes: dict[str, list[list[Class]]] = field(default_factory=dict, repr=False)


def _make_response(parts: tuple, request: InferenceRequest) -> InferenceResponse:
    error, name, version, request_id, parameters, outputs, classes, final = parts
    model = request.model
    if name is None:
        return InferenceResponse(model, request.request_id or "", final=final)
    tensors = {
        output: Tensor(
            _DATA_TYPES[data_type],
            shape,
            MemoryBuffer(address, _MEMORY_TYPES[memory_type], memory_type_id, size, owner),
        )
        for output, data_type, shape, address, size, memory_type, memory_type_id, owner in outputs
    }
    if request.output_memory_type is not None:
        try:
            tensors = {output: tensor.to_device(request.output_memory_type) for output, tensor in tensors.items()}
        except Exception as failure:
            error = InvalidArgumentError(f"Memory type {request.output_memory_type} not supported: {failure}")
            tensors = {}
    response = InferenceResponse(model._of_version(name, version), request_id, parameters, tensors, error, None, final)
    if classes:
        response.classes = {
            output: [[Class(*best) for best in row] for row in rows] for output, rows in classes.items()
        }
        if len(classes) == 1 and (rows := next(iter(response.classes.values()))) and rows[0]:
            response.classification_label = rows[0][0].label
    if error is not None:
        error.args += (response,)
    return response


class _Responses:
    """What both kinds of iterators are: a call in progress, until its final response is passed on."""

    # What a response queue must be, and what Triton's package says if it is something else.
    _QUEUE: ClassVar[type]
    _QUEUE_RULE: ClassVar[str]

    def __init__(self, call: _core.Call, request: InferenceRequest, raise_on_error: bool) -> None:
        self._call: Optional[_core.Call] = call
        self._request: Optional[InferenceRequest] = request
        self._raise_on_error = raise_on_error
        self._was_read = False
        self._ready: Any = None
        self._process = _process

    @classmethod
    def _start(cls, request: InferenceRequest, raise_on_error: bool) -> Any:
        """Sends the request. What its queue is shows before that, and not when a response is put there."""
        if request.response_queue is not None and not isinstance(request.response_queue, cls._QUEUE):
            raise InvalidArgumentError(f"{cls._QUEUE_RULE}; this is a {type(request.response_queue).__name__}")
        return cls(request._start(), request, raise_on_error)

    def _pass_on(self, response: Union[InferenceResponse, Exception]) -> InferenceResponse:
        if isinstance(response, Exception):
            self._complete()
            raise response
        if response.final:
            self._complete()
        if response.error is not None and self._raise_on_error:
            raise response.error
        return response

    def _complete(self) -> None:
        self._request = self._call = None  # and with them the inputs

    def cancel(self) -> None:
        """Asks the server to give the request up. A response still comes, perhaps a CancelledError."""
        call = self._call
        if call is not None:
            call.cancel()

    def _close(self) -> None:
        if self._process == _process:
            self.cancel()
        self._complete()

    def __del__(self) -> None:
        # Whoever has begun to read and reads no more has left the stream, as a client over HTTP does that goes away. A
        # request that nobody reads at all is one that is sent for what it does, and a queue gets its responses anyway.
        if self._was_read and self._call is not None and self._ready is None:
            self._close()


class ResponseIterator(_Responses):
    """Waits for responses by blocking. Ends after the final one; may be dropped at any time.

    Whoever leaves the responses before the final one gives the request up: by `close`, for which there is
    `contextlib.closing`, or by dropping the iterator after its first response. A request whose responses nobody reads
    runs to its end.
    """

    _QUEUE = queue.SimpleQueue
    _QUEUE_RULE = "queue.SimpleQueue must be used for response iterator"

    def __init__(self, call: _core.Call, request: InferenceRequest, raise_on_error: bool) -> None:
        super().__init__(call, request, raise_on_error)
        if request.response_queue is not None:
            self._ready = queue.SimpleQueue()
            _forwarder().add(call, request, self._ready)

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        call, request = self._call, self._request  # which another thread lets go when it closes this
        if call is None:
            raise StopIteration
        self._was_read = True
        response = _make_response(call.next(), request) if self._ready is None else self._ready.get()
        return self._pass_on(response)

    def close(self) -> None:
        """Cancels the request unless it is complete. Nothing follows; a response queue still gets what comes."""
        self._close()


class AsyncResponseIterator(_Responses):
    """Waits for responses in an asyncio loop. Ends after the final one; may be dropped at any time.

    Whoever leaves the responses before the final one gives the request up, as a task does that is cancelled: by
    `aclose`, for which there is `contextlib.aclosing`, or by dropping the iterator after it has waited for a response.
    A wait that is cancelled alone, as by `asyncio.wait_for`, loses no response. A request whose responses nobody reads
    runs to its end.
    """

    _QUEUE = asyncio.Queue
    _QUEUE_RULE = "asyncio.Queue must be used for async response iterator"

    def __init__(self, call: _core.Call, request: InferenceRequest, raise_on_error: bool) -> None:
        super().__init__(call, request, raise_on_error)
        self._waiting: Optional[asyncio.Future] = None
        if request.response_queue is not None:
            self._ready = asyncio.Queue()
            # The loop knows tasks weakly.
            self._forwarding = asyncio.get_running_loop().create_task(self._forward(call, request))

    async def _forward(self, call: _core.Call, request: InferenceRequest) -> None:
        is_final = False
        while not is_final:
            try:
                response = await self._next(call, request)
            except Exception as error:
                self._ready.put_nowait(error)
                return
            is_final = response.final
            self._ready.put_nowait(response)
            try:
                await request.response_queue.put(response)
            except Exception:
                _logger.exception("a response could not be put into the queue of its request")

    async def _next(self, call: _core.Call, request: InferenceRequest) -> InferenceResponse:
        while (parts := call.try_next()) is None:
            if self._waiting is not None and not self._waiting.done():
                raise AlreadyExistsError("another task is waiting for the next response of this request")
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            if call.arm(_waker_of(loop), self._waiting):
                await self._waiting
            else:
                self._waiting = None
        return _make_response(parts, request)

    def __aiter__(self) -> AsyncResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        call, request = self._call, self._request
        if call is None:
            raise StopAsyncIteration
        self._was_read = True
        response = await (self._next(call, request) if self._ready is None else self._ready.get())
        return self._pass_on(response)

    async def aclose(self) -> None:
        """Cancels the request unless it is complete. Nothing follows; a response queue still gets what comes."""
        self._close()


# --- Waking up asyncio loops ----------------------------------------------------------------

_wakers: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_wakers_lock = threading.Lock()


def _waker_of(loop: asyncio.AbstractEventLoop) -> _core.Waker:
    """The loop's one waker, whose descriptor it watches. It sees no thread of the server's, and they never
    wait for Python: they only make the descriptor readable."""
    with _wakers_lock:
        waker = _wakers.get(loop)
        if waker is None:
            waker = _wakers[loop] = _core.Waker()
            loop.add_reader(waker.fileno(), _wake_up, waker)
        return waker


def _wake_up(waker: _core.Waker) -> None:
    for future in waker.take():
        if not future.done():
            future.set_result(None)


# --- Filling queues -------------------------------------------------------------------------


class _Forwarder:
    """One thread for all requests with a response queue."""

    def __init__(self) -> None:
        self._waker = _core.Waker()
        self._thread = threading.Thread(target=self._run, name="nereid responses", daemon=True)
        self._thread.start()

    def add(self, call: _core.Call, request: InferenceRequest, ready: queue.SimpleQueue) -> None:
        self._waker.push((call, request, ready))

    def stop(self) -> None:
        self._waker.push(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._waker.wait()
            for token in self._waker.take():
                if token is None:
                    return
                try:
                    self._forward(token)
                except Exception as error:
                    token[2].put(error)  # whoever reads the responses is told; other requests go on

    def _forward(self, token: tuple) -> None:
        call, request, ready = token
        while True:
            while (parts := call.try_next()) is not None:
                response = _make_response(parts, request)
                ready.put(response)
                try:
                    request.response_queue.put(response)
                except Exception:
                    _logger.exception("a response could not be put into the queue of its request")
                if response.final:
                    return
            if call.arm(self._waker, token):
                return


_the_forwarder: collections.deque = collections.deque(maxlen=1)
_forwarder_lock = threading.Lock()


def _forwarder() -> _Forwarder:
    with _forwarder_lock:
        if not _the_forwarder:
            _the_forwarder.append(_Forwarder())
            # A thread that waits outside Python must not be there when the interpreter ends.
            atexit.register(_the_forwarder[0].stop)
        return _the_forwarder[0]
