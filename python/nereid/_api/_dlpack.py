# SPDX-License-Identifier: Apache-2.0
"""DLPack: how tensor libraries lend each other memory."""

from __future__ import annotations

from typing import Any

from nereid import _core
from nereid._api._enums import DataType, DLDeviceType, MemoryType
from nereid._api._errors import InvalidArgumentError, TritonError, UnsupportedError

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6

# (code, bits) of DLPack.
DATA_TYPE_OF_DLPACK = {
    (_BOOL, 8): DataType.BOOL,
    (_INT, 8): DataType.INT8,
    (_INT, 16): DataType.INT16,
    (_INT, 32): DataType.INT32,
    (_INT, 64): DataType.INT64,
    (_UINT, 8): DataType.UINT8,
    (_UINT, 16): DataType.UINT16,
    (_UINT, 32): DataType.UINT32,
    (_UINT, 64): DataType.UINT64,
    (_FLOAT, 16): DataType.FP16,
    (_FLOAT, 32): DataType.FP32,
    (_FLOAT, 64): DataType.FP64,
    (_BFLOAT, 16): DataType.BF16,
}
DLPACK_OF_DATA_TYPE = {data_type: dlpack for dlpack, data_type in DATA_TYPE_OF_DLPACK.items()}

MEMORY_TYPE_OF_DEVICE = {
    DLDeviceType.kDLCPU: MemoryType.CPU,
    DLDeviceType.kDLCUDAHost: MemoryType.CPU_PINNED,
    DLDeviceType.kDLCUDA: MemoryType.GPU,
}
# Page-locked memory is ordinary memory to whoever looks at it.
DEVICE_OF_MEMORY_TYPE = {
    MemoryType.CPU: DLDeviceType.kDLCPU,
    MemoryType.CPU_PINNED: DLDeviceType.kDLCPU,
    MemoryType.GPU: DLDeviceType.kDLCUDA,
}


def take(obj: Any) -> _core.DlpackView:
    """A view of another library's tensor, which holds it."""
    if not hasattr(obj, "__dlpack__") or not hasattr(obj, "__dlpack_device__"):
        raise InvalidArgumentError("Object does not support DLPack protocol")
    try:
        # 1 is CUDA's default stream: what was written there is there to be read.
        arguments = {"stream": 1} if obj.__dlpack_device__()[0] == DLDeviceType.kDLCUDA else {}
        try:
            capsule = obj.__dlpack__(max_version=(1, 0), **arguments)
        except TypeError:
            capsule = obj.__dlpack__(**arguments)
        return _core.DlpackView(capsule)
    except TritonError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"Object does not support DLPack protocol: {error}") from error


def lend(tensor: Any, stream: Any, max_version: Any, is_read_only: bool) -> Any:
    """A capsule through which another library uses the tensor's memory; it holds the tensor."""
    if tensor.data_type not in DLPACK_OF_DATA_TYPE:
        raise InvalidArgumentError(f"DLPack has no data type for {DataType(tensor.data_type).name}")
    _wait_for_stream(tensor, stream)
    return _core.export_dlpack(
        tensor,
        tensor.data_ptr,
        list(tensor.shape),
        DLPACK_OF_DATA_TYPE[tensor.data_type],
        (DEVICE_OF_MEMORY_TYPE[tensor.memory_type], tensor.memory_type_id),
        max_version is not None and max_version[0] >= 1,
        is_read_only,
    )


def _wait_for_stream(tensor: Any, stream: Any) -> None:
    """Makes the consumer's stream wait for what was queued on ours. -1 says that it does so itself."""
    if stream is not None and not isinstance(stream, int):
        raise UnsupportedError(f"stream {stream!r} is not a number")
    if tensor.memory_type != MemoryType.GPU:
        if stream not in (None, 0, -1):
            raise UnsupportedError(f"memory of type {tensor.memory_type.name} has no streams")
        return
    if stream == -1:
        return
    try:
        import cupy
    except ImportError:
        raise UnsupportedError("memory of a GPU needs cupy") from None
    with cupy.cuda.Device(tensor.memory_type_id):
        ours = cupy.cuda.get_current_stream()
        if stream in (None, 0, 1):
            theirs = cupy.cuda.Stream.null
        elif stream == 2:
            theirs = cupy.cuda.Stream.ptds
        else:
            theirs = cupy.cuda.ExternalStream(stream)
        if theirs.ptr != ours.ptr:
            theirs.wait_event(ours.record())
