# SPDX-License-Identifier: Apache-2.0
"""Shape tensors: inputs whose values are the same for all of a batch. Only models of the platform
tensorrt_plan may have them, for which the identity backend stands in here."""

import queue
import shutil

import numpy as np
import tritonclient.grpc as grpcclient
from harness import models
from harness import server as servers

CONFIG = f"""platform: "tensorrt_plan"
max_batch_size: 8
input [
  {models.tensor_config("INPUT0", "FP32", [-1])},
  {models.tensor_config("INPUT1", "INT32", [2], "is_shape_tensor: true")}
]
output [
  {models.tensor_config("OUTPUT0", "FP32", [-1])},
  {models.tensor_config("OUTPUT1", "INT32", [2], "is_shape_tensor: true")}
]
dynamic_batching {{ }}
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
"""


def test_requests_of_other_values_are_not_batched_together(empty_repository, start_server, tmp_path):
    """D-11"""
    backend = tmp_path / "backends" / "tensorrt" / "libtriton_tensorrt.so"
    backend.parent.mkdir(parents=True)
    shutil.copy(servers.backends() / "identity" / "libtriton_identity.so", backend)
    models.write_model(empty_repository, "m", CONFIG, {"1": {"model.plan": b""}})
    server = start_server(empty_repository, args=[f"--backend-directory={backend.parent.parent}"],
                          env={"TRITONSERVER_DELAY_SCHEDULER": "3"})
    client = grpcclient.InferenceServerClient(server.grpc)

    def inputs(second):
        given = [grpcclient.InferInput("INPUT0", [1, 4], "FP32"), grpcclient.InferInput("INPUT1", [2], "INT32")]
        given[0].set_data_from_numpy(np.zeros((1, 4), np.float32))
        given[1].set_data_from_numpy(np.array([1, second], np.int32))
        return given

    answers = queue.Queue()
    for second in (2, 2, 3):
        client.async_infer("m", inputs(second), lambda result, error: answers.put((result, error)),
                           request_id=str(second))
        # On the same connection: once this is answered, the request has arrived.
        client.is_server_live()
    for _ in range(3):
        result, error = answers.get(timeout=30)
        assert error is None
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), [1, int(result.get_response().id)])
    statistics = client.get_inference_statistics("m").model_stats[0]
    assert {int(batch.batch_size) for batch in statistics.batch_stats} == {1, 2}
    client.close()
