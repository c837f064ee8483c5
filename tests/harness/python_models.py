# SPDX-License-Identifier: Apache-2.0
"""Models of the Python backend, and the surroundings in which it finds an interpreter with numpy."""

import os
import pathlib
import sys
import textwrap

import psutil
from harness import models

# That of the tests, whatever is in PATH otherwise; or a folder with another python3, which has numpy.
_FOLDER = os.environ.get("NEREID_MODEL_PYTHON") or os.path.dirname(sys.executable)
ENVIRONMENT = {"PATH": _FOLDER + os.pathsep + os.environ.get("PATH", "")}

HEAD = """\
import json, os, sys, threading, time, asyncio
import numpy as np
import triton_python_backend_utils as pb_utils

"""

IDENTITY = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value.as_numpy())]))
        return responses
"""


def write(repository, name, code, config=None, datatype="FP32", dims=(-1,), extra="", max_batch_size=0):
    """A model of this class TritonPythonModel; without `config`, INPUT0 and OUTPUT0 of one type."""
    if config is None:
        config = (
            f"max_batch_size: {max_batch_size}\n"
            f"input [ {models.tensor_config('INPUT0', datatype, dims)} ]\n"
            f"output [ {models.tensor_config('OUTPUT0', datatype, dims)} ]\n"
            "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        )
    folder = pathlib.Path(repository) / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(HEAD + textwrap.dedent(code))
    (folder / "config.pbtxt").write_text('backend: "python"\n' + config + extra)
    return folder


def start(start_server, repository, *args):
    """A server of these models, whose workers find an interpreter with numpy."""
    return start_server(repository, args=args, env=ENVIRONMENT)


def workers(server):
    """The processes that run models, by instance: the arguments say nothing, so all of them."""
    return [
        child
        for child in psutil.Process(server.pid).children(recursive=True)
        if any(part.endswith("worker.py") for part in _arguments(child))
    ]


def _arguments(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []
