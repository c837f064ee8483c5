# SPDX-License-Identifier: Apache-2.0
"""Models of the Python backend, and the surroundings in which it finds an interpreter with numpy."""

import os
import pathlib
import sys
import textwrap

import numpy as np
import psutil
import tritonclient.http as httpclient
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

# Runs the body of a function that a request brings: `request` is the request, and `say` makes a response.
RUNS = """
import gc, textwrap

def say(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.array([text], object))])

class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")

class TritonPythonModel:
    WORD execute(self, requests):
        return [AWAIT self.run(request) for request in requests] RETURNED

    WORD run(self, request):
        code = request.inputs()[0].as_numpy()[0].decode()
        names = {**globals(), "request": request}
        exec("WORD body():\\n" + textwrap.indent(code, "    "), names)
        return AWAIT names.pop("body")()  # without a cycle, so that senders end with the last reference
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


def write_runner(repository, name, is_async=False, is_decoupled=False):
    """A model that runs the code that requests bring."""
    code = RUNS.replace("WORD", "async def" if is_async else "def").replace("AWAIT ", "await " if is_async else "")
    return write(repository, name, code.replace("RETURNED", "and None" if is_decoupled else ""), config=(
        f"input [ {models.tensor_config('INPUT0', 'BYTES', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'BYTES', [-1])} ]\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        + "model_transaction_policy { decoupled: true }\n" * is_decoupled))


def run(server, model, code):
    """Runs code in such a model; returns the text of its response."""
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        tensor = httpclient.InferInput("INPUT0", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([code.encode()], object))
        return client.infer(model, [tensor]).as_numpy("OUTPUT0")[0].decode()


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
