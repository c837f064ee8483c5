# SPDX-License-Identifier: Apache-2.0
"""Memory that a Python model shares with the server and other models: it stays as long as any of them reads it."""

import json
import os

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import python_models

# Waits until somebody has written to the pipe, for inputs that begin with 0, and notes what it saw. It reads its inputs
# where the model that asks has written them, because it starts after that has gone on.
NOTES = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            seen = request.inputs()[0].as_numpy()
            if seen[0] == 0:
                open(PIPE).read()
            with open(NOTES, "a") as notes:
                notes.write(json.dumps(seen[:2].tolist()) + "\\n")
            sender = request.get_response_sender()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", seen[:2].copy())]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# SIZE is that of the inputs, in numbers.
DROPS = """
def ask(*values):
    tensor = np.zeros(SIZE, np.float32)
    tensor[:2] = values
    return pb_utils.InferenceRequest(
        model_name="notes", requested_output_names=["OUTPUT0"],
        inputs=[pb_utils.Tensor("INPUT0", tensor)]).exec(decoupled=True)

def echo(value):
    answer = pb_utils.InferenceRequest(
        model_name="plain", requested_output_names=["OUTPUT0"],
        inputs=[pb_utils.Tensor("INPUT0", np.full(SIZE, value, np.float32))]).exec()
    return float(answer.output_tensors()[0].as_numpy()[-1])

first = ask(0, 0)
for number in range(1, 5):
    ask(number, number)  # nobody wants these responses, but the model gets the request
gc.collect()
for number in range(20):
    pb_utils.Logger.log_info("x" * 4 * SIZE if SIZE < 10000 else "x")
    assert echo(100 + number) == 100 + number
open(PIPE, "w").close()
list(first)
list(ask(9, 9))
return say(open(NOTES).read())
"""


@pytest.mark.parametrize("size", [2, 50_000])
def test_inputs_of_a_request_stay_when_its_responses_are_not_wanted(start_server, empty_repository, tmp_path, size):
    pipe, notes = tmp_path / "pipe", tmp_path / "notes"
    os.mkfifo(pipe)
    constants = f"PIPE, NOTES, SIZE = {str(pipe)!r}, {str(notes)!r}, {size}\n"
    python_models.write(empty_repository, "notes", constants + NOTES,
                        extra="model_transaction_policy { decoupled: true }\n")
    python_models.write(empty_repository, "plain", python_models.IDENTITY)
    python_models.write_runner(empty_repository, "runs")
    server = python_models.start(start_server, empty_repository)
    seen = [json.loads(line) for line in python_models.run(server, "runs", constants + DROPS).splitlines()]
    assert seen == [[n, n] for n in (0, 1, 2, 3, 4, 9)]


# Returns what another model has responded, while more responses of that one come.
PASSES_ON = """
stop = threading.Event()

def ask(value):
    return pb_utils.InferenceRequest(
        model_name="plain", requested_output_names=["OUTPUT0"],
        inputs=[pb_utils.Tensor("INPUT0", np.full(5000, value, np.float32))]).exec().output_tensors()[0].as_numpy()

def ask_on():
    while not stop.is_set():
        ask(-1)

others = [threading.Thread(target=ask_on) for _ in range(2)]

class TritonPythonModel:
    def initialize(self, args):
        self.started = False

    def execute(self, requests):
        if not self.started:
            self.started = True
            for other in others:
                other.start()
        values = [request.inputs()[0].as_numpy()[0] for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", ask(value))]) for value in values]

    def finalize(self):
        stop.set()
        for other in others:
            other.join()
"""


def test_a_response_of_another_model_can_be_passed_on_while_others_come(start_server, empty_repository):
    python_models.write(empty_repository, "plain", python_models.IDENTITY)
    python_models.write(empty_repository, "passes_on", PASSES_ON)
    server = python_models.start(start_server, empty_repository)
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for number in range(300):
            tensor = httpclient.InferInput("INPUT0", [1], "FP32")
            tensor.set_data_from_numpy(np.array([number], np.float32))
            output = client.infer("passes_on", [tensor]).as_numpy("OUTPUT0")
            assert (output == number).all()
