# SPDX-License-Identifier: Apache-2.0
"""Clients that read more slowly than a model sends, and those who ask the same model meanwhile."""

import numpy as np
import pytest
from harness import decoupled, models, python_models, slow_stream
from harness import server as servers

# Each request has a thread.
FRAMES = """
class TritonPythonModel:
    sent = 0

    def execute(self, requests):
        for request in requests:
            count = int(pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()[0])
            threading.Thread(target=self.send, args=(count, request.get_response_sender())).start()

    def send(self, count, sender):
        for i in range(count):
            frame = np.zeros(1 << 17, np.int64)
            frame[0] = i
            frame[1] = TritonPythonModel.sent
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", frame)]))
            if count > 1:
                TritonPythonModel.sent += 1
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


# An ensemble of it, whose second step needs a resource that the first one holds.
RESOURCE = 'rate_limiter { resources [ { name: "R" count: 1 } ] }'
ENSEMBLE = f"""platform: "ensemble"
input [ {models.tensor_config('INPUT0', 'INT64', [1])} ]
output [ {models.tensor_config('OUTPUT0', 'INT64', [-1])} ]
ensemble_scheduling {{
  step [ {{ model_name: "frames" model_version: -1
            input_map {{ key: "INPUT0" value: "INPUT0" }} output_map {{ key: "OUTPUT0" value: "frame" }} }},
         {{ model_name: "identity" model_version: -1
            input_map {{ key: "INPUT0" value: "frame" }} output_map {{ key: "OUTPUT0" value: "OUTPUT0" }} }} ]
  max_inflight_requests: 2
}}
"""


@pytest.mark.parametrize("model", ["frames", "ensemble"])
def test_a_client_that_does_not_read_holds_up_no_other_request_of_a_python_model(require_server, tmp_path, model):
    repository = tmp_path / "models"
    python_models.write(repository, "frames", FRAMES, config=(
        f"input [ {models.tensor_config('INPUT0', 'INT64', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'INT64', [-1])} ]\n"
        f"instance_group [ {{ kind: KIND_CPU count: 1 {RESOURCE} }} ]\n"
        "model_transaction_policy { decoupled: true }\n"))  # fmt: skip
    models.write_model(
        repository, "identity", models.identity_config("INT64", [-1]).replace("count: 1 }", f"count: 1 {RESOURCE} }}"))
    models.write_model(repository, "ensemble", ENSEMBLE)
    args = ["--max-stream-backlog=1048576", "--rate-limit=execution_count"]
    with servers.running(repository, args=args, env=python_models.ENVIRONMENT, log_dir=tmp_path) as server:
        slow_stream.assert_holds_up_no_other(server.grpc, model, "INPUT0", "OUTPUT0", 200)


def test_a_client_that_does_not_read_holds_up_no_other_request_of_an_isolated_model(require_server, tmp_path):
    decoupled.write_square(tmp_path / "models", isolation="process")
    # With its id in each response, more than sockets and the server together keep for a client.
    count, request_id = 20_000, "x" * 4000
    with servers.running(tmp_path / "models", args=["--max-stream-backlog=65536"], log_dir=tmp_path) as server:
        slow = slow_stream.Stream(server.grpc, "square", "IN", np.int32(count), reads=False, request_id=request_id)
        try:
            for _ in range(20):
                other = slow_stream.Stream(server.grpc, "square", "IN", np.int32(3))
                assert [array.tolist() for array in other.outputs("OUT")] == [[3]] * 3
                other.close()
            slow.read()
            assert len(slow.outputs("OUT")) == count
        finally:
            slow.close()
