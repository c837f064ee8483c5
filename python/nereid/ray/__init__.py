# SPDX-License-Identifier: Apache-2.0
"""Nereid as a deployment of Ray Serve: models behind Ray's proxy and handles, batched by this server and scaled by
Ray. See docs/ray.md.

    >>> import nereid.ray
    >>> app = nereid.ray.app("model.onnx", num_replicas=2)

and then `serve run module:app`, or `ray.serve.run(app)`. Needs Ray Serve, `pip install 'ray[serve]>=2.60,<2.61'`.
"""

import os as _os

# Before Ray is imported and starts a cluster, which otherwise reports its use to its makers.
_os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from typing import Any, Optional, Union  # noqa: E402

try:
    from ray import serve as _serve
    from ray.serve.config import RequestRouterConfig as _RequestRouterConfig
except ImportError as _error:
    # The versions of the wheel's extra (packaging/wheel.py). Not by the extra itself: in an environment without this
    # package, `nereid[ray]` is another package of the index.
    raise ImportError(f"nereid.ray needs Ray Serve: pip install 'ray[serve]>=2.60,<2.61' ({_error})") from _error

from nereid._functions._model import FunctionModel  # noqa: E402
from nereid.ray._deployment import Replica, existing, multiplexed_replica  # noqa: E402
from nereid.ray._router import SequenceRouter as SequenceRouter  # noqa: E402

# Batches are made of the requests that a replica has at once; Ray gives it 5 unless told otherwise.
_OPTIONS = {
    "name": "nereid",
    "max_ongoing_requests": 1000,
    "request_router_config": _RequestRouterConfig(request_router_class=SequenceRouter),
}

Deployment = _serve.deployment(**_OPTIONS)(Replica)
"""For `Deployment.options(…).bind("model.onnx")`; `app` is the short form."""


def app(
    *models: Union[str, _os.PathLike, FunctionModel],
    config: Optional[dict[str, Any]] = None,
    max_models_per_replica: Optional[int] = None,
    server: Optional[dict[str, Any]] = None,
    **deployment: Any,
) -> _serve.Application:
    """An application of Ray Serve that serves models.

    Parameters
    ----------
    models : str | PathLike | FunctionModel
        Model files, paths of model repositories (also s3://…), and functions by `nereid.model`. Files are read on
        the machines of the replicas.
    config : Optional[dict[str, Any]]
        For a single model file: fields of its configuration that the file does not say, such as the inputs of a
        TorchScript file.
    max_models_per_replica : Optional[int]
        If given, models of the repositories are loaded when a request names them, or Ray's multiplexed model id does,
        and the one that was not used for longest is unloaded when there would be more.
    server : Optional[dict[str, Any]]
        Fields of `nereid.Options`, and flags of the program for HTTP with underscores.
    deployment
        What `ray.serve.deployment` takes: `num_replicas`, `autoscaling_config`, `ray_actor_options`, ….

    Raises
    ------
    ValueError
        Ray does not take an option. What is wrong with a model, its replicas say when they start.

    Examples
    --------
    >>> app = nereid.ray.app("models/", max_models_per_replica=3, autoscaling_config={"max_replicas": 8})
    """
    options = {**_OPTIONS, **deployment}
    sources = [one if isinstance(one, FunctionModel) or callable(one) else existing(_os.fspath(one)) for one in models]
    is_multiplexed = max_models_per_replica is not None
    replica = _serve.deployment(multiplexed_replica(max_models_per_replica)) if is_multiplexed else Deployment
    return replica.options(**options).bind(*sources, config=config, server=server, is_multiplexed=is_multiplexed)
