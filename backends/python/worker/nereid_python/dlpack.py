# SPDX-License-Identifier: Apache-2.0
"""DLPack, using only ctypes and numpy's own exports."""

import ctypes

import numpy as np

from .errors import TritonModelException

CPU, CUDA, CUDA_HOST = 1, 2, 3
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
_BF16 = 14

_TYPES = {
    (_BOOL, 8): (1, np.bool_),
    (_UINT, 8): (2, np.uint8),
    (_UINT, 16): (3, np.uint16),
    (_UINT, 32): (4, np.uint32),
    (_UINT, 64): (5, np.uint64),
    (_INT, 8): (6, np.int8),
    (_INT, 16): (7, np.int16),
    (_INT, 32): (8, np.int32),
    (_INT, 64): (9, np.int64),
    (_FLOAT, 16): (10, np.float16),
    (_FLOAT, 32): (11, np.float32),
    (_FLOAT, 64): (12, np.float64),
    (_BFLOAT, 16): (_BF16, np.uint16),
}


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_Deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype = ctypes.c_int
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]

_NAME = b"dltensor"
# Must stay alive, because a capsule stores only a pointer to its name.
_USED_NAME = b"used_dltensor"


def export(array, number):
    """Returns a capsule that shares the array's memory, with the data type of this number."""
    # Not every numpy can export these types, so they are exported as bits.
    code = {1: _BOOL, _BF16: _BFLOAT}.get(number)
    if number == 1:
        array = array.view(np.uint8)
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if not array.flags.writeable:
        array = array.copy()  # numpy exports nothing that must not be written
    capsule = array.__dlpack__()
    if code is not None:
        _Managed.from_address(_pointer(capsule, _NAME)).code = code
    return capsule


class _Owner:
    """Keeps the tensor of a capsule until nothing uses it any more."""

    def __init__(self, address):
        self._address = address

    def __del__(self):
        deleter = _Managed.from_address(self._address).deleter
        if deleter:
            _Deleter(deleter)(self._address)


def take(tensor):
    """Returns the data type and an array over the memory of a capsule, or of an object that makes one."""
    if type(tensor).__name__ == "PyCapsule":
        return _from_capsule(tensor)
    if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule or have "
            "`__dlpack__` and `__dlpack_device__` attributes"
        )
    _check_device(int(tensor.__dlpack_device__()[0]))
    return _from_capsule(tensor.__dlpack__(stream=None))


def _check_device(kind):
    if kind == CUDA:
        raise TritonModelException(
            "DLPack capsule passed pointer to memory allocated on GPU device, when GPU "
            "is not available"
        )
    if kind not in (CPU, CUDA_HOST):
        raise TritonModelException("DLDevice type %d is not support by Python backend." % kind)


def _from_capsule(capsule):
    if not _is_valid(capsule, _NAME):
        raise TritonModelException("the capsule is not a DLPack tensor, or was already used")
    address = _pointer(capsule, _NAME)
    managed = _Managed.from_address(address)
    _check_device(managed.device_type)
    shape = tuple(managed.shape[i] for i in range(managed.ndim))
    count = 1
    for dim in shape:
        count *= dim
    # Strides between no elements mean nothing, and libraries write different ones.
    if managed.strides and count != 0:
        expected = 1
        for i in reversed(range(managed.ndim)):
            if shape[i] != 1:
                if managed.strides[i] != expected:
                    raise TritonModelException(
                        "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are "
                        "stored in C-Order are supported."
                    )
                expected *= shape[i]
    known = _TYPES.get((managed.code, managed.bits)) if managed.lanes == 1 else None
    if known is None:
        raise TritonModelException("DType code \"%d\" is not supported." % managed.code)
    _set_name(capsule, _USED_NAME)
    owner = _Owner(address)
    number, kind = known
    if count == 0:
        return number, np.empty(shape, kind)
    size = count * np.dtype(kind).itemsize
    buffer = (ctypes.c_char * size).from_address(managed.data + managed.byte_offset)
    buffer.owner = owner
    return number, np.frombuffer(buffer, kind).reshape(shape)
