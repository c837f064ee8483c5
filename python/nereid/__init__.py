# SPDX-License-Identifier: Apache-2.0
"""Nereid inside a Python program: models run in this process, without a socket.

The names and what they do are those of Triton's package `tritonserver`, so that

    import nereid as tritonserver

is all that a program for that needs. See docs/python_api.md.

    >>> with nereid.Server(model_repository="examples/models") as server:
    ...     for response in server.model("simple").infer(inputs={"INPUT0": a, "INPUT1": b}):
    ...         print(numpy.from_dlpack(response.outputs["OUTPUT0"]))
"""

import os as _os

# ONNX Runtime keeps and sends data about its use unless this is set before its first session.
_os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from nereid._api._enums import DataType as DataType  # noqa: E402
from nereid._api._enums import DLDeviceType as DLDeviceType  # noqa: E402
from nereid._api._enums import InstanceGroupKind as InstanceGroupKind  # noqa: E402
from nereid._api._enums import LogFormat as LogFormat  # noqa: E402
from nereid._api._enums import LogLevel as LogLevel  # noqa: E402
from nereid._api._enums import MemoryType as MemoryType  # noqa: E402
from nereid._api._enums import MetricFormat as MetricFormat  # noqa: E402
from nereid._api._enums import MetricKind as MetricKind  # noqa: E402
from nereid._api._enums import ModelBatchFlag as ModelBatchFlag  # noqa: E402
from nereid._api._enums import ModelControlMode as ModelControlMode  # noqa: E402
from nereid._api._enums import ModelTxnPropertyFlag as ModelTxnPropertyFlag  # noqa: E402
from nereid._api._enums import RateLimitMode as RateLimitMode  # noqa: E402
from nereid._api._enums import RequestFlag as RequestFlag  # noqa: E402
from nereid._api._errors import AlreadyExistsError as AlreadyExistsError  # noqa: E402
from nereid._api._errors import CancelledError as CancelledError  # noqa: E402
from nereid._api._errors import InternalError as InternalError  # noqa: E402
from nereid._api._errors import InvalidArgumentError as InvalidArgumentError  # noqa: E402
from nereid._api._errors import NotFoundError as NotFoundError  # noqa: E402
from nereid._api._errors import TritonError as TritonError  # noqa: E402
from nereid._api._errors import UnavailableError as UnavailableError  # noqa: E402
from nereid._api._errors import UnknownError as UnknownError  # noqa: E402
from nereid._api._errors import UnsupportedError as UnsupportedError  # noqa: E402
from nereid._api._logging import LogMessage as LogMessage  # noqa: E402
from nereid._api._memorybuffer import MemoryBuffer as MemoryBuffer  # noqa: E402
from nereid._api._metrics import Metric as Metric  # noqa: E402
from nereid._api._metrics import MetricFamily as MetricFamily  # noqa: E402
from nereid._api._model import Model as Model  # noqa: E402
from nereid._api._request import InferenceRequest as InferenceRequest  # noqa: E402
from nereid._api._response import AsyncResponseIterator as AsyncResponseIterator  # noqa: E402
from nereid._api._response import Class as Class  # noqa: E402
from nereid._api._response import InferenceResponse as InferenceResponse  # noqa: E402
from nereid._api._response import ResponseIterator as ResponseIterator  # noqa: E402
from nereid._api._server import ModelDictionary as ModelDictionary  # noqa: E402
from nereid._api._server import ModelLoadDeviceLimit as ModelLoadDeviceLimit  # noqa: E402
from nereid._api._server import Options as Options  # noqa: E402
from nereid._api._server import RateLimiterResource as RateLimiterResource  # noqa: E402
from nereid._api._server import Server as Server  # noqa: E402
from nereid._api._tensor import Tensor as Tensor  # noqa: E402
from nereid._core import __version__ as __version__  # noqa: E402
