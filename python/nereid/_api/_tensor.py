# SPDX-License-Identifier: Apache-2.0
"""Tensors: a type, a shape and memory, exchanged with other libraries without copying."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

from nereid import _core
from nereid._api import _dlpack
from nereid._api._enums import DataType, DLDeviceType, MemoryType
from nereid._api._errors import InvalidArgumentError, UnsupportedError
from nereid._api._memorybuffer import DeviceOrMemoryType, MemoryBuffer, parse_device_or_memory_type

if TYPE_CHECKING:
    import numpy

# By numpy's name of the type.
_DATA_TYPE_OF_NUMPY = {
    "bool": DataType.BOOL,
    "int8": DataType.INT8,
    "int16": DataType.INT16,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "uint8": DataType.UINT8,
    "uint16": DataType.UINT16,
    "uint32": DataType.UINT32,
    "uint64": DataType.UINT64,
    "float16": DataType.FP16,
    "float32": DataType.FP32,
    "float64": DataType.FP64,
    "bfloat16": DataType.BF16,  # of the package ml_dtypes
}
_NUMPY_OF_DATA_TYPE = {data_type: name for name, data_type in _DATA_TYPE_OF_NUMPY.items()}

# By the codes of the module struct.
_DATA_TYPE_OF_FORMAT = {
    "?": DataType.BOOL,
    "e": DataType.FP16,
    "f": DataType.FP32,
    "d": DataType.FP64,
    **{code: (None, DataType.INT8, DataType.INT16, None, DataType.INT32, None, None, None, DataType.INT64)
       [struct.calcsize(code)] for code in "bhilq"},
    **{code: (None, DataType.UINT8, DataType.UINT16, None, DataType.UINT32, None, None, None, DataType.UINT64)
       [struct.calcsize(code)] for code in "BHILQ"},
}  # fmt: skip
_FORMAT_OF_DATA_TYPE = {data_type: code for code, data_type in _DATA_TYPE_OF_FORMAT.items()}


def _import_numpy():
    """numpy, or None. This package works without it."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _need_numpy():
    numpy = _import_numpy()
    if numpy is None:
        raise UnsupportedError("this returns a numpy array, and numpy is not installed; see Tensor.to_list")
    return numpy


def _need_bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        raise InvalidArgumentError("numpy has no data type for BF16, and the package ml_dtypes is not installed") from None
    return ml_dtypes.bfloat16


@dataclass
class Tensor:
    """Elements of one type in memory.

    The memory is not the tensor's own: `memory_buffer.owner` keeps it alive. Any library that speaks
    DLPack can use it in place (`numpy.from_dlpack(tensor)`), and keeps it alive in turn.

    Parameters
    ----------
    data_type : DataType
    shape : Sequence[int]
    memory_buffer : MemoryBuffer
    """

    data_type: DataType
    shape: Sequence[int]
    memory_buffer: MemoryBuffer

    @property
    def data_ptr(self) -> int:
        """Address of the first element."""
        return self.memory_buffer.data_ptr

    @property
    def memory_type(self) -> MemoryType:
        """Where the memory lies."""
        return self.memory_buffer.memory_type

    @property
    def memory_type_id(self) -> int:
        """The number of the device, for memory of a device."""
        return self.memory_buffer.memory_type_id

    @property
    def size(self) -> int:
        """Size of the memory in bytes."""
        return self.memory_buffer.size

    # --- To other libraries -----------------------------------------------------------------

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The producer's side of DLPack; libraries call it."""
        tensor = self
        if dl_device is not None and tuple(dl_device) != tuple(self.__dlpack_device__()):
            if copy is False:
                raise BufferError("the tensor is on another device, and may not be copied")
            tensor = self.to_device((DLDeviceType(dl_device[0]), dl_device[1]))
        elif copy:
            tensor = self._copied()
        return _dlpack.lend(tensor, stream, max_version, tensor._is_read_only())

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        """Kind and number of the device, as DLPack numbers them."""
        return _dlpack.DEVICE_OF_MEMORY_TYPE[self.memory_type], self.memory_type_id

    def __array__(self, dtype=None, copy=None):
        """For numpy.array(tensor) and numpy.asarray(tensor), for all data types."""
        numpy = _need_numpy()
        if self.data_type == DataType.BYTES:
            array = self.to_bytes_array()
        elif self.data_type == DataType.BF16:
            bits = numpy.from_dlpack(Tensor(DataType.UINT16, self.shape, self.memory_buffer).to_host())
            array = bits.view(_need_bfloat16())
        else:
            array = numpy.from_dlpack(self.to_host())
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("another data type cannot be had without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def to_list(self) -> Any:
        """The elements as nested lists of Python objects; those of type BYTES as bytes. Needs no numpy."""
        host = self.to_host()
        if self.data_type == DataType.BYTES:
            elements = _core.deserialize_texts(host.data_ptr, host.size)
        else:
            data = _core.view_memory(host.data_ptr, host.size)
            if self.data_type == DataType.FP16:
                elements = [value for (value,) in struct.iter_unpack("e", data)]
            elif self.data_type == DataType.BF16:
                # The upper half of an FP32.
                elements = [struct.unpack("<f", b"\0\0" + bytes(data[i : i + 2]))[0] for i in range(0, host.size, 2)]
            else:
                elements = data.cast(_FORMAT_OF_DATA_TYPE[self.data_type]).tolist()
        return _nest(elements, list(self.shape))

    def to_bytes_array(self) -> numpy.ndarray:
        """The elements of a BYTES tensor as a numpy array of bytes objects.

        Raises
        ------
        InvalidArgumentError
            The tensor is of another type, or its memory does not hold as many elements as its shape says.
        """
        numpy = _need_numpy()
        array = numpy.empty(self._count(), dtype=numpy.object_)
        array[:] = self._texts()
        return array.reshape(tuple(self.shape))

    def to_string_array(self) -> numpy.ndarray:
        """The elements of a BYTES tensor as a numpy array of str; they must be UTF-8.

        Its type is numpy's type of texts, unless one of them ends with a null: that type would lose it, and the array
        is one of objects.

        Raises
        ------
        InvalidArgumentError
            As `to_bytes_array`.
        """
        numpy = _need_numpy()
        texts = self._decoded()
        dtype = numpy.object_ if any(text.endswith("\0") for text in texts) else numpy.str_
        return numpy.array(texts, dtype=dtype).reshape(tuple(self.shape))

    def to_host(self) -> Tensor:
        """The tensor in ordinary memory: itself when it is there."""
        return self.to_device("cpu")

    def to_device(self, device: DeviceOrMemoryType) -> Tensor:
        """The tensor in memory of a device: itself when it is there, otherwise a copy, for which cupy is needed.

        Parameters
        ----------
        device : DeviceOrMemoryType
            "cpu", "gpu", "gpu:1", a MemoryType, (MemoryType, number) or (DLDeviceType, number).

        Raises
        ------
        UnsupportedError
            There is no way from here to there.
        """
        memory_type, number = parse_device_or_memory_type(device)
        if (self.memory_type, self.memory_type_id) == (memory_type, number):
            return self
        if self.memory_buffer._is_on_host() and memory_type == MemoryType.CPU:
            return self
        try:
            import cupy
        except ImportError:
            raise UnsupportedError(
                f"Conversion from {self.memory_type.name}:{self.memory_type_id} to {memory_type.name}:{number} "
                "not supported: it needs cupy."
            ) from None
        # As plain bytes, which every library knows.
        flat = Tensor(DataType.UINT8, [self.size], self.memory_buffer)
        source = _need_numpy().from_dlpack(flat) if self.memory_buffer._is_on_host() else cupy.from_dlpack(flat)
        if memory_type == MemoryType.GPU:
            with cupy.cuda.Device(number):
                moved = cupy.asarray(source)
        elif memory_type == MemoryType.CPU:
            moved = cupy.asnumpy(source)
        else:
            raise UnsupportedError(f"Conversion to {memory_type.name} not supported.")
        return Tensor(self.data_type, self.shape, MemoryBuffer.from_dlpack(moved))

    # --- From other libraries ---------------------------------------------------------------

    @staticmethod
    def from_dlpack(obj: Any) -> Tensor:
        """A tensor in the memory of another library's, without copying it.

        Raises
        ------
        InvalidArgumentError
            The object does not support DLPack, its memory has gaps, or its type has no counterpart here.

        Examples
        --------
        >>> tensor = Tensor.from_dlpack(numpy.array([0, 1, 2], dtype=numpy.float16))
        """
        view = _dlpack.take(obj)
        data_type = _dlpack.DATA_TYPE_OF_DLPACK.get(view.type)
        if data_type is None:
            raise InvalidArgumentError(f"DLPack type {view.type[0]} of {view.type[1]} bits has no counterpart")
        return Tensor(data_type, view.shape, MemoryBuffer._from_view(view, obj))

    @staticmethod
    def from_bytes_array(bytes_array: list[str] | list[bytes] | numpy.ndarray) -> Tensor:
        """A BYTES tensor from a numpy array of objects, bytes or str, or from nested lists of str or bytes.

        Texts are written as UTF-8. This copies: elements lie one after the other, each after its length.

        Raises
        ------
        InvalidArgumentError
            There is something else in it.
        """
        tensor = Tensor._from_object(bytes_array)
        if tensor.data_type != DataType.BYTES:
            raise InvalidArgumentError(f"elements of type {tensor.data_type.name} cannot become a BYTES tensor")
        return tensor

    @staticmethod
    def from_string_array(string_array: list[str] | numpy.ndarray) -> Tensor:
        """As `from_bytes_array`."""
        return Tensor.from_bytes_array(string_array)

    @staticmethod
    def _from_object(obj: Any) -> Tensor:
        """A tensor from whatever a request can have as an input."""
        if isinstance(obj, Tensor):
            return obj
        if isinstance(obj, (list, tuple)):
            return Tensor._from_list(obj)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(obj, (numpy.ndarray, numpy.generic)):
            return Tensor._from_numpy(numpy, obj)
        if hasattr(obj, "__dlpack__"):
            return Tensor.from_dlpack(obj)
        if not isinstance(obj, (str, bytes, bytearray)):
            try:
                return Tensor._from_buffer(memoryview(obj))
            except TypeError:
                pass
        raise InvalidArgumentError(
            f"an input of type {type(obj).__name__} is not supported; it must be a numpy array, a list, or "
            "support DLPack or the buffer protocol"
        )

    @staticmethod
    def _from_numpy(numpy, obj) -> Tensor:
        array = numpy.asarray(obj)
        if array.dtype.kind in "OSU":
            return Tensor._of_texts(array.ravel().tolist(), array.shape)
        data_type = _DATA_TYPE_OF_NUMPY.get(array.dtype.name)
        if data_type is None:
            raise InvalidArgumentError(f"Unsupported Numpy data type {array.dtype.name}")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        # Does not copy what is in order already.
        array = numpy.require(array, requirements="C")
        memory = MemoryBuffer(array.ctypes.data, MemoryType.CPU, 0, array.nbytes, array)
        return Tensor(data_type, array.shape, memory)

    @staticmethod
    def _from_buffer(view: memoryview) -> Tensor:
        data_type = _DATA_TYPE_OF_FORMAT.get(view.format.lstrip("@=<"))
        if data_type is None or view.itemsize != struct.calcsize(view.format):
            raise InvalidArgumentError(f"a buffer of format '{view.format}' is not supported")
        return Tensor._owning(data_type, view.shape, view.tobytes())

    @staticmethod
    def _from_list(obj: list | tuple) -> Tensor:
        numpy = _import_numpy()
        if numpy is None:
            return Tensor._from_nested(obj)
        try:
            array = None if isinstance(_first(obj), (str, bytes)) else numpy.array(obj)
            if array is None or array.dtype.kind in "SU":
                # As objects, because arrays of texts lose nulls at the end, and give each as much room as the longest.
                array = numpy.array(obj, dtype=object)
                if any(isinstance(element, (list, tuple, numpy.ndarray)) for element in array.flat):
                    raise InvalidArgumentError("the lists are of different lengths")
            return Tensor._from_numpy(numpy, array)
        except InvalidArgumentError:
            raise
        except Exception as error:
            raise InvalidArgumentError(f"the list cannot become a tensor: {error}") from error

    @staticmethod
    def _from_nested(obj: list | tuple) -> Tensor:
        """As numpy would do it."""
        elements, shape = _flatten(obj)
        kinds = {type(element) for element in elements}
        if kinds and kinds <= {str, bytes}:
            return Tensor._of_texts(elements, shape)
        if kinds and kinds <= {bool}:
            data_type = DataType.BOOL
        elif kinds and kinds <= {bool, int}:
            data_type = DataType.INT64
        elif kinds <= {bool, int, float}:
            data_type = DataType.FP64
        else:
            raise InvalidArgumentError(
                f"a list of {', '.join(sorted(k.__name__ for k in kinds))} cannot become a tensor"
            )
        try:
            return Tensor._owning(
                data_type, shape, struct.pack(f"{len(elements)}{_FORMAT_OF_DATA_TYPE[data_type]}", *elements)
            )
        except struct.error as error:
            raise InvalidArgumentError(f"the list cannot become a tensor: {error}") from error

    @staticmethod
    def _of_texts(elements: list, shape: Sequence[int]) -> Tensor:
        buffer = _core.serialize_texts(elements)
        return Tensor(
            DataType.BYTES, tuple(shape), MemoryBuffer(buffer.address, MemoryType.CPU, 0, len(buffer), buffer)
        )

    @staticmethod
    def _owning(data_type: DataType, shape: Sequence[int], data: bytes) -> Tensor:
        buffer = _core.copy_bytes(data)
        return Tensor(data_type, tuple(shape), MemoryBuffer(buffer.address, MemoryType.CPU, 0, len(buffer), buffer))

    # --- Small parts ------------------------------------------------------------------------

    def _count(self) -> int:
        count = 1
        for dimension in self.shape:
            count *= int(dimension)
        return count

    def _texts(self) -> list[bytes]:
        if self.data_type != DataType.BYTES:
            raise InvalidArgumentError(f"Tensor has data type {DataType(self.data_type).name} not BYTES")
        host = self.to_host()
        texts = _core.deserialize_texts(host.data_ptr, host.size)
        if len(texts) != self._count():
            raise InvalidArgumentError(f"the tensor has {len(texts)} elements, and its shape says {self._count()}")
        return texts

    def _decoded(self) -> list[str]:
        return [item.decode("utf-8") for item in self._texts()]

    def _copied(self) -> Tensor:
        if not self.memory_buffer._is_on_host():
            raise BufferError("only memory of the host can be copied here")
        buffer = _core.copy_memory(self.data_ptr, self.size)
        return Tensor(self.data_type, self.shape, MemoryBuffer(buffer.address, MemoryType.CPU, 0, self.size, buffer))

    def _is_read_only(self) -> bool:
        owner = self.memory_buffer.owner
        if isinstance(owner, _core.DlpackView):
            return owner.is_read_only
        return getattr(getattr(owner, "flags", None), "writeable", True) is False


def _first(obj: Any) -> Any:
    """The first element of nested lists."""
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return obj


def _nest(elements: list, shape: list[int]) -> Any:
    """The elements as lists in lists; a single one when there are no dimensions."""
    if not shape:
        return elements[0]
    for dimension in reversed(shape[1:]):
        count = len(elements) // dimension if dimension else 0
        elements = [elements[i * dimension : (i + 1) * dimension] for i in range(count)]
    return elements


def _flatten(obj: Any) -> tuple[list, tuple[int, ...]]:
    """The elements of nested lists, and their shape."""
    if not isinstance(obj, (list, tuple)):
        return [obj], ()
    elements: list = []
    inner: tuple[int, ...] | None = None
    for item in obj:
        more, shape = _flatten(item)
        if inner is not None and shape != inner:
            raise InvalidArgumentError("the lists are of different lengths")
        inner = shape
        elements += more
    return elements, (len(obj), *(inner or ()))
