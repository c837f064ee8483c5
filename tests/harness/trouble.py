# SPDX-License-Identifier: Apache-2.0
"""Models of tests/backends/trouble.cc, which do not return, or crash, when they are told to."""

import contextlib
import http.client
import json
import os

import numpy as np
import pytest

from harness import models
from harness import server as servers

# The commands.
NOTHING, WAIT, WRITE_NOWHERE, ABORT, DIVIDE_BY_ZERO, ILLEGAL_INSTRUCTION = range(6)
READ_PAST_FILE, RECURSE, WRITE_NOWHERE_IN_THREAD, THROW_IN_THREAD = range(6, 10)


def library_of(backend="trouble"):
    return servers.build_folder() / "tests" / "backends" / f"libtriton_{backend}.so"


def require(backend="trouble"):
    """Skips the test where the backend is not built."""
    if not library_of(backend).exists():
        pytest.skip("the tests' backend is not built")


def write(repository, name, backend="trouble", extra=""):
    """Writes a model; `backend` may be trouble_inline, which the event loops run."""
    require(backend)
    library = library_of(backend)
    config = (
        f'backend: "{backend}"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('COMMAND', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('DONE', 'INT32', [1])} ]\n{extra}"
    )
    models.write_model(repository, name, config)
    (repository / name / library.name).symlink_to(library)
    os.mkfifo(repository / name / "gate")


def body(command, **members):
    """The JSON of a request."""
    tensor = {"name": "COMMAND", "datatype": "INT32", "shape": [1], "data": [command]}
    return json.dumps({**members, "inputs": [tensor]})


@contextlib.contextmanager
def closed_gate(repository, name):
    """Lets an execution that waits go on at the end, also if the test fails."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # nobody waits
            gate = os.open(repository / name / "gate", os.O_WRONLY | os.O_NONBLOCK)
            os.write(gate, b"x")
            os.close(gate)


@contextlib.contextmanager
def waiting_at_gate(repository, name):
    """Waits for an execution that waits, which goes on at the end; gives the gate, into which a byte can be written for
    each of several executions that wait."""

    def open_gate():
        try:
            return os.open(repository / name / "gate", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody waits
            return None

    gate = servers.wait_until(open_gate, "an execution that waits")
    try:
        yield gate
    finally:
        os.close(gate)


def tensor(client, command):
    """The input of a request by a client of harness/clients.py."""
    return client.input("COMMAND", np.array([command], np.int32), "INT32")


def send(connection, model, command, request_id="", parameters=None):
    """Sends a request and does not wait for the reply."""
    text = body(command, id=request_id, parameters=parameters or {})
    connection.request("POST", f"/v2/models/{model}/infer", text)


def connect(server, timeout=60):
    """A connection that is open, so that it belongs to one of the event loops."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=timeout)
    get(connection, "/v2/health/live")
    return connection


def get(connection, path):
    """(status, body) of a GET."""
    connection.request("GET", path)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def infer(connection, model, command=NOTHING, request_id="", parameters=None):
    send(connection, model, command, request_id, parameters)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


def problems(text):
    """The problems in a verbose reply, by the name of the check."""
    return {c["name"]: c["problems"] for c in json.loads(text)["checks"] if not c["ok"]}
