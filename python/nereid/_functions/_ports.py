# SPDX-License-Identifier: Apache-2.0
"""The inputs and outputs of a function: what is written about them, and the tensors that they become."""

from __future__ import annotations

import collections.abc
import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, NoReturn, Optional, Sequence

import numpy

from nereid import _core
from nereid._api._enums import DataType
from nereid._api._errors import InvalidArgumentError
from nereid._api._tensor import _DATA_TYPE_OF_NUMPY, Tensor

# The data types of Python's own types.
_OF_PYTHON = {
    str: DataType.BYTES,
    bytes: DataType.BYTES,
    bool: DataType.BOOL,
    int: DataType.INT64,
    float: DataType.FP64,
}
_NUMPY_NAMES = {data_type: name for name, data_type in _DATA_TYPE_OF_NUMPY.items()}
# What never stands for its text.
_NO_TEXTS = (type(None), list, tuple, dict, set, numpy.ndarray)


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a function served as a model.

    Parameters
    ----------
    dtype : Any
        What `numpy.dtype` accepts; `str` and `bytes` for texts.
    shape : Sequence[int]
        Without the dimension of the batch; -1 is any size.
    name : Optional[str]
        By default the name of the function's argument; for outputs "output", or "output_0" and so on.
    labels : Optional[Sequence[str]]
        Of an output: the names of its classes, for clients that ask for the best ones.
    """

    dtype: Any
    shape: Sequence[int] = (-1,)
    name: Optional[str] = None
    labels: Optional[Sequence[str]] = None


@dataclass(frozen=True)
class Port:
    """An input or output as the server and the function see it.

    `form` says what the function sees: "array", "list" (a flat list of Python values) or "scalar" (one
    Python value).
    """

    name: str
    data_type: DataType
    dims: tuple[int, ...]
    form: str = "array"
    python_type: Optional[type] = None
    is_optional: bool = False
    labels: Optional[tuple[str, ...]] = None

    @property
    def dtype(self) -> numpy.dtype:
        if self.data_type == DataType.BYTES:
            return numpy.dtype(object)
        return numpy.dtype(_NUMPY_NAMES[self.data_type])

    def config(self) -> dict[str, Any]:
        """This port in a model's configuration."""
        kind = "STRING" if self.data_type == DataType.BYTES else self.data_type.name
        config: dict[str, Any] = {"name": self.name, "data_type": f"TYPE_{kind}", "dims": list(self.dims)}
        if self.is_optional:
            config["optional"] = True
        return config

    # --- From the server ----------------------------------------------------------------------

    def from_memory(self, data_type: int, shape: tuple[int, ...], buffer) -> Any:
        """What the function gets for an input."""
        if data_type == DataType.BYTES:
            return self._texts(shape, _core.deserialize_texts(buffer.address, len(buffer)))
        array = numpy.ndarray(shape, self.dtype, buffer)
        return array if self.form == "array" else self._plain(array.ravel().tolist())

    def _texts(self, shape: tuple[int, ...], texts: list[bytes]) -> Any:
        elements: list = texts
        if self.python_type is str:
            try:
                elements = [text.decode() for text in texts]
            except UnicodeDecodeError as error:
                raise InvalidArgumentError(f"input '{self.name}' is not UTF-8: {error}") from None
        if self.form != "array":
            return self._plain(elements)
        try:
            return self._array_of(elements, shape)
        except ValueError:
            raise InvalidArgumentError(
                f"input '{self.name}' has {len(elements)} texts, which is not its shape {list(shape)}"
            ) from None

    @staticmethod
    def _array_of(texts: list, shape: Sequence[int]) -> numpy.ndarray:
        array = numpy.empty(len(texts), dtype=object)
        array[:] = texts
        return array.reshape(tuple(shape))

    def _plain(self, elements: list) -> Any:
        if self.form == "list":
            return elements
        if len(elements) != 1:
            raise InvalidArgumentError(f"input '{self.name}' must be one value, not {len(elements)}")
        return elements[0]

    # --- To the server ------------------------------------------------------------------------

    def to_array(self, value: Any, rows: Optional[int], what: str = "output") -> numpy.ndarray:
        """`value` as a contiguous array of this type and shape, of `rows` rows unless that is None.

        Raises
        ------
        InvalidArgumentError
            It is of another type or shape; the text names the port.
        """
        where = f"{what} '{self.name}'"
        if self.form == "scalar":
            value = [value]
        elif self.form == "list" and not isinstance(value, numpy.ndarray):
            value = list(value)
        # As objects, because arrays of bytes lose zeros at the end.
        is_plain = self.data_type == DataType.BYTES and not isinstance(value, numpy.ndarray)
        try:
            array = numpy.asarray(value, dtype=object if is_plain else None)
        except Exception as error:
            raise InvalidArgumentError(f"{where} cannot become an array: {error}") from None
        if rows is not None and self.form == "list" and array.ndim == 1:
            array = array.reshape(-1, 1)
        self._check_type(array, where)
        if self.data_type == DataType.BYTES:
            self._check_texts(array, where)
        array = self._narrowed(array, where)
        expected = self.dims if rows is None else (rows if rows >= 0 else -1, *self.dims)
        if len(array.shape) != len(expected) or any(e not in (-1, a) for e, a in zip(expected, array.shape)):
            of_rows = f" for {rows} row{'s' * (rows != 1)}" if rows is not None and rows >= 0 else ""
            raise InvalidArgumentError(f"{where} has shape {list(array.shape)}, expected {list(expected)}{of_rows}")
        # Neither copies what is in order already.
        return numpy.require(array, None if self.data_type == DataType.BYTES else self.dtype, "C")

    def _check_type(self, array: numpy.ndarray, where: str) -> None:
        if self.data_type == DataType.BYTES:
            is_right = array.dtype.kind in "OSU" or array.size == 0
        else:
            is_right = array.size == 0 or numpy.can_cast(array.dtype, self.dtype, "same_kind")
        if not is_right:
            raise InvalidArgumentError(f"{where} has type {array.dtype}, expected {self.describe_type()}")

    @staticmethod
    def _check_texts(array: numpy.ndarray, where: str) -> None:
        if array.dtype.kind != "O":
            return
        wrong = set(map(type, array.ravel().tolist())).intersection(_NO_TEXTS)
        if wrong:
            names = " and ".join(sorted("None" if kind is type(None) else kind.__name__ for kind in wrong))
            raise InvalidArgumentError(f"{where} has {names} in the place of texts")

    def _narrowed(self, array: numpy.ndarray, where: str) -> numpy.ndarray:
        """`array` in this type where that is one of fewer numbers. Refuses those that the type cannot hold, which numpy
        would turn into others: integers, and finite numbers that would become infinite."""
        if array.dtype.kind not in "iuf" or array.size == 0 or numpy.can_cast(array.dtype, self.dtype):
            return array
        if self.dtype.kind in "iu":
            limits = numpy.iinfo(self.dtype)
            for value in (int(array.max()), int(array.min())):
                if not int(limits.min) <= value <= int(limits.max):
                    self._refuse(value, where)
            return array
        with numpy.errstate(over="ignore"):
            narrow = array.astype(self.dtype)
        lost = numpy.isinf(narrow)
        if lost.any() and (lost := lost & numpy.isfinite(array)).any():
            self._refuse(array[lost][0], where)
        return narrow

    def _refuse(self, value: Any, where: str) -> NoReturn:
        raise InvalidArgumentError(f"{where} has the value {value!s}, which {self.dtype.name} cannot hold")

    def to_value(self, tensor: Tensor) -> Any:
        """What a caller in this process gets for an output."""
        if self.data_type == DataType.BYTES:
            # Not by arrays of texts, which lose nulls at the end.
            array = self._array_of(tensor._decoded() if self.python_type is str else tensor._texts(), tensor.shape)
        else:
            array = numpy.asarray(tensor)
        if self.form == "array":
            return array
        return array.ravel().tolist() if self.form == "list" else array.ravel().tolist()[0]

    def describe_type(self) -> str:
        return self.data_type.name if self.data_type == DataType.BYTES else self.dtype.name


def make_port(spec: Any, name: str, is_batching: bool, is_optional: bool = False) -> Port:
    """The port that `spec` describes: a TensorSpec, a dtype, (dtype, shape), a Python type, list[type], or
    numpy.typing.NDArray[dtype].

    Raises
    ------
    InvalidArgumentError
        It describes none; the text says why.
    """
    if isinstance(spec, TensorSpec):
        port = _of_array(spec.dtype, spec.shape, spec.name or name)
        labels = None if spec.labels is None else tuple(spec.labels)
        return dataclasses.replace(port, is_optional=is_optional, labels=labels)
    if isinstance(spec, tuple) and len(spec) == 2:
        return dataclasses.replace(_of_array(spec[0], spec[1], name), is_optional=is_optional)
    spec = _without_none(spec)
    if isinstance(spec, type) and spec in _OF_PYTHON:
        if is_batching:
            raise InvalidArgumentError(
                f"'{name}' is one {spec.__name__}, and a function with max_batch_size gets those of several "
                f"requests at once: write list[{spec.__name__}]"
            )
        return Port(name, _OF_PYTHON[spec], (1,), "scalar", spec, is_optional)
    origin, arguments = typing.get_origin(spec), typing.get_args(spec)
    if origin in (list, collections.abc.Sequence) and len(arguments) == 1 and arguments[0] in _OF_PYTHON:
        return Port(name, _OF_PYTHON[arguments[0]], (1,) if is_batching else (-1,), "list", arguments[0], is_optional)
    if origin is numpy.ndarray and len(arguments) == 2:
        element = typing.get_args(arguments[1])
        if len(element) == 1 and isinstance(element[0], type):
            spec = element[0]
    return dataclasses.replace(_of_array(spec, (-1,), name), is_optional=is_optional)


def _without_none(spec: Any) -> Any:
    """X of Optional[X]."""
    rest = [argument for argument in typing.get_args(spec) if argument is not type(None)]
    is_union = typing.get_origin(spec) is typing.Union or type(spec).__name__ == "UnionType"
    return rest[0] if is_union and len(rest) == 1 else spec


def _of_array(dtype: Any, shape: Sequence[int], name: str) -> Port:
    data_type, python_type = DataType.INVALID, None
    if dtype in (str, bytes):
        data_type, python_type = DataType.BYTES, dtype
    else:
        try:
            made = numpy.dtype(dtype)
            # numpy takes any class for a type of objects.
            is_object = isinstance(dtype, numpy.dtype) or dtype in (object, numpy.object_, "O")
            is_known = dtype is not None and (made.kind != "O" or is_object)
        except TypeError:
            is_known = False
        if not is_known:
            raise InvalidArgumentError(
                f"'{name}': {dtype!r} is not a type of tensors; write for instance numpy.float32, "
                "(numpy.float32, (-1, 4)), str or list[str]"
            )
        if made.kind in "OSU":
            data_type, python_type = DataType.BYTES, bytes
        else:
            data_type = _DATA_TYPE_OF_NUMPY.get(made.name, DataType.INVALID)
    if data_type == DataType.INVALID:
        raise InvalidArgumentError(f"'{name}': tensors cannot have the type {dtype!r}")
    dims = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if not dims or any(size < 1 and size != -1 for size in dims):
        raise InvalidArgumentError(
            f"'{name}': the shape {list(dims)} must have at least one size, each positive or -1 for any"
        )
    return Port(name, data_type, dims, python_type=python_type)
