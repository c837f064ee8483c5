# SPDX-License-Identifier: Apache-2.0
"""`nereid.model`: a function, or a class whose objects are called, as a model."""

from __future__ import annotations

import collections.abc
import copy
import functools
import inspect
import typing
from dataclasses import dataclass
from typing import Any, Callable, Optional

from nereid._api._errors import InvalidArgumentError
from nereid._functions._ports import Port, make_port

_STREAMS = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


@dataclass(frozen=True)
class RequestContext:
    """What is known of a request besides its inputs; an argument annotated with it gets it, one annotated
    with `list[RequestContext]` in a function with `max_batch_size`.

    Parameters
    ----------
    id : str
        As the client gave it, or empty.
    correlation_id : int | str
        The sequence that the request belongs to; 0 for none.
    flags : int
        `RequestFlag` values.
    parameters : dict[str, str | int | bool | float]
    rows : int
        How many rows of the batch are this request's.
    """

    id: str
    correlation_id: Any
    flags: int
    parameters: dict[str, Any]
    rows: int


class FunctionModel:
    """A function as a model, made by `nereid.model`. Calling it calls the function, without a server."""

    def __init__(
        self,
        target: Callable,
        name: Optional[str],
        inputs: Any,
        outputs: Any,
        max_batch_size: int,
        max_queue_delay_us: int,
        instances: int,
        concurrency: int,
        config: Optional[dict[str, Any]],
    ) -> None:
        self.name: str = name or getattr(target, "__name__", type(target).__name__)
        for what, value, least in (
            ("max_batch_size", max_batch_size, 0),
            ("max_queue_delay_us", max_queue_delay_us, 0),
            ("instances", instances, 1),
            ("concurrency", concurrency, 1),
        ):
            if not isinstance(value, int) or value < least:
                raise InvalidArgumentError(f"{what} of model '{self.name}' must be {least} or more, not {value!r}")
        self._target = target
        self._object: Any = None
        self.max_batch_size = max_batch_size
        self.max_queue_delay_us = max_queue_delay_us
        self.instances = instances
        self.concurrency = concurrency
        self.config_override = config or {}
        self._signature = inspect.signature(self._called(), eval_str=True)
        self.context_argument: Optional[str] = None
        self.inputs: list[Port] = self._make_inputs(inputs)
        is_stream, annotation = self._returned()
        called = self._called()
        self.is_async = inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
        self.is_stream = is_stream or inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)
        self.returns_dict = False
        self.outputs: list[Port] = self._make_outputs(annotation if outputs is None else outputs)
        if self.name == "<lambda>":
            raise InvalidArgumentError("a lambda needs a name: nereid.model(…, name=…)")
        functools.update_wrapper(self, target, updated=())

    def __call__(self, *args, **kwargs):
        if isinstance(self._target, type):
            if self._object is None:
                self._object = self._target()
            return self._object(*args, **kwargs)
        return self._target(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<nereid model '{self.name}'>"

    def make_callable(self) -> Callable:
        """What an instance calls: the function, or an object of its own."""
        return self._target() if isinstance(self._target, type) else self._target

    def config(self, function_id: int) -> dict[str, Any]:
        """The model's configuration."""
        config: dict[str, Any] = {
            "name": self.name,
            "backend": "function",
            "max_batch_size": self.max_batch_size,
            "input": [port.config() for port in self.inputs],
            "output": [port.config() for port in self.outputs],
            "instance_group": [{"count": self.instances, "kind": "KIND_CPU"}],
        }
        for tensor, port in zip(config["output"], self.outputs):
            if port.labels is not None:
                tensor["label_filename"] = f"{port.name}.labels"
        if self.max_batch_size > 1 and "sequence_batching" not in self.config_override:
            config["dynamic_batching"] = {"max_queue_delay_microseconds": self.max_queue_delay_us}
        if self.is_stream:
            config["model_transaction_policy"] = {"decoupled": True}
        config = _merged(config, copy.deepcopy(self.config_override))
        config.setdefault("parameters", {})["function"] = {"string_value": str(function_id)}
        return config

    # --- What the function's signature says -----------------------------------------------------

    def _called(self) -> Callable:
        """The function, or the method that calls an object."""
        if isinstance(self._target, type):
            if not inspect.isfunction(getattr(self._target, "__call__", None)):
                raise InvalidArgumentError(f"the class '{self.name}' needs a method __call__")
            return self._target.__call__
        is_function = inspect.isroutine(self._target) or isinstance(self._target, functools.partial)
        return self._target if is_function else self._target.__call__

    def _arguments(self) -> list[inspect.Parameter]:
        arguments = list(self._signature.parameters.values())
        if isinstance(self._target, type):
            arguments = arguments[1:]  # self
        for argument in arguments:
            if argument.kind in (argument.VAR_POSITIONAL, argument.POSITIONAL_ONLY):
                raise InvalidArgumentError(
                    f"model '{self.name}': inputs are passed by name, which '{argument.name}' cannot be"
                )
        return arguments

    def _make_inputs(self, inputs: Any) -> list[Port]:
        arguments = []
        takes_any = False
        for argument in self._arguments():
            if argument.kind == argument.VAR_KEYWORD:
                takes_any = True
            elif argument.annotation is RequestContext or argument.annotation == list[RequestContext]:
                if (argument.annotation is RequestContext) == (self.max_batch_size > 0):
                    raise InvalidArgumentError(
                        f"model '{self.name}': '{argument.name}' must be RequestContext without "
                        "max_batch_size, and list[RequestContext] with it"
                    )
                self.context_argument = argument.name
            else:
                arguments.append(argument)
        specs = self._input_specs(inputs, arguments, takes_any)
        if not specs:
            raise InvalidArgumentError(f"model '{self.name}' has no inputs")
        ports = []
        for name, spec in specs.items():
            argument = self._signature.parameters.get(name)
            is_optional = argument is not None and argument.default is not inspect.Parameter.empty
            ports.append(make_port(spec, name, self.max_batch_size > 0, is_optional))
        return ports

    def _input_specs(self, inputs: Any, arguments: list[inspect.Parameter], takes_any: bool) -> dict[str, Any]:
        names = [argument.name for argument in arguments]
        if inputs is None:
            specs = {argument.name: argument.annotation for argument in arguments}
        elif isinstance(inputs, dict):
            specs = {a.name: a.annotation for a in arguments if a.name not in inputs} | inputs
        else:
            given = inputs if isinstance(inputs, list) else [inputs]
            named = [getattr(spec, "name", None) for spec in given]
            if len(given) > len(names) and not all(named):
                raise InvalidArgumentError(
                    f"model '{self.name}' has {len(given)} inputs, and the function {len(names)} arguments"
                )
            specs = {name or names[i]: spec for i, (name, spec) in enumerate(zip(named, given))}
        for name in specs:
            if name not in names and not takes_any:
                raise InvalidArgumentError(f"model '{self.name}': the function has no argument '{name}'")
        for name, spec in specs.items():
            if spec is inspect.Parameter.empty:
                raise InvalidArgumentError(
                    f"model '{self.name}': say what '{name}' is, with an annotation or inputs="
                    f"{{'{name}': numpy.float32}}"
                )
        for argument in arguments:
            if argument.name not in specs and argument.default is inspect.Parameter.empty:
                raise InvalidArgumentError(f"model '{self.name}': inputs= lacks the argument '{argument.name}'")
        return specs

    def _returned(self) -> tuple[bool, Any]:
        """Whether the annotation says that responses are yielded, and what one of them is."""
        annotation = self._signature.return_annotation
        if typing.get_origin(annotation) in _STREAMS:
            return True, (typing.get_args(annotation) or (inspect.Parameter.empty,))[0]
        return False, annotation

    def _make_outputs(self, outputs: Any) -> list[Port]:
        if outputs is inspect.Parameter.empty or outputs is None:
            raise InvalidArgumentError(
                f"model '{self.name}': say what the function returns, with an annotation such as "
                "-> str or outputs={'scores': numpy.float32}"
            )
        if typing.is_typeddict(outputs):
            outputs = typing.get_type_hints(outputs)
        if isinstance(outputs, dict):
            self.returns_dict = True
            named = outputs
        elif isinstance(outputs, list):
            default = "output_{}" if len(outputs) > 1 else "output"
            named = {getattr(spec, "name", None) or default.format(i): spec for i, spec in enumerate(outputs)}
        elif typing.get_origin(outputs) is tuple:
            named = {f"output_{i}": spec for i, spec in enumerate(typing.get_args(outputs))}
        else:
            named = {getattr(outputs, "name", None) or "output": outputs}
        if not named:
            raise InvalidArgumentError(f"model '{self.name}' has no outputs")
        return [make_port(spec, name, self.max_batch_size > 0) for name, spec in named.items()]


def _merged(config: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """`config` with the fields of `override`; messages are merged, everything else is replaced."""
    merged = dict(config)
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = _merged(merged[key], value)
        merged[key] = value
    return merged


def model(
    target: Optional[Callable] = None,
    /,
    *,
    name: Optional[str] = None,
    inputs: Any = None,
    outputs: Any = None,
    max_batch_size: int = 0,
    max_queue_delay_us: int = 0,
    instances: int = 1,
    concurrency: int = 256,
    config: Optional[dict[str, Any]] = None,
) -> Any:
    """Makes a function a model, to be served by `nereid.serve`. Can be used as a decorator, with or without
    arguments.

    A class makes a model whose instances each have an object of their own, made when the model is loaded.
    A generator is a decoupled model: each value that it yields is a response. Async functions and async
    generators run in one event loop, many at a time.

    Parameters
    ----------
    target : Callable
    name : Optional[str]
        The function's own name by default.
    inputs, outputs : Any
        What the arguments and the result are, if annotations do not say it: by name, in a list in order, or
        one alone. Each is a dtype, (dtype, shape), a TensorSpec, or str, int, float, bool, bytes or a list
        of these. Arguments with defaults are optional inputs.
    max_batch_size : int
        If positive, requests are put together in batches of at most so many rows: arrays have one more
        dimension, in front. If 0, the function gets one request at a time.
    max_queue_delay_us : int
        How long a request may wait for others to join it, in microseconds.
    instances : int
        How many executions there are at once, each on a thread; for functions that release Python's lock.
    concurrency : int
        How many executions of an async function are in progress at once.
    config : Optional[dict[str, Any]]
        Fields of the model's configuration, which take precedence.

    Raises
    ------
    InvalidArgumentError
        Something about the function or an argument cannot be; the text says what.

    Examples
    --------
    >>> @nereid.model
    ... def greet(name: str) -> str:
    ...     return f"Hello, {name}!"
    """

    def make(function: Callable) -> FunctionModel:
        return FunctionModel(
            function, name, inputs, outputs, max_batch_size, max_queue_delay_us, instances, concurrency, config
        )

    return make if target is None else make(target)
