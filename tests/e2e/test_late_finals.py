# SPDX-License-Identifier: Apache-2.0
"""Decoupled models that fail in the middle, and say so in each way there is (S16): an error alone, with the final flag, or
long before it, to clients that want the stream to end with the first error, that do not, and that leave. What comes too
late has nowhere to go, and nothing is freed twice or kept."""

import itertools
import json

import grpc
import pytest
from harness import models, python_models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

EXPLICIT = ["--model-control-mode=explicit", "--load-model=fails", "--load-model=m"]
MODES = ["ERROR_ONLY", "ERROR_FINAL", "ERROR_WITH_DELAYED_FINAL", "ERROR_THEN_DATA", "DATA_ONLY_THEN_NOTHING"]
ROUNDS = 12
# Fewer than a test has requests, so that one that is never over would be noticed.
MOST_REQUESTS = 8

# The input says which mode, and names a file for which the late part waits.
FAILS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()[0].decode()
            threading.Thread(target=self.answer, args=(request.get_response_sender(), *text.split())).start()

    def answer(self, sender, mode, gate):
        final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        data = pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.array([b"data"], object))])
        error = pb_utils.InferenceResponse(error=pb_utils.TritonError("it broke on purpose"))
        sender.send(data)
        if mode == "ERROR_FINAL":
            sender.send(error, flags=final)
        elif mode != "DATA_ONLY_THEN_NOTHING":
            sender.send(error)
        if mode in ("ERROR_WITH_DELAYED_FINAL", "ERROR_THEN_DATA"):
            while not os.path.exists(gate):
                time.sleep(0.005)
            if mode == "ERROR_THEN_DATA":
                sender.send(data)
            sender.send(flags=final)
        # In the other modes nobody says that this was all: the sender goes away.
"""


@pytest.fixture
def server(start_server, empty_repository):
    config = (f"max_batch_size: 0\ninput [ {models.tensor_config('INPUT0', 'BYTES', [1])} ]\n"
              f"output [ {models.tensor_config('OUTPUT0', 'BYTES', [1])} ]\n"
              "model_transaction_policy { decoupled: true }\n")  # fmt: skip
    python_models.write(empty_repository, "fails", FAILS, config)
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return start_server(empty_repository, env=python_models.ENVIRONMENT,
                        args=[*EXPLICIT, f"--max-requests={MOST_REQUESTS}"])  # fmt: skip


def request(mode, gate, id=""):
    message = pb.ModelInferRequest(model_name="fails", id=id)
    message.inputs.add(name="INPUT0", datatype="BYTES", shape=[1])
    text = f"{mode} {gate}".encode()
    message.raw_input_contents.append(len(text).to_bytes(4, "little") + text)
    return message


def ends_with_error(stub, mode, gate):
    """A client whose stream ends with the first error."""
    call = stub.ModelStreamInfer(iter([request(mode, gate)]), metadata=(("triton_grpc_error", "true"),),
                                 timeout=60 * servers.SLOWNESS)  # fmt: skip
    assert next(call).infer_response.raw_output_contents
    if mode == "DATA_ONLY_THEN_NOTHING":
        assert list(call) == []
        return
    with pytest.raises(grpc.RpcError) as ended:
        list(call)
    assert "it broke on purpose" in ended.value.details()
    assert ended.value.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED)


def goes_on(stub, mode, gate):
    """A client whose stream goes on after an error, to another request."""
    call = stub.ModelStreamInfer(iter([request(mode, gate, "1"), request("ERROR_FINAL", gate, "2")]),
                                 timeout=60 * servers.SLOWNESS)  # fmt: skip
    errors = 1 if mode == "DATA_ONLY_THEN_NOTHING" else 2
    wanted = 2 + errors
    answers = list(itertools.islice(call, wanted))
    assert sum(bool(answer.error_message) for answer in answers) == errors
    call.cancel()


def leaves(stub, mode, gate):
    """A client that leaves when it has had something."""
    call = stub.ModelStreamInfer(iter([request(mode, gate)]), timeout=60 * servers.SLOWNESS)
    next(call)
    call.cancel()


def unload(server):
    assert wire.request(server, "POST", "/v2/repository/models/fails/unload", "{}").status == 200


def check_it_is_unloaded(server):
    def is_gone():
        index = wire.request(server, "POST", "/v2/repository/index").json()
        return {one["name"]: one.get("reason") for one in index}["fails"] == "unloaded"

    servers.wait_until(is_gone, "the model to be unloaded, for which no request may be left")


def check_nothing_is_left(server):
    servers.wait_until(lambda: server.scrape()[("nv_inference_pending_request_count", "fails")] == 0, "nothing to wait")
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]})
    # Each needs a place among those in flight.
    servers.wait_until(lambda: wire.request(server, "POST", "/v2/models/m/infer", body).status == 200, "a place")
    unload(server)
    check_it_is_unloaded(server)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("client", [ends_with_error, goes_on, leaves])
def test_s16_errors_before_the_final_response(server, tmp_path, mode, client):
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for number in range(ROUNDS):
            gate = tmp_path / f"go{number}"
            client(stub, mode, gate)
            gate.touch()
            # The late part of this one may come while the next one begins, but not after all places are taken.
            if number % (MOST_REQUESTS // 4) == 0:
                servers.wait_until(
                    lambda: server.scrape()[("nv_inference_pending_request_count", "fails")] == 0, "nothing to wait")
        check_nothing_is_left(server)


@pytest.mark.parametrize("mode", MODES)
def test_s16_streams_of_events(server, tmp_path, mode):
    for number in range(ROUNDS):
        gate = tmp_path / f"go{number}"
        body = json.dumps({"INPUT0": f"{mode} {gate}"})
        gate.touch()  # an HTTP reply is read to its end
        reply = wire.request(server, "POST", "/v2/models/fails/generate_stream", body)
        assert reply.status == 200, reply
        has_error = b"it broke on purpose" in reply.body
        assert has_error == (mode != "DATA_ONLY_THEN_NOTHING"), reply
    check_nothing_is_left(server)


@pytest.mark.parametrize("mode", ["ERROR_WITH_DELAYED_FINAL", "ERROR_THEN_DATA"])
def test_s16_finals_that_come_while_the_model_is_unloaded(server, tmp_path, mode):
    gate = tmp_path / "go"
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for _ in range(MOST_REQUESTS // 2):
            ends_with_error(stub, mode, gate)
    unload(server)
    gate.touch()
    check_it_is_unloaded(server)
    assert wire.request(server, "POST", "/v2/repository/models/fails/load", "{}").status == 200
    check_nothing_is_left(server)
