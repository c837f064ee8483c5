# SPDX-License-Identifier: Apache-2.0
"""Writes tensors and responses into blocks of the shared memory."""

from . import protocol as p
from . import tensors
from .session import session

_ALIGNMENT = 64
# Smaller tensors are copied instead of being searched for in shared memory.
_SMALL = 4096


class Writer:
    """Collects descriptions of tensors and their data, which are then written into one block: the data
    after the descriptions. With `shares`, data that lies in shared memory stays where it is; `shared` has
    the arrays, which must live until the server has read them."""

    __slots__ = ("_parts", "_size", "_data", "_data_size", "_shares", "shared")

    def __init__(self, shares):
        self._parts = []  # bytes, or (before, place among the data or None, address, size, after)
        self._size = 0
        self._data = []
        self._data_size = 0
        self._shares = shares
        self.shared = []

    def add(self, text):
        self._parts.append(text)
        self._size += len(text)

    def add_tensor(self, tensor):
        number = tensor._type
        array = tensor._texts
        if array is None:
            array = tensor._values()
            shape = array.shape
            if number == tensors.BYTES:  # as it came from the server
                array = tensors.serialize(array)
        else:
            shape = tensor._shape
        before, after, length = tensors.head(tensor._name, number, shape)
        self._size += length
        if number == tensors.BYTES:
            size = len(array)
        else:
            size = array.nbytes
            if self._shares and size > _SMALL and array.flags.c_contiguous:
                memory = session.memory
                offset = array.__array_interface__["data"][0] - memory.address
                if 0 <= offset and offset + size <= memory.size:
                    self._parts.append((before, False, offset, size, after))
                    self.shared.append(array)
                    return
        self._parts.append((before, True, self._data_size, size, after))
        if size:
            self._data.append((self._data_size, size, array))
            self._data_size += -(-size // _ALIGNMENT) * _ALIGNMENT

    def byte_size(self):
        """The size of everything so far."""
        return self._size + self._data_size

    def write(self):
        """Writes everything into a block: returns its offset and the size of the descriptions."""
        memory = session.memory
        meta_size = self._size
        data_at = -(-meta_size // _ALIGNMENT) * _ALIGNMENT
        offset = memory.allocate(data_at + self._data_size)
        start = offset + p.HEADER_SIZE
        data_at += start
        pack = p.TENSOR_DATA.pack
        pieces = []
        for part in self._parts:
            if type(part) is bytes:
                pieces.append(part)
            else:
                before, is_data, place, size, after = part
                pieces.append(before)
                pieces.append(pack(place + data_at if is_data else place, size))
                pieces.append(after)
        to = memory.bytes
        to[start : start + meta_size] = b"".join(pieces)
        for place, size, array in self._data:
            place += data_at
            if type(array) is bytes:
                to[place : place + size] = array
            elif size <= _SMALL:
                to[place : place + size] = array.tobytes()
            else:
                tensors.copy_to(memory.array, place, array)
        return offset, meta_size

    def add_response(self, response, outputs, release_flags):
        """Adds a response, without outputs that were not requested."""
        error = response._error
        if error is not None:
            text = p.for_people(error._message)
            self.add(p.RESPONSE.pack(p.FAILURE, release_flags, int(error._code), len(text))
                     + p.padded(text))
            return
        wanted = [tensor for tensor in response._tensors if tensor._name in outputs]
        parameters = response._parameters
        text = b"" if parameters == "{}" else parameters.encode("utf-8", "surrogateescape")
        self.add(p.RESPONSE.pack(p.TENSORS, release_flags, len(wanted), len(text)))
        for tensor in wanted:
            self.add_tensor(tensor)
        if text:
            self.add(p.padded(text))


_NO_RESPONSE = [p.RESPONSE.pack(p.NONE, flags, 0, 0) for flags in range(3)]


def no_response(release_flags):
    return _NO_RESPONSE[release_flags] if release_flags < 3 else p.RESPONSE.pack(
        p.NONE, release_flags, 0, 0)
