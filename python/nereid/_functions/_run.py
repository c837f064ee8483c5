# SPDX-License-Identifier: Apache-2.0
"""Executes functions for the server's instances; python/src/function_backend.cc calls `make_runner`."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import os
import sys
import threading
import traceback
import weakref
from typing import Any, Optional

import numpy

from nereid import _core
from nereid._api._enums import DataType, LogLevel
from nereid._api._errors import CLASS_OF_CODE, InternalError, InvalidArgumentError, TritonError
from nereid._functions._model import FunctionModel, RequestContext
from nereid._functions._ports import Port

# By the number in the configurations of their models. Servers keep the functions.
_functions: weakref.WeakValueDictionary[int, FunctionModel] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def register(model: FunctionModel) -> int:
    """The number by which `make_runner` finds the function."""
    number = next(_numbers)
    _functions[number] = model
    return number


def make_runner(config_json: str) -> Runner:
    """What executes the batches of one instance of the model with this configuration."""
    config = json.loads(config_json)
    number = config.get("parameters", {}).get("function", {}).get("string_value", "")
    model = _functions.get(int(number)) if number.isdigit() else None
    if model is None:
        raise InternalError(f"the function of model '{config.get('name')}' is not in this process")
    is_batching = int(config.get("max_batch_size", 0)) > 0
    is_stream = bool(config.get("model_transaction_policy", {}).get("decoupled", False))
    return (AsyncRunner if model.is_async else Runner)(model, is_batching, is_stream)


def _text(error: BaseException) -> str:
    """The error's text, which the program's own code may make."""
    try:
        return str(error)
    except BaseException as another:
        return f"(its text cannot be told: {type(another).__name__})"


def _encodable(text: str) -> str:
    """`text` with escape sequences for lone surrogates, which come out of JSON that clients write."""
    return text.encode("utf-8", "backslashreplace").decode()


def _references(held: list) -> int:
    """How many references there are to what `held` holds, counted in a way that makes some itself."""
    return sys.getrefcount(held[0])


# Of something to which nothing else refers. How many the counting makes differs among Python's versions.
_ALONE = _references([numpy.empty(0)])


class Runner:
    """Executes batches one at a time, on the thread of the instance."""

    def __init__(self, model: FunctionModel, is_batching: bool, is_decoupled: bool) -> None:
        self.is_batching = is_batching
        self.is_decoupled = is_decoupled
        self._model = model
        self._function = model.make_callable()
        self._inputs = {port.name: port for port in model.inputs}

    def __call__(self, job: _core.Job) -> None:
        try:
            rows = job.rows()
            if self._model.is_stream:
                self._stream(job, rows)
            else:
                job.send(self._pack([self._function(**self._arguments(job, rows))], rows))
                self._finish(job)
        except BaseException as error:
            self._fail(job, error)

    def _stream(self, job: _core.Job, rows: list[int]) -> None:
        values = iter(self._function(**self._arguments(job, rows)))
        try:
            for value in values:
                if job.is_cancelled():
                    break
                job.send(self._pack([value], rows))
        finally:
            getattr(values, "close", lambda: None)()
        self._finish(job)

    def _finish(self, job: _core.Job) -> None:
        if self.is_decoupled:
            job.finish()

    def _arguments(self, job: _core.Job, rows: list[int]) -> dict[str, Any]:
        arguments = {}
        for name, data_type, shape, buffer in job.take_inputs():
            port = self._inputs.get(name)
            if port is None:  # of the configuration alone, such as the controls of sequences
                port = Port(name, DataType(data_type), shape)
            arguments[name] = port.from_memory(data_type, shape, buffer)
        if self._model.context_argument is not None:
            contexts = [RequestContext(*fields, count) for fields, count in zip(job.requests(), rows)]
            arguments[self._model.context_argument] = contexts if self.is_batching else contexts[0]
        return arguments

    def _pack(self, result: list, rows: list[int]) -> list[tuple]:
        """The outputs for Job.send. `result` holds the function's result, and is emptied: an array that
        nothing else refers to is sent from where it is, and others are copied."""
        outputs = []
        for port, value in self._by_port(result):
            try:
                held = [port.to_array(value.pop(), sum(rows) if self.is_batching else None)]
                is_alone = _references(held) == _ALONE
                array = held.pop()
                is_lendable = is_alone and array.base is None
                if port.data_type == DataType.BYTES:
                    outputs.append((port.name, DataType.BYTES, array.shape, self._texts(array, rows), False))
                    continue
            except InvalidArgumentError as error:
                raise self._wrong(str(error)) from None
            # numpy lends no memory of types that are not its own.
            data = array.view(numpy.uint16) if port.data_type == DataType.BF16 else array
            outputs.append((port.name, port.data_type, array.shape, data, is_lendable))
        return outputs

    def _by_port(self, result: list) -> list[tuple[Port, list]]:
        """Pairs of a port and a list with its value, to which nothing here refers any more."""
        ports, value = self._model.outputs, result.pop()
        names = [port.name for port in ports]
        if self._model.returns_dict and isinstance(value, dict):
            if set(value) != set(names):
                raise self._wrong(f"returned {list(value)}, expected {names}")
            return [(port, [value[port.name]]) for port in ports]
        if len(ports) == 1:
            return [(ports[0], [value])]
        if isinstance(value, (tuple, list)) and len(value) == len(ports):
            return [(port, [item]) for port, item in zip(ports, value)]
        raise self._wrong(f"returned {type(value).__name__}, expected {len(ports)} outputs: {names}")

    def _wrong(self, text: str) -> InternalError:
        return InternalError(f"model '{self._model.name}': {text}")

    def _texts(self, array: numpy.ndarray, rows: list[int]) -> list:
        elements = array.ravel().tolist()
        if not self.is_batching:
            return [_core.serialize_texts(elements)]
        per_row = len(elements) // (sum(rows) or 1)
        pieces, at = [], 0
        for count in rows:
            pieces.append(_core.serialize_texts(elements[at : at + count * per_row]))
            at += count * per_row
        return pieces

    def _fail(self, job: _core.Job, error: BaseException) -> None:
        """Makes `error` the response. What the function did not mean to say is logged in full."""
        if isinstance(error, TritonError):
            text = _text(error)
            code = max((i for i, one in enumerate(CLASS_OF_CODE) if isinstance(error, one)), default=0)
        else:
            text = f"model '{self._model.name}': {type(error).__name__}: {_text(error)}"
            code = CLASS_OF_CODE.index(InternalError)
            lines = "".join(traceback.format_exception(error)).rstrip().replace("\0", "")
            _core.log_message(LogLevel.ERROR, __file__, 0, _encodable(f"model '{self._model.name}' raised\n{lines}"))
        try:
            job.fail(code, _encodable(text.replace("\0", "")))
        except Exception:
            traceback.print_exc()


class AsyncRunner(Runner):
    """Starts executions, which go on in the event loop."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self._room = threading.Semaphore(self._model.concurrency)

    def __call__(self, job: _core.Job) -> None:
        self._room.acquire()
        _loop.start(self._serve, job, self._room)

    async def _serve(self, job: _core.Job) -> None:
        try:
            rows = job.rows()
            if self._model.is_stream:
                await self._stream_async(job, rows)
            else:
                await _send(job, self._pack([await self._function(**self._arguments(job, rows))], rows))
                self._finish(job)
        except BaseException as error:
            self._fail(job, error)

    async def _stream_async(self, job: _core.Job, rows: list[int]) -> None:
        values = self._function(**self._arguments(job, rows))
        if inspect.isawaitable(values):
            values = await values
        try:
            async for value in values:
                if job.is_cancelled():
                    break
                await _send(job, self._pack([value], rows))
        finally:
            if hasattr(values, "aclose"):
                await values.aclose()
        self._finish(job)


async def _send(job: _core.Job, outputs: list[tuple]) -> None:
    """Sends the outputs. Where the client reads too slowly, only this coroutine waits for it."""
    if job.try_send(outputs):
        return
    loop = asyncio.get_running_loop()
    sent = loop.create_future()

    def send() -> None:
        try:
            job.send_rest()
        finally:
            loop.call_soon_threadsafe(lambda: sent.done() or sent.set_result(None))

    threading.Thread(target=send, name="nereid-slow-client", daemon=True).start()
    await sent


class _Loop:
    """The event loop of all async functions, on a thread that starts with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._tasks: set[asyncio.Task] = set()

    def start(self, serve, job: _core.Job, room: threading.Semaphore) -> None:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._run, args=(self._loop,), name="nereid-functions", daemon=True
                ).start()
            loop = self._loop
        loop.call_soon_threadsafe(self._begin, serve, job, room)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        """Runs the loop for ever. Where a task calls sys.exit(), and where a function stops the loop, asyncio
        returns; but the other functions still wait for it."""
        while True:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                text = f"the event loop of async functions goes on after {type(error).__name__}: {_text(error)}"
                _core.log_message(LogLevel.ERROR, __file__, 0, _encodable(text).replace("\0", ""))

    def _begin(self, serve, job: _core.Job, room: threading.Semaphore) -> None:
        task = self._loop.create_task(serve(job))
        self._tasks.add(task)

        def end(ended: asyncio.Task) -> None:
            self._tasks.discard(ended)
            room.release()

        task.add_done_callback(end)


_loop = _Loop()


def _forget_after_fork() -> None:
    """A child process has none of the threads."""
    global _loop
    _loop = _Loop()


os.register_at_fork(after_in_child=_forget_after_fork)
