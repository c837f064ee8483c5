# SPDX-License-Identifier: Apache-2.0
"""The command `nereid` of an installed package: the server's program, which lies in the package.

ONNX Runtime comes from its own package, in a file whose name has its version; the server is told where. Models in
Python run with the interpreter that runs this, unless a flag says otherwise.
"""

import importlib.util
import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
_LIBRARY = "NEREID_ONNXRUNTIME_LIBRARY"


def _onnxruntime_library():
    """The library in the package onnxruntime (or onnxruntime-gpu), which is not imported for that."""
    spec = importlib.util.find_spec("onnxruntime")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(pathlib.Path(folder, "capi").glob("libonnxruntime.so.1.*")):
            return str(path)
    return None


def prepare_environment():
    """Names ONNX Runtime's library for servers in this process and those that it starts."""
    # An installation by other means than a wheel has the library beside the backend.
    if _LIBRARY in os.environ or not (_HERE / "_server").is_dir():
        return
    library = _onnxruntime_library()
    if library is not None:
        os.environ[_LIBRARY] = library


def main():
    """Becomes the server's program."""
    program = _HERE / "_server/bin/nereid"
    if not program.exists():
        sys.exit(f"nereid: {program} does not exist; the command belongs to an installed wheel")
    prepare_environment()
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    # Under Triton's name the program takes Triton's flags only.
    name = "tritonserver" if os.path.basename(sys.argv[0]) == "tritonserver" else "nereid"
    os.execv(program, [name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
