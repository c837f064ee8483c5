# SPDX-License-Identifier: Apache-2.0
"""`nereid.serve`: functions and repositories over HTTP and gRPC, from this process."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import operator
import os
import secrets
import signal
import socket
import sys
import threading
from typing import Any, Callable, Iterator, Optional, Union

from nereid import _core
from nereid._api._enums import ModelControlMode
from nereid._api._errors import InternalError, InvalidArgumentError, TritonError
from nereid._api._server import Options, Server, _running
from nereid._functions._model import FunctionModel, model
from nereid._functions._repository import FunctionRepository
from nereid._functions._run import register

_OPTIONS = {field.name for field in dataclasses.fields(Options)}
_SERVICES = {"http_port": "allow-http", "grpc_port": "allow-grpc", "metrics_port": "allow-metrics"}
_TITLES = {"http_port": "HTTP", "grpc_port": "gRPC", "metrics_port": "metrics"}


class _Usual(int):
    """The port of a service for which nobody has chosen one: another one will do where it is taken."""


class FunctionServer(Server):
    """A server of functions and repositories, made by `serve`; a `Server` that also listens.

    Functions are replaced with `update`; `infer` and `stream` call them through the server's scheduler.
    """

    def __init__(self, models: tuple, host: str, model_control: bool, settings: dict[str, Any]) -> None:
        functions, repositories = _sorted(models)
        given = {name: value for name, value in settings.items() if name in _OPTIONS}
        repositories += _listed(given.pop("model_repository", []))
        self._repository = FunctionRepository()
        self._functions: dict[str, FunctionModel] = {}
        for function in functions:
            self._put(function)
        options = {
            "exit_timeout": 30,
            "log_error": True,
            **given,
            "model_repository": [self._repository.path, *repositories],
            "model_control_mode": ModelControlMode.EXPLICIT,
            "exit_on_error": False,  # `start` says which models failed, and why
        }
        self._exits_on_error = given.get("exit_on_error", True)
        options.setdefault("startup_models", ["*"])
        super().__init__(**options)
        listening = {name: value for name, value in settings.items() if name not in _OPTIONS}
        self._flags = _flags(_choose_ports(listening, host), host, model_control)
        self._update_lock = threading.Lock()
        self._host = host

    def start(self, *args, **kwargs) -> FunctionServer:
        """As `Server.start`, and listens. One that was stopped has no functions any more, and cannot start again."""
        if not self._repository.close.alive:
            raise InvalidArgumentError("this server was stopped and cannot start again; nereid.serve makes another one")
        super().start(*args, **kwargs)
        try:
            if self._exits_on_error:
                self._check_models()
            self._server.listen(self._flags)
        except TritonError:
            self.stop()
            raise
        return self

    def _check_models(self) -> None:
        """Raises the reasons why models could not be loaded."""
        failed = [one for one in self.models().values() if one.state == "UNAVAILABLE"]
        if failed:
            raise InternalError("; ".join(f"failed to load '{one.name}': {one.reason}" for one in failed))

    def stop(self) -> None:
        super().stop()
        self._repository.close()
        self._functions.clear()

    def wait(self) -> None:
        """Serves until Ctrl-C or SIGTERM, and stops."""
        asked = threading.Event()
        former = None
        try:
            if threading.current_thread() is threading.main_thread():
                former = signal.signal(signal.SIGTERM, lambda *_: asked.set())
            # A signal that comes while the interpreter is about to wait does not end that wait.
            while not asked.wait(timeout=1):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            if former is not None:
                signal.signal(signal.SIGTERM, former)
        if self.is_running():
            self.stop()

    def is_running(self) -> bool:
        """Whether the server was started and not stopped."""
        return isinstance(self._server, _core.Server)

    @property
    def http_port(self) -> Optional[int]:
        """The port of HTTP, None if it is off."""
        return self._server.ports()[0] or None

    @property
    def grpc_port(self) -> Optional[int]:
        """The port of gRPC, None if it is off."""
        return self._server.ports()[1] or None

    @property
    def metrics_port(self) -> Optional[int]:
        """The port of the metrics page, None if it is off."""
        return self._server.ports()[2] or None

    def update(self, *functions: Union[FunctionModel, Callable]) -> FunctionServer:
        """Adds functions, or replaces those of the same names; returns itself. Requests in progress are
        finished by the functions that they came for, and none is refused meanwhile.

        Raises
        ------
        TritonError
            A function could not be loaded. The one of that name before it is served on.
        """
        for function in _sorted(functions, "update")[0]:
            with self._update_lock:
                before = self._functions.get(function.name)
                if before is function:
                    continue
                self._put(function)
                try:
                    self._server.load(function.name, {})
                except TritonError:
                    if before is not None:
                        self._put(before)
                    else:
                        self._functions.pop(function.name)
                    raise
        return self

    def infer(self, model: Union[str, FunctionModel], /, **inputs) -> Any:
        """Calls a model through the scheduler, as a client would: what the function returns, or the last
        value that it yields; for a model of a repository, its outputs by name."""
        result = None
        for result in self.stream(model, **inputs):
            pass
        return result

    def stream(self, model: Union[str, FunctionModel], /, **inputs) -> Iterator[Any]:
        """As `infer`, for models with several responses: an iterator over them. Leaving it cancels the request."""
        name = model if isinstance(model, str) else model.name
        function = self._functions.get(name)
        if function is not None:
            ports = {port.name: port for port in function.inputs}
            rows = -1 if function.max_batch_size else None
            for key, value in inputs.items():
                if key in ports:
                    inputs[key] = ports[key].to_array(value, rows, "input")
        # Whoever leaves the iterator early gives the request up, and its generator with it.
        with contextlib.closing(self.model(name).infer(inputs=inputs)) as responses:
            for response in responses:
                if response.outputs:
                    yield _result(function, response.outputs)

    def _put(self, function: FunctionModel) -> None:
        self._repository.put(function, register(function))
        self._functions[function.name] = function

    def __repr__(self) -> str:
        if not self.is_running():
            return "<nereid server, not running>"
        http, grpc, metrics = self._server.ports()
        services = {"HTTP": http, "gRPC": grpc, "metrics": metrics}
        listening = ", ".join(f"{name} {self._host}:{port}" for name, port in services.items() if port)
        return f"<nereid server: {listening or 'in process only'}; models {', '.join(self._functions)}>"


def _result(function: Optional[FunctionModel], outputs: dict[str, Any]) -> Any:
    if function is None:
        return {name: tensor.__array__() for name, tensor in outputs.items()}
    values = [port.to_value(outputs[port.name]) for port in function.outputs]
    if function.returns_dict:
        return {port.name: value for port, value in zip(function.outputs, values)}
    return values[0] if len(values) == 1 else tuple(values)


def _sorted(models: tuple, caller: str = "serve") -> tuple[list[FunctionModel], list[str]]:
    """The functions and the repositories among the arguments of `serve`."""
    functions: list[FunctionModel] = []
    repositories: list[str] = []
    for one in models:
        if isinstance(one, FunctionModel):
            functions.append(one)
        elif isinstance(one, (str, os.PathLike)) and caller == "serve":
            repositories.append(os.fspath(one))
        elif callable(one):
            functions.append(model(one))
        else:
            raise InvalidArgumentError(f"{caller} takes functions and paths of model repositories, not {one!r}")
    names = [function.name for function in functions]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"two functions are called '{name}'; nereid.model(name=…) gives another name")
    return functions, repositories


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _is_free(host: str, port: int) -> bool:
    """Whether the server could listen there. What else may be wrong, the server says."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _port(name: str, value: Any) -> Any:
    """The setting `value` of a service: a number, or None for one that is off."""
    if value is None or value is False:
        return None
    if isinstance(value, _Usual):
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} must be a port from 0 to 65535, or None for none, not {value!r}") from None


def _choose_ports(settings: dict[str, Any], host: str) -> dict[str, Any]:
    """The settings with the next free port for each service whose usual one is taken, which is said: by another
    program, or by a service for which that port was chosen."""
    chosen = settings | {name: _port(name, settings.get(name)) for name in _SERVICES}
    reserved = {chosen[name] for name in _SERVICES if chosen[name]}
    owners = {port: name for name in _SERVICES if (port := chosen[name]) and not isinstance(port, _Usual)}
    for name in _SERVICES:
        port = chosen[name]
        if not isinstance(port, _Usual) or (port not in owners and _is_free(host, port)):
            continue
        free = (one for one in range(port + 1, 65536) if one not in reserved and _is_free(host, one))
        chosen[name] = next(free, 0)
        reserved.add(chosen[name])
        owner = _TITLES[owners[port]] if port in owners else "another program"
        text = f"port {port} is taken by {owner}: {_TITLES[name]} is on port {chosen[name]}"
        print(text, file=sys.stderr, flush=True)
    return chosen


def _flags(settings: dict[str, Any], host: str, model_control: bool) -> list[str]:
    """The flags of nereid/frontends.h."""
    flags = [f"{service}-address={host}" for service in ("http", "grpc", "metrics")]
    if not model_control:
        # Functions come from this program, and clients load and unload nothing.
        rule = f"model-repository:nereid={secrets.token_hex(16)}"
        flags += [f"http-restricted-api={rule}", f"grpc-restricted-protocol={rule}"]
    for name, value in settings.items():
        if name in _SERVICES:
            flags.append(f"{_SERVICES[name]}={str(value is not None).lower()}")
            if value is None:
                continue
        for item in _listed(value):
            text = str(item).lower() if isinstance(item, bool) else str(item)
            flags.append(f"{name.replace('_', '-')}={text}")
    return flags


# The server that `serve` was last called for, and how.
_served: Optional[tuple[FunctionServer, tuple]] = None


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules


def serve(
    *models: Union[FunctionModel, Callable, str, os.PathLike],
    http_port: Union[int, None] = _Usual(8000),
    grpc_port: Union[int, None] = _Usual(8001),
    metrics_port: Union[int, None] = _Usual(8002),
    host: str = "127.0.0.1",
    block: Optional[bool] = None,
    model_control: bool = False,
    **settings,
) -> FunctionServer:
    """Serves functions and model repositories over HTTP and gRPC, from this process.

    Called again with the same settings while it serves, as when a cell of a notebook is run again, it
    replaces the functions (`FunctionServer.update`) and returns the same server.

    Parameters
    ----------
    models : FunctionModel | Callable | str | PathLike
        Functions, by `nereid.model` or plain ones with annotations, and paths of model repositories.
    http_port, grpc_port, metrics_port : int | None
        None for a service that shall be off, 0 for any free port. Without it, the next free one where the
        usual one is taken, which is said on the standard error.
    host : str
        The address to listen on; "0.0.0.0" for other machines.
    block : Optional[bool]
        Whether to return only when the server has stopped, by Ctrl-C or SIGTERM. By default so, except in
        notebooks and other interactive sessions.
    model_control : bool
        Whether clients may load and unload models.
    settings
        Fields of `Options`, and the flags of the program for HTTP, gRPC and metrics with underscores:
        `http_use_ssl=True`.

    Raises
    ------
    TritonError
        A model could not be loaded, a port is taken, or a setting is wrong.

    Examples
    --------
    >>> with nereid.serve(greet, block=False) as server:
    ...     server.infer(greet, name="World")
    """
    global _served
    settings.update(http_port=http_port, grpc_port=grpc_port, metrics_port=metrics_port)
    functions, repositories = _sorted(models)
    how = (repositories, host, model_control, settings)
    if _served is not None and _served[1] == how and _served[0].is_running():
        server = _served[0].update(*functions)
    else:
        server = FunctionServer((*functions, *repositories), host, model_control, settings).start()
        _served = (server, how)
    if block if block is not None else not _is_interactive():
        print(repr(server).strip("<>"), file=sys.stderr, flush=True)
        server.wait()
    return server
