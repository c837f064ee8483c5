# SPDX-License-Identifier: Apache-2.0
"""Models of a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Optional

from nereid import _core
from nereid._api._enums import ModelBatchFlag, ModelTxnPropertyFlag
from nereid._api._errors import InvalidArgumentError, NotFoundError
from nereid._api._request import InferenceRequest
from nereid._api._response import AsyncResponseIterator, ResponseIterator

if TYPE_CHECKING:
    from nereid._api._server import Server


class Model:
    """A name, perhaps a version, and what can be asked of that model. Comes from a `Server`.

    Whether the model exists shows when it is used.

    Parameters
    ----------
    server : Server
    name : str
    version : int
        -1 for the one that the model's version policy chooses.
    state, reason : Optional[str]
        What `Server.models()` knew of it.
    """

    def __init__(
        self,
        server: Server,
        name: str,
        version: int = -1,
        state: Optional[str] = None,
        reason: Optional[str] = None,
    ) -> None:
        self._server = server._server
        if not isinstance(self._server, _core.Server):
            raise InvalidArgumentError("Server not started")
        self.name = name
        self.version = version
        self.state = state
        self.reason = reason

    def _of_version(self, name: str, version: int) -> Model:
        """The model that a response names."""
        if name == self.name and version == self.version:
            return self
        model = Model.__new__(Model)
        model._server = self._server
        model.name = name
        model.version = version
        model.state = self.state
        model.reason = self.reason
        return model

    def create_request(self, **kwargs) -> InferenceRequest:
        """A request for this model; the arguments are the fields of `InferenceRequest`."""
        kwargs.pop("model", None)
        return InferenceRequest(model=self, **kwargs)

    def infer(
        self, inference_request: Optional[InferenceRequest] = None, raise_on_error: bool = True, **kwargs
    ) -> ResponseIterator:
        """Sends a request; the iterator waits for its responses.

        Parameters
        ----------
        inference_request : Optional[InferenceRequest]
            If not given, one is made of the other arguments.
        raise_on_error : bool
            Whether the iterator raises the error of a response, or returns it in the response.
        kwargs
            Fields of `InferenceRequest`.

        Raises
        ------
        TritonError
            The request does not fit the model, or the model is not there.

        Examples
        --------
        >>> for response in server.model("simple").infer(inputs={"INPUT0": a, "INPUT1": b}):
        ...     print(numpy.from_dlpack(response.outputs["OUTPUT0"]))
        """
        if inference_request is None:
            inference_request = InferenceRequest(model=self, **kwargs)
        return ResponseIterator._start(inference_request, raise_on_error)

    def async_infer(
        self, inference_request: Optional[InferenceRequest] = None, raise_on_error: bool = True, **kwargs
    ) -> AsyncResponseIterator:
        """As `infer`, for asyncio: the iterator is used with `async for`, in the loop that runs now."""
        if inference_request is None:
            inference_request = InferenceRequest(model=self, **kwargs)
        return AsyncResponseIterator._start(inference_request, raise_on_error)

    def metadata(self) -> dict[str, Any]:
        """Names, types and shapes of inputs and outputs, the versions and the platform."""
        return json.loads(self._server.model_metadata(self.name, self.version))

    def config(self, config_version: int = 1) -> dict[str, Any]:
        """The model's configuration."""
        return json.loads(self._server.model_config(self.name, self.version, config_version))

    def statistics(self) -> dict[str, Any]:
        """How many requests there were and what they took."""
        return json.loads(self._server.model_statistics(self.name, self.version))

    def ready(self) -> bool:
        """Whether the model accepts requests; False also for one that is not there."""
        try:
            return self._server.model_is_ready(self.name, self.version)
        except NotFoundError:
            return False

    def batch_properties(self) -> ModelBatchFlag:
        """Whether requests are batched along their first dimension."""
        return ModelBatchFlag(self._server.model_batch_flags(self.name, self.version))

    def transaction_properties(self) -> ModelTxnPropertyFlag:
        """Whether the model is decoupled."""
        return ModelTxnPropertyFlag(self._server.model_transaction_flags(self.name, self.version))

    def __repr__(self) -> str:
        return str({"name": self.name, "version": self.version, "state": self.state})
