# SPDX-License-Identifier: Apache-2.0
"""The model repository that is made of single model files."""

from __future__ import annotations

import os
import pathlib
import tempfile
import weakref
from typing import Any, Optional

from nereid._api._errors import InvalidArgumentError
from nereid._functions._repository import remove_folder, to_text

# The backend of a file, by the end of its name.
_BACKENDS = {
    ".onnx": "onnxruntime",
    ".pt": "pytorch",
    ".pth": "pytorch",
    ".torchscript": "pytorch",
    ".pt2": "pytorch",
    ".pb": "tensorflow",
    ".graphdef": "tensorflow",
    ".xml": "openvino",
    ".tflite": "openvino",
    ".pdmodel": "openvino",
    ".plan": "tensorrt",
    ".engine": "tensorrt",
    ".py": "python",
}


def is_model_file(path: str) -> bool:
    """Whether the path is that of one model, and not of a repository."""
    return pathlib.PurePath(path).suffix in _BACKENDS


class FileRepository:
    """A temporary folder that links to model files. Removed by `close`, or with the last reference."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="nereid-ray-")
        self.close = weakref.finalize(self, remove_folder, self.path, os.getpid())

    def put(self, path: str, config: Optional[dict[str, Any]]) -> str:
        """Adds a file, with the fields of its configuration that the file does not say; returns the model's name.

        Raises InvalidArgumentError if there is no such file, or another one of that name.
        """
        file = pathlib.Path(path).absolute()
        if not file.is_file():
            raise InvalidArgumentError(f"there is no model file '{path}' on this machine ({os.uname().nodename})")
        name = (config or {}).get("name", file.stem)
        folder = pathlib.Path(self.path, name)
        if folder.exists():
            raise InvalidArgumentError(f"two model files are called '{name}'; a repository can hold both, in two folders")
        (folder / "1").mkdir(parents=True)
        # Weights of ONNX models and of OpenVINO's lie beside them, in files whose names begin alike.
        for beside in file.parent.iterdir():
            if beside.name.startswith(file.stem) and beside.is_file():
                (folder / "1" / beside.name).symlink_to(beside)
        fields = {"name": name, "backend": _BACKENDS[file.suffix], "default_model_filename": file.name}
        (folder / "config.pbtxt").write_text(to_text({**fields, **(config or {})}))
        return name
