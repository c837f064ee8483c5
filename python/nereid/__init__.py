# SPDX-License-Identifier: Apache-2.0
"""Nereid inside a Python program: models run in this process, without a socket.

The names and what they do are those of Triton's package `tritonserver`, so that

    import nereid as tritonserver

is all that a program for that needs. See docs/python_api.md, and docs/python_functions.md for Python functions
that are served as models.

    >>> with nereid.Server(model_repository="examples/models") as server:
    ...     for response in server.model("simple").infer(inputs={"INPUT0": a, "INPUT1": b}):
    ...         print(numpy.from_dlpack(response.outputs["OUTPUT0"]))
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from nereid import _program as _program
from nereid import _telemetry as _telemetry
from nereid._api._enums import DataType as DataType
from nereid._api._enums import DLDeviceType as DLDeviceType
from nereid._api._enums import InstanceGroupKind as InstanceGroupKind
from nereid._api._enums import LogFormat as LogFormat
from nereid._api._enums import LogLevel as LogLevel
from nereid._api._enums import MemoryType as MemoryType
from nereid._api._enums import MetricFormat as MetricFormat
from nereid._api._enums import MetricKind as MetricKind
from nereid._api._enums import ModelBatchFlag as ModelBatchFlag
from nereid._api._enums import ModelControlMode as ModelControlMode
from nereid._api._enums import ModelTxnPropertyFlag as ModelTxnPropertyFlag
from nereid._api._enums import RateLimitMode as RateLimitMode
from nereid._api._enums import RequestFlag as RequestFlag
from nereid._api._errors import AlreadyExistsError as AlreadyExistsError
from nereid._api._errors import CancelledError as CancelledError
from nereid._api._errors import InternalError as InternalError
from nereid._api._errors import InvalidArgumentError as InvalidArgumentError
from nereid._api._errors import NotFoundError as NotFoundError
from nereid._api._errors import TritonError as TritonError
from nereid._api._errors import UnavailableError as UnavailableError
from nereid._api._errors import UnknownError as UnknownError
from nereid._api._errors import UnsupportedError as UnsupportedError
from nereid._api._logging import LogMessage as LogMessage
from nereid._api._memorybuffer import MemoryBuffer as MemoryBuffer
from nereid._api._metrics import Metric as Metric
from nereid._api._metrics import MetricFamily as MetricFamily
from nereid._api._model import Model as Model
from nereid._api._request import InferenceRequest as InferenceRequest
from nereid._api._response import AsyncResponseIterator as AsyncResponseIterator
from nereid._api._response import Class as Class
from nereid._api._response import InferenceResponse as InferenceResponse
from nereid._api._response import ResponseIterator as ResponseIterator
from nereid._api._server import ModelDictionary as ModelDictionary
from nereid._api._server import ModelLoadDeviceLimit as ModelLoadDeviceLimit
from nereid._api._server import Options as Options
from nereid._api._server import RateLimiterResource as RateLimiterResource
from nereid._api._server import Server as Server
from nereid._api._tensor import Tensor as Tensor
from nereid._core import __version__ as __version__

_program.prepare_environment()

if _TYPE_CHECKING:
    from nereid._functions._model import FunctionModel as FunctionModel
    from nereid._functions._model import RequestContext as RequestContext
    from nereid._functions._model import model as model
    from nereid._functions._ports import TensorSpec as TensorSpec
    from nereid._functions._serve import FunctionServer as FunctionServer
    from nereid._functions._serve import serve as serve

# Functions as models need numpy, the rest does not, so they are imported when they are first used.
_FUNCTIONS = {
    "FunctionModel": "_model",
    "FunctionServer": "_serve",
    "RequestContext": "_model",
    "TensorSpec": "_ports",
    "model": "_model",
    "serve": "_serve",
}


def __getattr__(name):
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'nereid' has no attribute '{name}'")
    import importlib

    found = getattr(importlib.import_module(f"nereid._functions.{_FUNCTIONS[name]}"), name)
    globals()[name] = found
    return found
