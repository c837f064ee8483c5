# SPDX-License-Identifier: Apache-2.0
"""What tests of Triton's own use to look into its gRPC side: lines in the log, and a delay from the environment."""

import re

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import models
from tritonclient.utils import InferenceServerException


@pytest.fixture
def repository(tmp_path):
    models.write_model(tmp_path / "m", "id", models.identity_config("FP32", [2]))
    return tmp_path / "m"


def an_input():
    tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.zeros(2, np.float32))
    return [tensor]


def test_the_log_has_as_many_states_released_as_made(start_server, repository):
    server = start_server(repository, args=["--log-verbose=2"])
    answered = []
    with grpcclient.InferenceServerClient(server.grpc) as client:
        for _ in range(3):
            client.infer("id", an_input())
        client.start_stream(lambda result, error: answered.append(error))
        client.async_stream_infer("id", an_input())
        client.stop_stream()
    server.stop()
    log = server.log
    assert len(re.findall("StateNew", log)) == len(re.findall("StateRelease", log)) == 4
    assert answered == [None]


def test_a_variable_delays_the_answers_of_calls_other_than_inference(start_server, repository):
    server = start_server(repository, env={"TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC": "2"})
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
            client.is_server_live(client_timeout=0.2)
        with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
            client.get_model_metadata("id", client_timeout=0.2)
        assert client.is_server_live(client_timeout=60)
        assert client.infer("id", an_input()).as_numpy("OUTPUT0").tolist() == [0, 0]
