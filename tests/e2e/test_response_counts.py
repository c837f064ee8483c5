# SPDX-License-Identifier: Apache-2.0
"""A model that is not decoupled owes one response: what clients get from a backend that gives another number."""

import queue

import numpy as np
import pytest
import tritonclient.grpc
from harness import models
from harness import server as servers
from harness.clients import Client
from tritonclient.utils import InferenceServerException

CONFIG = (
    'backend: "answers"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('COUNT', 'INT32', [1])} ]\n"
    f"output [ {models.tensor_config('NUMBER', 'INT32', [1])} ]\n"
)
# The final flag comes with the last response, or by itself.
APART = [None, {"apart": True}]


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    library = servers.build_folder() / "tests" / "backends" / "libtriton_answers.so"
    if not library.exists():
        pytest.skip("the tests' backend is not built")
    models.write_model(repository, "answers", CONFIG)
    (repository / "answers" / "libtriton_answers.so").symlink_to(library)
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server")) as running:
        yield running


def count_input(tensors, count):
    tensor = tensors.InferInput("COUNT", [1], "INT32")
    tensor.set_data_from_numpy(np.array([count], dtype=np.int32))
    return [tensor]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("apart", APART, ids=["together", "apart"])
def test_one_response_is_the_reply_and_any_other_number_an_error(server, protocol, apart):
    client = Client(protocol, server)
    try:
        reply = client.infer("answers", count_input(client.tensors, 1), parameters=apart)
        assert reply.as_numpy("NUMBER").tolist() == [0]
        for count in (0, 2, 4):
            with pytest.raises(InferenceServerException) as failure:
                client.infer("answers", count_input(client.tensors, count), parameters=apart)
            assert failure.value.message() == f"expected a single response, got {count}"
            assert failure.value.status() in ("500", "StatusCode.INTERNAL")
    finally:
        client.close()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_request_that_is_released_without_a_last_response_fails(server, protocol):
    """And leaves nothing behind."""
    client = Client(protocol, server)
    try:
        for count, error in ((0, "expected a single response, got 0"),
                             (1, "the request was released without its last response"),
                             (2, "expected a single response, got 2")):  # fmt: skip
            with pytest.raises(InferenceServerException) as failure:
                client.infer("answers", count_input(client.tensors, count), parameters={"endless": True})
            assert failure.value.message() == error
            assert failure.value.status() in ("500", "StatusCode.INTERNAL")
        in_flight = ("nereid_model_requests_in_flight", "answers")
        servers.wait_until(lambda: server.scrape()[in_flight] == 0, "no request to be left")
    finally:
        client.close()


@pytest.mark.parametrize("apart", APART, ids=["together", "apart"])
def test_a_stream_gets_the_first_of_several(server, apart):
    received = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: received.put((result, error)))
        for count in (4, 1, 2, 1):
            client.async_stream_infer(
                "answers", count_input(tritonclient.grpc, count), parameters=apart, request_id=str(count))
        results = [received.get(timeout=30) for _ in range(4)]
        client.stop_stream()
    assert received.empty()
    assert [error for _, error in results] == [None] * 4
    assert [result.get_response().id for result, _ in results] == ["4", "1", "2", "1"]
    assert all(result.as_numpy("NUMBER").tolist() == [0] for result, _ in results)
    final = [result.get_response().parameters["triton_final_response"].bool_param for result, _ in results]
    assert final == [False, apart is None, False, apart is None]
