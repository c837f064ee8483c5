# SPDX-License-Identifier: Apache-2.0
"""Python models whose workers are confined: what they may do, and what becomes of one that hangs or takes too much."""

import json
import socket

import numpy as np
import pytest
import requests
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers
from harness.isolation import ISOLATED, landlock, parameter
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer

# Evaluates what it gets, and says what came of it.
MODEL = """
import socket


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy()[0].decode()
            try:
                said = str(eval(text))
            except BaseException as error:
                said = type(error).__name__
            said = pb_utils.Tensor("SAID", np.array([said.encode()], np.object_))
            responses.append(pb_utils.InferenceResponse([said]))
        return responses
"""

# Responds to what it gets as often as that says, and then never again.
DECOUPLED = """
class TritonPythonModel:
    def initialize(self, args):
        self.senders = []

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            self.senders.append(sender)
            for _ in range(int(pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()[0])):
                time.sleep(0.3)
                sender.send(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("OUTPUT0", np.array([os.getpid()], np.int32))]))
"""


class Model:
    """Evaluates expressions; the server has a second model that is not confined."""

    def __init__(self, start_server, repository, extra):
        config = (
            f"input [ {models.tensor_config('WHAT', 'BYTES', [1])} ]\n"
            f"output [ {models.tensor_config('SAID', 'BYTES', [1])} ]\n"
            "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        )
        self.folder = python_models.write(repository, "m", MODEL, config, extra=ISOLATED + extra)
        python_models.write(repository, "free", MODEL, config)
        self.server = python_models.start(start_server, repository)
        self.client = httpclient.InferenceServerClient(self.server.http, network_timeout=60)

    def say(self, what, model="m"):
        tensor = httpclient.InferInput("WHAT", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([what.encode()], np.object_))
        return self.client.infer(model, [tensor]).as_numpy("SAID")[0].decode()


@pytest.fixture
def make(start_server, empty_repository):
    return lambda extra="": Model(start_server, empty_repository, extra)


def test_a_worker_that_hangs_is_replaced(make):
    model = make(parameter("isolation_timeout_secs", "2.5"))
    process, other = model.say("os.getpid()"), model.say("os.getpid()", "free")
    reason = (
        "message: Stub process 'm_0(_0)?' is not healthy: it did not respond within isolation_timeout_secs, "
        "which is 2.5"
    )
    for _ in range(3):
        with pytest.raises(InferenceServerException, match=reason):
            model.say("time.sleep(1000)")
        assert model.say("os.getpid()") != process
    assert model.say("os.getpid()", "free") == other


def test_the_time_counts_from_the_last_response(start_server, empty_repository):
    config = (
        f"input [ {models.tensor_config('INPUT0', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'INT32', [1])} ]\n"
        "model_transaction_policy { decoupled: true }\n"
    )
    python_models.write(empty_repository, "d", DECOUPLED, config,
                        extra=ISOLATED + parameter("isolation_timeout_secs", "5"))  # fmt: skip
    server = python_models.start(start_server, empty_repository)
    reply = requests.post(f"http://{server.http}/v2/models/d/generate_stream", json={"INPUT0": 18}, timeout=60)
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    assert len(events) == 19
    assert "did not respond within isolation_timeout_secs, which is 5" in events[-1]["error"]


def test_a_worker_gets_no_more_memory_than_it_may(make):
    if servers.is_sanitized():
        pytest.skip("a sanitizer reserves terabytes")
    model = make(parameter("isolation_memory_mb", "1000"))
    assert model.say("len(bytes(100 << 20))") == str(100 << 20)
    assert model.say("len(bytes(4000 << 20))") == "MemoryError"
    assert model.say("len(bytes(4000 << 20))", "free") == str(4000 << 20)


@landlock
def test_a_worker_reads_its_own_folder_and_writes_temporary_files(make, tmp_path):
    (tmp_path / "secret").write_text("secret")
    model = make()
    assert model.say(f"open('{tmp_path}/secret').read()") == "PermissionError"
    assert model.say(f"open('{tmp_path}/secret').read()", "free") == "secret"
    assert model.say(f"len(open('{model.folder}/config.pbtxt').read()) > 0") == "True"
    assert model.say(f"open('{model.folder}/new', 'w')") == "PermissionError"
    assert model.say("open(os.environ['TMPDIR'] + '/new', 'w').write('x')") == "1"
    assert model.say("__import__('json').dumps(1)") == "1"


@pytest.mark.parametrize("may", [False, True])
def test_a_worker_has_no_network_unless_it_is_allowed(make, may):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model = make(parameter("isolation_network", "true") if may else "")
        call = f"socket.create_connection(('127.0.0.1', {listener.getsockname()[1]})).close()"
        assert model.say(call) == ("None" if may else "PermissionError")
        assert model.say(call, "free") == "None"


def test_a_worker_cannot_signal_the_server(make):
    model = make()
    assert model.say(f"os.kill({model.server.pid}, 0)") == "PermissionError"
    assert model.say(f"os.kill({model.server.pid}, 0)", "free") == "None"
