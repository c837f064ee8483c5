# SPDX-License-Identifier: Apache-2.0
"""Responses, and the two ways of waiting for them."""

from __future__ import annotations

import asyncio
import atexit
import collections
import queue
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

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

    def __init__(self, call: _core.Call, request: InferenceRequest, raise_on_error: bool) -> None:
        self._call: Optional[_core.Call] = call
        self._request: Optional[InferenceRequest] = request
        self._raise_on_error = raise_on_error
        self._is_complete = False

    def _pass_on(self, response: InferenceResponse) -> InferenceResponse:
        if response.final:
            self._is_complete = True
            self._call = self._request = None  # and with them the inputs
        if response.error is not None and self._raise_on_error:
            raise response.error
        return response

    def cancel(self) -> None:
        """Asks the server to give the request up. A response still comes, perhaps a CancelledError."""
        call = self._call
        if call is not None:
            call.cancel()


class ResponseIterator(_Responses):
    """Waits for responses by blocking. Ends after the final one; may be dropped at any time."""

    def __init__(self, call: _core.Call, request: InferenceRequest, raise_on_error: bool) -> None:
        super().__init__(call, request, raise_on_error)
        self._ready: Optional[queue.SimpleQueue] = None
        if request.response_queue is not None:
            self._ready = queue.SimpleQueue()
            _forwarder().add(call, request, self._ready)

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        if self._is_complete:
            raise StopIteration
        if self._ready is not None:
            response = self._ready.get()
        else:
            response = _make_response(self._call.next(), self._request)
        return self._pass_on(response)


class AsyncResponseIterator(_Responses):
    """Waits for responses in an asyncio loop. Ends after the final one; may be dropped at any time."""

    def __init__(self, call: _core.Call, request: InferenceRequest, raise_on_error: bool) -> None:
        super().__init__(call, request, raise_on_error)
        self._waiting: Optional[asyncio.Future] = None
        self._ready: Optional[asyncio.Queue] = None
        if request.response_queue is not None:
            self._ready = asyncio.Queue()
            # The loop knows tasks weakly.
            self._forwarding = asyncio.get_running_loop().create_task(self._forward(request.response_queue))

    async def _forward(self, responses: asyncio.Queue) -> None:
        is_final = False
        while not is_final:
            response = await self._next()
            is_final = response.final
            self._ready.put_nowait(response)
            await responses.put(response)

    async def _next(self) -> InferenceResponse:
        while (parts := self._call.try_next()) is None:
            if self._waiting is not None and not self._waiting.done():
                raise AlreadyExistsError("another task is waiting for the next response of this request")
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            if self._call.arm(_waker_of(loop), self._waiting):
                await self._waiting
            else:
                self._waiting = None
        return _make_response(parts, self._request)

    def __aiter__(self) -> AsyncResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        if self._is_complete:
            raise StopAsyncIteration
        response = await (self._next() if self._ready is None else self._ready.get())
        return self._pass_on(response)


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
                self._forward(token)

    def _forward(self, token: tuple) -> None:
        call, request, ready = token
        while True:
            while (parts := call.try_next()) is not None:
                response = _make_response(parts, request)
                ready.put(response)
                request.response_queue.put(response)
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
