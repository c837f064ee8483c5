# SPDX-License-Identifier: Apache-2.0
"""Tensors: numpy arrays with a name, which may lie in the memory shared with the server."""

import struct

import numpy as np

from . import dlpack, native
from . import protocol as p
from .errors import TritonModelException

BYTES, BF16 = 13, 14

_NUMPY_TYPES = {
    1: np.bool_,
    2: np.uint8,
    3: np.uint16,
    4: np.uint32,
    5: np.uint64,
    6: np.int8,
    7: np.int16,
    8: np.int32,
    9: np.int64,
    10: np.float16,
    11: np.float32,
    12: np.float64,
}
_DTYPES = {number: np.dtype(kind) for number, kind in _NUMPY_TYPES.items()}
_DTYPES[BF16] = np.dtype(np.uint16)
_TRITON_TYPES = {np.dtype(kind): number for number, kind in _NUMPY_TYPES.items()}
_TRITON_TYPES[np.dtype(np.object_)] = BYTES

_LENGTH = struct.Struct("<I")


def triton_type(dtype):
    """Returns the number of the data type for a numpy dtype."""
    number = _TRITON_TYPES.get(dtype)
    if number is None:
        if dtype.type is np.bytes_:
            return BYTES
        number = _TRITON_TYPES.get(dtype.newbyteorder("="))
        if number is None:
            raise TritonModelException("NumPy dtype is not supported.")
    return number


def serialize(array):
    """Encodes the elements of an array of bytes, or of objects with a text, each after its length."""
    parts = []
    for element in array.ravel().tolist():
        if type(element) is not bytes:
            element = str(element).encode("utf-8")
        parts.append(_LENGTH.pack(len(element)))
        parts.append(element)
    return b"".join(parts)


def deserialize(data):
    """Decodes what serialize() wrote, as a flat array of objects."""
    data = bytes(data)
    elements = []
    at, end = 0, len(data)
    while at < end:
        if at + 4 > end:
            raise TritonModelException("Invalid bytes tensor data: incomplete length field")
        length = _LENGTH.unpack_from(data, at)[0]
        at += 4
        if at + length > end:
            raise TritonModelException("Invalid bytes tensor data: string extends beyond buffer")
        elements.append(data[at : at + length])
        at += length
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array


class Tensor(native.Tensor):
    """pb_utils.Tensor."""

    __slots__ = ("__weakref__",)

    def as_numpy(self):
        if self._type == BF16:
            raise TritonModelException(
                "A tensor of type BF16 has no numpy array; use to_dlpack() and from_dlpack()"
            )
        return self._values()

    def is_cpu(self):
        return True

    def to_dlpack(self):
        if self._type == BYTES:
            raise TritonModelException("DLPack does not have support for string tensors.")
        return dlpack.export(self._values(), self._type)

    @staticmethod
    def from_dlpack(name, tensor):
        if not isinstance(name, str):
            raise TypeError("from_dlpack(): the name must be a str, not %s" % type(name).__name__)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        return Tensor._of_array(str.__str__(name), *dlpack.take(tensor))

    def __dlpack__(self, stream=None, **_):
        return self.to_dlpack()

    def __dlpack_device__(self):
        return (dlpack.CPU, 0)


def _convert(name, array):
    """Returns name, data type and array of the tensor for what cannot be used as it is. The name is of no
    class that a model has derived, so that no code of the model runs where names are compared. The array is
    contiguous: a copy if it was not, because a model may use what it is a view of for its next tensor."""
    if not isinstance(name, str) or not isinstance(array, np.ndarray):
        raise TypeError(
            "Tensor(): incompatible arguments; expected a str and a numpy.ndarray, got "
            "%s and %s" % (type(name).__name__, type(array).__name__)
        )
    if not name:
        raise TritonModelException("Tensor name cannot be an empty string.")
    number = triton_type(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return str.__str__(name), number, array


def _read_texts(data, shape):
    return deserialize(data).reshape(shape)


def _functions_of_numpy():
    """Returns numpy's table of functions for C extensions."""
    try:
        from numpy._core import _multiarray_umath as module
    except ImportError:
        from numpy.core import _multiarray_umath as module
    return module._ARRAY_API


native.setup_tensors(
    _functions_of_numpy(),
    {**_DTYPES, BYTES: np.dtype(np.object_)},
    Tensor,
    _convert,
    _read_texts,
    serialize,
)


def copy_to(memory, at, array):
    """Copies the array's elements in C order to an offset in an array of bytes."""
    np.ndarray(array.shape, array.dtype, memory, at)[...] = array


# --- Encoding and decoding for the server ---

_heads = {}


def head(name, number, shape):
    """Returns the bytes of a description before and after the data's offset, equal for equal forms."""
    key = (name, number, shape)
    known = _heads.get(key)
    if known is None:
        if len(_heads) > 4096:
            _heads.clear()
        text = name.encode("utf-8")
        before = p.TENSOR_HEAD.pack(number, len(shape), len(text), 0)
        after = struct.pack("<%dq" % len(shape), *shape) + p.padded(text)
        known = _heads[key] = (before, after, len(before) + p.TENSOR_DATA.size + len(after))
    return known


def read(memory_bytes, at):
    """Reads the description of a tensor: returns name, type, shape, data, byte size, and its end."""
    number, dims, name_size, _, data, byte_size = p.TENSOR.unpack_from(memory_bytes, at)
    at += p.TENSOR.size
    shape = struct.unpack_from("<%dq" % dims, memory_bytes, at)
    at += 8 * dims
    name = bytes(memory_bytes[at : at + name_size]).decode("utf-8", "surrogateescape")
    return name, number, shape, data, byte_size, at + name_size + (-name_size % 8)
