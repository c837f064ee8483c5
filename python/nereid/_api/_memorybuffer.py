# SPDX-License-Identifier: Apache-2.0
"""Memory that a tensor lies in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Union

from nereid import _core
from nereid._api import _dlpack
from nereid._api._enums import DLDeviceType, MemoryType
from nereid._api._errors import InvalidArgumentError

DeviceOrMemoryType = Union[tuple[MemoryType, int], MemoryType, tuple[DLDeviceType, int], str]


@dataclass
class MemoryBuffer:
    """Address, place and size of a block of memory, and what keeps it alive.

    Parameters
    ----------
    data_ptr : int
        The address.
    memory_type : MemoryType
    memory_type_id : int
        The number of the device, for memory of a device.
    size : int
        In bytes.
    owner : Any
        The memory stays for as long as this object does.

    Examples
    --------
    >>> buffer = MemoryBuffer.from_dlpack(numpy.array([100], dtype=numpy.uint8))
    """

    data_ptr: int
    memory_type: MemoryType
    memory_type_id: int
    size: int
    owner: Any

    @staticmethod
    def from_dlpack(owner: Any) -> MemoryBuffer:
        """The memory of a tensor of any library, without copying it.

        Raises
        ------
        InvalidArgumentError
            The object does not support DLPack, or its memory has gaps.
        """
        return MemoryBuffer._from_view(_dlpack.take(owner), owner)

    @staticmethod
    def _from_view(view: _core.DlpackView, owner: Any) -> MemoryBuffer:
        device_type, device_id = view.device
        memory_type = _dlpack.MEMORY_TYPE_OF_DEVICE.get(device_type)
        if memory_type is None:
            raise InvalidArgumentError(f"memory of DLPack device type {device_type} is not supported")
        # An array of numpy's holds its memory for as long as it lives; of others only the view is sure to.
        numpy_array = type(owner).__module__ == "numpy"
        return MemoryBuffer(view.address, memory_type, device_id, view.byte_size, owner if numpy_array else view)

    def _is_on_host(self) -> bool:
        return self.memory_type in (MemoryType.CPU, MemoryType.CPU_PINNED)


def parse_device_or_memory_type(wanted: DeviceOrMemoryType) -> tuple[MemoryType, int]:
    """What "cpu", "gpu:1", MemoryType.GPU, (MemoryType.GPU, 1) or (DLDeviceType.kDLCUDA, 1) stands for."""
    device = 0
    kind: Any = wanted
    if isinstance(wanted, tuple) and len(wanted) == 2:
        kind, device = wanted
    if isinstance(kind, MemoryType):
        memory_type = kind
    elif isinstance(kind, DLDeviceType):
        memory_type = _dlpack.MEMORY_TYPE_OF_DEVICE.get(kind)
    elif isinstance(wanted, str):
        match = re.fullmatch(r"(cpu|cpu_pinned|gpu)(?::(\d+))?", wanted, re.IGNORECASE)
        memory_type = MemoryType[match[1].upper()] if match else None
        device = int(match[2] or 0) if match else 0
    else:
        memory_type = None
    if memory_type is None or not isinstance(device, int) or device < 0:
        raise InvalidArgumentError(f"{wanted!r} is not a memory type")
    return memory_type, device
