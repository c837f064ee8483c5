# SPDX-License-Identifier: Apache-2.0
"""The model repository that a server reads functions from: a temporary folder with a configuration for each,
and a link to the library that calls Python."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import tempfile
import weakref
from typing import Any

import numpy

from nereid import _core
from nereid._api._errors import InvalidArgumentError
from nereid._functions._model import FunctionModel

# Fields of a configuration that are maps, and fields whose texts are names of enumerators. A test compares
# both with proto/model_config.proto.
_MAPS = {
    "parameters",
    "metric_tags",
    "cc_model_filenames",
    "input_map",
    "output_map",
    "inputs",
    "priority_queue_policy",
    "input",  # of a CUDA graph; the model's own inputs are a list
}
_ENUMERATIONS = {"data_type", "kind", "format", "timeout_action", "priority"}


class FunctionRepository:
    """A folder of models that are functions. Removed by `close`, with the last reference, or at the end of
    the program."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="nereid-functions-")
        self.close = weakref.finalize(self, remove_folder, self.path, os.getpid())

    def put(self, model: FunctionModel, function_id: int) -> None:
        """Writes the model, or writes it anew."""
        if not re.fullmatch(r"[^/\0]+", model.name) or model.name in (".", ".."):
            raise InvalidArgumentError(f"a model cannot be called '{model.name}'")
        folder = pathlib.Path(self.path, model.name)
        (folder / "1").mkdir(parents=True, exist_ok=True)
        library = folder / "libtriton_function.so"
        if not library.is_symlink():
            library.symlink_to(os.path.abspath(_core.__file__))
        for port in model.outputs:
            if port.labels is not None:
                (folder / f"{port.name}.labels").write_text("".join(f"{label}\n" for label in port.labels))
        # Replaced as a whole, because the server may be reading.
        written = folder / "config.new"
        written.write_text(to_text(model.config(function_id)))
        written.replace(folder / "config.pbtxt")


def remove_folder(path: str, process: int) -> None:
    """Removes a folder that a process has made. Does nothing in one that was forked from it, which ends as well."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def to_text(message: dict[str, Any], indent: str = "") -> str:
    """A message in protobuf's text format."""
    lines = ""
    for key, value in message.items():
        is_map = key in _MAPS and not (key == "input" and not indent)
        if is_map and isinstance(value, dict):
            value = [{"key": entry, "value": of_entry} for entry, of_entry in value.items()]
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, dict):
                lines += f"{indent}{key} {{\n{to_text(item, indent + '  ')}{indent}}}\n"
            else:
                lines += f"{indent}{key}: {_scalar(key, item)}\n"
    return lines


def _scalar(key: str, value: Any) -> str:
    if isinstance(value, (bool, numpy.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, numpy.floating)):
        return repr(float(value))  # numpy writes its own with their type
    if isinstance(value, (int, numpy.integer)):
        return repr(int(value))  # enumerators with a number, too
    text = str(value)
    if key in _ENUMERATIONS:
        return text
    return '"' + "".join(
        char if char.isprintable() and char not in '"\\' else "".join(f"\\{byte:03o}" for byte in char.encode())
        for char in text
    ) + '"'
