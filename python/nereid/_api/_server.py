# SPDX-License-Identifier: Apache-2.0
"""Servers in this process, and what can be set of them."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import pathlib
import sys
import time
import weakref
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from nereid import _core
from nereid._api._enums import (
    InstanceGroupKind,
    LogFormat,
    MetricFormat,
    ModelControlMode,
    RateLimitMode,
)
from nereid._api._errors import InvalidArgumentError, TritonError, UnavailableError
from nereid._api._model import Model

# TRITONSERVER_INDEX_FLAG_READY
_INDEX_READY = 1


def _default_directory(name: str) -> str:
    """The folder of that name of the installation, or build, that the library belongs to."""
    library = pathlib.Path(_core.library_path()).resolve()
    for parent in library.parents[1:3]:
        if (parent / name).is_dir():
            return str(parent / name)
    return f"/opt/tritonserver/{name}"


@dataclass(slots=True)
class RateLimiterResource:
    """So much of a resource there is on a device.

    Parameters
    ----------
    name : str
    count : int
    device : int
    """

    name: str
    count: int
    device: int


@dataclass(slots=True)
class ModelLoadDeviceLimit:
    """How much of a device's memory may be in use for a model to be loaded there.

    Parameters
    ----------
    kind : InstanceGroupKind
    device : int
    fraction : float
        From 0 to 1.
    """

    kind: InstanceGroupKind
    device: int
    fraction: float


@dataclass(slots=True)
class Options:
    """What a server is started with. Checked by `Server.start`.

    Parameters
    ----------
    model_repository : str | list[str]
        Paths of repositories; at least one.
    server_id : str
        The name in the server's metadata.
    model_control_mode : ModelControlMode
        NONE loads everything at the start, POLL also when `poll_model_repository` finds changes, EXPLICIT
        what `startup_models`, `load` and `unload` say.
    startup_models : list[str]
        With EXPLICIT: what to load at the start; "*" is everything.
    strict_model_config : bool
        Whether models must have a complete configuration.
    rate_limiter_mode : RateLimitMode
    rate_limiter_resources : list[RateLimiterResource]
    pinned_memory_pool_size : int
        In bytes.
    cuda_memory_pool_sizes : dict[int, int]
        Bytes by device.
    cache_config : dict[str, dict[str, Any]]
        By cache: its settings.
    cache_directory, backend_directory, repo_agent_directory : str
        Where plug-ins are looked for: those of this installation by default.
    min_supported_compute_capability : float
    exit_on_error : bool
        Whether `start` fails when a model does.
    strict_readiness : bool
        Whether the server is ready only while all models are.
    exit_timeout : int
        For how many seconds `stop` waits for requests.
    buffer_manager_thread_count, model_load_thread_count, model_load_retry_count : int
    model_namespacing : bool
        Whether models of one name may be in several repositories.
    enable_peer_access : bool
    log_file : Optional[str]
        Instead of the standard error. The log is the process's: the last server to set something of it wins.
    log_info, log_warn, log_error : bool
        What is logged. Each implies the ones after it, and `log_verbose` all of them.
    log_format : LogFormat
    log_verbose : int
        From 0, nothing, up.
    metrics, gpu_metrics, cpu_metrics : bool
    metrics_interval : int
        How often devices are asked, in milliseconds.
    model_load_device_limits : list[ModelLoadDeviceLimit]
    backend_configuration : dict[str, dict[str, str]]
        By backend: its settings. "" is for all of them. Models in Python run under this program's
        interpreter unless "python-runtime" of "python" names another.
    host_policies : dict[str, dict[str, str]]
        By policy: its settings.
    metrics_configuration : dict[str, dict[str, str]]
        By group: its settings.
    model_config_name : str
        The configuration of that name in the model's folder `configs` is preferred. (Not in Triton's
        package.)
    """

    model_repository: Union[str, list[str]] = field(default_factory=list)
    server_id: str = "triton"
    model_control_mode: ModelControlMode = ModelControlMode.NONE
    startup_models: list[str] = field(default_factory=list)
    strict_model_config: bool = False
    rate_limiter_mode: RateLimitMode = RateLimitMode.OFF
    rate_limiter_resources: list[RateLimiterResource] = field(default_factory=list)
    pinned_memory_pool_size: int = 1 << 28
    cuda_memory_pool_sizes: dict[int, int] = field(default_factory=dict)
    cache_config: dict[str, dict[str, Any]] = field(default_factory=dict)
    cache_directory: str = field(default_factory=lambda: _default_directory("caches"))
    min_supported_compute_capability: float = 6.0
    exit_on_error: bool = True
    strict_readiness: bool = True
    exit_timeout: int = 30
    buffer_manager_thread_count: int = 0
    model_load_thread_count: int = 4
    model_load_retry_count: int = 0
    model_namespacing: bool = False
    enable_peer_access: bool = True
    log_file: Optional[str] = None
    log_info: bool = False
    log_warn: bool = False
    log_error: bool = False
    log_format: LogFormat = LogFormat.DEFAULT
    log_verbose: int = 0
    metrics: bool = True
    gpu_metrics: bool = True
    cpu_metrics: bool = True
    metrics_interval: int = 2000
    backend_directory: str = field(default_factory=lambda: _default_directory("backends"))
    repo_agent_directory: str = field(default_factory=lambda: _default_directory("repoagents"))
    model_load_device_limits: list[ModelLoadDeviceLimit] = field(default_factory=list)
    backend_configuration: dict[str, dict[str, str]] = field(default_factory=dict)
    host_policies: dict[str, dict[str, str]] = field(default_factory=dict)
    metrics_configuration: dict[str, dict[str, str]] = field(default_factory=dict)
    model_config_name: str = ""

    def _settings(self) -> list[tuple[str, tuple]]:
        """What to set, in order: the name of a method of _core.ServerOptions, and its arguments."""
        if self.model_repository is None:
            raise InvalidArgumentError("Model repository must be specified.")
        repositories = self.model_repository
        if not isinstance(repositories, (list, tuple)):
            repositories = [repositories]
        settings: list[tuple[str, tuple]] = []
        settings += [("model_repository", (path,)) for path in repositories]
        settings += [("startup_model", (model,)) for model in self.startup_models]
        settings += [
            ("rate_limiter_resource", (resource.name, resource.count, resource.device))
            for resource in self.rate_limiter_resources
        ]
        settings += [("cuda_memory_pool_size", item) for item in self.cuda_memory_pool_sizes.items()]
        settings += [("cache_config", (cache, json.dumps(values))) for cache, values in self.cache_config.items()]
        settings += [
            ("model_load_device_limit", (limit.kind, limit.device, limit.fraction))
            for limit in self.model_load_device_limits
        ]
        backends = dict(self.backend_configuration)
        if sys.executable:
            # Models in Python find what this program finds.
            backends["python"] = {"python-runtime": sys.executable, **backends.get("python", {})}
        for method, groups in (
            ("backend_setting", backends),
            ("host_policy", self.host_policies),
            ("metrics_setting", self.metrics_configuration),
        ):
            settings += [(method, (group, *item)) for group, values in groups.items() for item in values.items()]
        if self.model_config_name:
            settings.append(("model_config_name", (self.model_config_name,)))
        if self.log_file:
            settings.append(("log_file", (self.log_file,)))
        log_info = self.log_info or self.log_verbose > 0
        log_warn = self.log_warn or log_info
        log_error = self.log_error or log_warn
        settings += [("log_info", (log_info,)), ("log_warn", (log_warn,)), ("log_error", (log_error,))]
        settings += [(name, (getattr(self, name),)) for name in _PLAIN_OPTIONS]
        return settings

    def _apply(self) -> _core.ServerOptions:
        options = _core.ServerOptions()
        for name, values in self._settings():
            try:
                getattr(options, name)(*values)
            except TypeError:
                given = ", ".join(f"{value!r} ({type(value).__name__})" for value in values)
                raise TypeError(f"the option {name} cannot be {given}") from None
        return options


# Options that are one value and set by a method of the same name.
_PLAIN_OPTIONS = (
    "server_id",
    "model_control_mode",
    "strict_model_config",
    "rate_limiter_mode",
    "pinned_memory_pool_size",
    "cache_directory",
    "min_supported_compute_capability",
    "exit_on_error",
    "strict_readiness",
    "exit_timeout",
    "buffer_manager_thread_count",
    "model_load_thread_count",
    "model_load_retry_count",
    "model_namespacing",
    "enable_peer_access",
    "log_format",
    "log_verbose",
    "metrics",
    "cpu_metrics",
    "gpu_metrics",
    "metrics_interval",
    "backend_directory",
    "repo_agent_directory",
)


class ModelDictionary(dict):
    """The models that `Server.models` knows, by (name, version); a name alone gives the model without a
    version."""

    def __init__(self, server: Server, models: list[Model]) -> None:
        super().__init__({(model.name, model.version): model for model in models})
        self._server = server
        self._names = {model.name for model in models}

    def __missing__(self, key):
        if isinstance(key, str) and key in self._names:
            return Model(self._server, name=key, version=-1)
        raise KeyError(f"Unknown Model: {key}")

    def __contains__(self, key) -> bool:
        return super().__contains__(key) or key in self._names

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default


class _UnstartedServer:
    """Stands where a server will be."""

    def __getattr__(self, name):
        raise InvalidArgumentError("Server not started")


class Server:
    """A server in this process.

    Any thread may use it. It ends with `stop`, or with the program at the latest; as a context manager it
    runs from the beginning of the block to its end.

    Parameters
    ----------
    options : Optional[Options]
    kwargs
        Fields of `Options`, which take precedence.

    Examples
    --------
    >>> with nereid.Server(model_repository="/models") as server:
    ...     print(server.models())
    """

    def __init__(self, options: Optional[Options] = None, **kwargs) -> None:
        if options is None:
            options = Options(**kwargs)
        elif kwargs:
            options = dataclasses.replace(options, **kwargs)
        self.options: Options = options
        self._server: Union[_core.Server, _UnstartedServer] = _UnstartedServer()

    def start(
        self, wait_until_ready: bool = False, polling_interval: float = 0.1, timeout: Optional[float] = None
    ) -> Server:
        """Starts the server and loads models; returns itself.

        Parameters
        ----------
        wait_until_ready : bool
            Whether to return only when the server is ready.
        polling_interval, timeout : float
            For that: how often to look, and for how long, in seconds.

        Raises
        ------
        InvalidArgumentError
            The server runs already, or an option is wrong.
        UnavailableError
            The server was not ready in time. It runs.
        TritonError
            The server did not start, for instance because a model could not be loaded.
        """
        if isinstance(self._server, _core.Server):
            raise InvalidArgumentError("Server already started")
        self._server = _core.start_server(self.options._apply())
        _running.add(self._server)
        if wait_until_ready:
            deadline = None if timeout is None else time.monotonic() + timeout
            while not self.ready():
                if deadline is not None and time.monotonic() >= deadline:
                    raise UnavailableError("Timeout before ready")
                time.sleep(polling_interval)
        return self

    def stop(self) -> None:
        """Waits for requests in flight, as long as `exit_timeout` says, and unloads all models. Outputs of
        earlier responses stay usable.

        Raises
        ------
        InternalError
            Some requests were not finished in time.
        """
        server = self._server
        server.stop()
        self._server = _UnstartedServer()
        _running.discard(server)

    def __enter__(self) -> Server:
        if not isinstance(self._server, _core.Server):
            self.start()
        return self

    def __exit__(self, *_) -> None:
        if isinstance(self._server, _core.Server):
            self.stop()

    def _ptr(self) -> int:
        """The TRITONSERVER_Server*, for other code that uses the C API."""
        return self._server._ptr()

    def live(self) -> bool:
        """Whether the server works."""
        return self._server.is_live()

    def ready(self) -> bool:
        """Whether the server accepts requests."""
        return self._server.is_ready()

    def metadata(self) -> dict[str, Any]:
        """Name, version and extensions."""
        return json.loads(self._server.metadata())

    def metrics(self, metric_format: MetricFormat = MetricFormat.PROMETHEUS) -> str:
        """The metrics of the server and of this program (`Metric`)."""
        return self._server.metrics(metric_format)

    def model(self, model_name: str, model_version: int = -1) -> Model:
        """A model; whether it exists shows when it is used."""
        return Model(self, model_name, model_version)

    def models(self, exclude_not_ready: bool = False) -> ModelDictionary:
        """The models in the repositories, or those of them that are ready."""
        index = json.loads(self._server.model_index(_INDEX_READY if exclude_not_ready else 0))
        return ModelDictionary(
            self,
            [
                Model(self, entry["name"], int(entry.get("version", -1)), entry.get("state"), entry.get("reason"))
                for entry in index
            ],
        )

    def load(self, model_name: str, parameters: Optional[dict[str, Union[str, int, bool, bytes]]] = None) -> Model:
        """Loads a model, or loads it again, and returns when it is ready. Only with ModelControlMode.EXPLICIT.

        Parameters
        ----------
        model_name : str
        parameters : Optional[dict[str, str | int | bool | bytes]]
            "config" replaces the configuration (JSON), "file:<path>" the files of the model.
        """
        self._server.load(model_name, parameters or {})
        return self.model(model_name)

    def unload(
        self,
        model: Union[str, Model],
        unload_dependents: bool = False,
        wait_until_unloaded: bool = False,
        polling_interval: float = 0.1,
        timeout: Optional[float] = None,
    ) -> None:
        """Takes a model out of service. Only with ModelControlMode.EXPLICIT.

        Parameters
        ----------
        model : str | Model
        unload_dependents : bool
            Whether the models of an ensemble go with it.
        wait_until_unloaded : bool
            Whether to return only when its last request is done and it is gone.
        polling_interval, timeout : float
            For that: how often to look, and for how long, in seconds.
        """
        name = model if isinstance(model, str) else model.name
        if unload_dependents:
            self._server.unload_with_dependents(name)
        else:
            self._server.unload(name)
        if not wait_until_unloaded:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._is_loaded(name) and (deadline is None or time.monotonic() < deadline):
            time.sleep(polling_interval)

    def _is_loaded(self, name: str) -> bool:
        return any(model.name == name and model.state not in (None, "UNAVAILABLE") for model in self.models().values())

    def register_model_repository(self, repository_path: str, name_mapping: Optional[dict[str, str]] = None) -> None:
        """Adds a repository. Only with ModelControlMode.EXPLICIT.

        Parameters
        ----------
        repository_path : str
        name_mapping : Optional[dict[str, str]]
            By folder: the name that its model shall have.
        """
        self._server.register_repository(repository_path, name_mapping or {})

    def unregister_model_repository(self, repository_path: str) -> None:
        """Removes a repository; models loaded from it stay. Only with ModelControlMode.EXPLICIT."""
        self._server.unregister_repository(repository_path)

    def poll_model_repository(self) -> None:
        """Looks for changes in the repositories. Only with ModelControlMode.POLL."""
        self._server.poll_repository()


# Servers have threads that call into this module, so they must be gone when the interpreter ends.
_running: weakref.WeakSet = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    is_unfinished = False
    for server in list(_running):
        try:
            server.stop()
        except TritonError:
            is_unfinished = True  # it had its time
    if is_unfinished and "nereid._functions._run" in sys.modules:
        # A thread of the server is in a function that does not return. It would crash the interpreter that ends.
        print("nereid: a function did not return in time, and the process ends without it", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
