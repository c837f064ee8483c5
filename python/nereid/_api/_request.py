# SPDX-License-Identifier: Apache-2.0
"""Requests for inference."""

from __future__ import annotations

import asyncio
import queue
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from nereid import _core
from nereid._api._enums import MemoryType, ModelBatchFlag
from nereid._api._errors import InvalidArgumentError
from nereid._api._memorybuffer import DeviceOrMemoryType, parse_device_or_memory_type
from nereid._api._tensor import Tensor

if TYPE_CHECKING:
    from nereid._api._model import Model


@dataclass
class InferenceRequest:
    """What is asked of a model. Can be sent any number of times, also at once.

    Parameters
    ----------
    model : Model
    request_id : Optional[str]
        Comes back in the responses.
    flags : int
        `RequestFlag` values: where in its sequence the request stands.
    correlation_id : Optional[int | str]
        The sequence that the request belongs to.
    priority : int
        1 is the most urgent; 0 is the model's default.
    timeout : int
        How long the request may wait for its turn, in microseconds; 0 for as long as the model says.
    inputs : dict[str, Tensor | Any]
        By name: a Tensor, a numpy array, any object that supports DLPack or the buffer protocol, or nested
        lists. Memory is not copied unless it has gaps, and not changed; it must stay as it is until the
        model has read it.
    parameters : dict[str, str | int | bool | float]
    output_memory_type : Optional[DeviceOrMemoryType]
        Where outputs shall be; ordinary memory if not given.
    response_queue : Optional[queue.SimpleQueue | asyncio.Queue]
        Gets every response, besides the iterator: an asyncio.Queue with `async_infer`, otherwise a
        queue.SimpleQueue.
    requested_outputs : Optional[Sequence[str]]
        Names of the outputs to compute; all if not given. (Not in Triton's package.)
    classification : Optional[dict[str, int]]
        By output: how many of the best classes the response shall name, with the model's labels. (Not in
        Triton's package.)

    Examples
    --------
    >>> request = server.model("simple").create_request()
    >>> request.inputs["INPUT0"] = numpy.ones((1, 16), dtype=numpy.int32)
    """

    model: Model
    request_id: Optional[str] = None
    flags: int = 0
    correlation_id: Optional[Union[int, str]] = None
    priority: int = 0
    timeout: int = 0
    inputs: dict[str, Union[Tensor, Any]] = field(default_factory=dict)
    parameters: dict[str, Union[str, int, bool, float]] = field(default_factory=dict)
    output_memory_type: Optional[DeviceOrMemoryType] = None
    response_queue: Optional[Union[queue.SimpleQueue, asyncio.Queue]] = None
    requested_outputs: Optional[Sequence[str]] = None
    classification: Optional[dict[str, int]] = None

    def _start(self) -> _core.Call:
        """Sends the request."""
        model = self.model
        has_batches = False
        if self.output_memory_type is not None:
            _check_output_memory(self.output_memory_type)
        if self.classification is not None:
            has_batches = bool(model.batch_properties() & ModelBatchFlag.FIRST_DIM)
        return _core.start_call(
            model._server,
            model.name,
            model.version,
            self.request_id,
            self.flags,
            self.correlation_id,
            self.priority,
            self.timeout,
            self.inputs,
            self.parameters,
            self.requested_outputs or [],
            self.classification,
            has_batches,
        )


def _check_output_memory(wanted: DeviceOrMemoryType) -> None:
    """Finds out before the model runs, not after it."""
    try:
        memory_type, _ = parse_device_or_memory_type(wanted)
        if memory_type == MemoryType.GPU:
            import cupy  # noqa: F401
        elif memory_type != MemoryType.CPU:
            raise InvalidArgumentError("there is no such memory here")
    except (InvalidArgumentError, ImportError) as error:
        raise InvalidArgumentError(f"Memory type {wanted} not supported: {error}") from None
