# SPDX-License-Identifier: Apache-2.0
"""Python models whose executions are so quick that the thread which received the request waits for
their end itself, for a moment."""

import concurrent.futures

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

# 1: waits for the file "go"; 2: logs; 3: fails; 4: dies. Answers with what it was asked.
DOES = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            what = request.inputs()[0].as_numpy()
            folder = os.path.dirname(__file__)
            if what[0] == 1:
                open(os.path.join(folder, "waits"), "w").close()
                while not os.path.exists(os.path.join(folder, "go")):
                    time.sleep(0.01)
            if what[0] == 2:
                pb_utils.Logger.log_info("asked to log")
            if what[0] == 4:
                os.abort()
            error = pb_utils.TritonError("asked to fail") if what[0] == 3 else None
            tensors = [] if error else [pb_utils.Tensor("OUTPUT0", what)]
            responses.append(pb_utils.InferenceResponse(tensors, error))
        return responses
"""


def infer(client, what):
    value = np.array([what], np.float32)
    tensor = httpclient.InferInput("INPUT0", [1], "FP32")
    tensor.set_data_from_numpy(value)
    return client.infer("does", [tensor]).as_numpy("OUTPUT0")[0]


def infer_alone(server, what):
    # A client is of one thread.
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        return infer(client, what)


@pytest.fixture
def quick(start_server, tmp_path):
    """The server, the model's version folder, and a client; the model is known to be quick."""
    (tmp_path / "m").mkdir()
    model = python_models.write(tmp_path / "m", "does", DOES)
    server = python_models.start(start_server, tmp_path / "m")
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        for _ in range(200):
            assert infer(client, 0) == 0
        yield server, model / "1", client


def test_a_slow_execution_of_a_quick_model_keeps_nobody_waiting(quick):
    server, folder, client = quick
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(infer_alone, server, 1)
        servers.wait_until(lambda: (folder / "waits").exists(), "the model to wait")
        # Some of these connections belong to the thread that received the slow request.
        for _ in range(16):
            with httpclient.InferenceServerClient(server.http, network_timeout=60) as other:
                assert other.is_server_live()
        assert not slow.done()
        (folder / "go").touch()
        assert slow.result(timeout=60) == 1
    assert infer(client, 0) == 0


def test_what_a_quick_model_logs_and_how_it_fails(quick):
    server, _, client = quick
    for _ in range(50):
        assert infer(client, 2) == 2
    with pytest.raises(InferenceServerException, match="asked to fail"):
        infer(client, 3)
    assert infer(client, 0) == 0
    servers.wait_until(lambda: server.log.count("asked to log") >= 50, "all lines of the log")
    assert server.log.count("asked to log") == 50
    statistics = client.get_inference_statistics("does")["model_stats"][0]
    assert statistics["inference_stats"]["success"]["count"] == 251
    assert statistics["inference_stats"]["fail"]["count"] == 1


def test_a_worker_that_dies_in_a_quick_execution_is_replaced(quick):
    _, _, client = quick
    for _ in range(3):
        with pytest.raises(InferenceServerException, match=r"signal 6 \(Aborted\)"):
            infer(client, 4)
        for _ in range(50):
            assert infer(client, 0) == 0
