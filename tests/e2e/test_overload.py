# SPDX-License-Identifier: Apache-2.0
"""What an overloaded model does with requests that have a deadline, and with more than it can take."""

import concurrent.futures
import json
import urllib.request

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import models, trouble, wire
from harness import server as servers
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer

DELAY_MS = 400
BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
POLICY = """dynamic_batching { default_queue_policy {
  timeout_action: REJECT default_timeout_microseconds: 60000000 allow_timeout_override: %s } }
"""
ENSEMBLE = """platform: "ensemble"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [ { model_name: "slow" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
"""


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def slow(extra="", delay_ms=DELAY_MS):
    return models.identity_config("FP32", [2]) + parameter("execute_delay_ms", delay_ms) + extra


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("overload")
    models.write_model(folder, "slow", slow())
    for name, allowed in (("override", "true"), ("fixed", "false")):
        config = slow(POLICY % allowed).replace("max_batch_size: 0", "max_batch_size: 1")
        models.write_model(folder, name, config)
    models.write_model(folder, "adaptive", slow(parameter("adaptive_concurrency", "true"), 100))
    batching = models.identity_config("FP32", [2], max_batch_size=1)
    models.write_model(folder, "sequence", batching + "sequence_batching { direct { } }\n")
    models.write_model(folder, "ensemble", ENSEMBLE)
    with servers.running(folder, args=["--http-thread-count=1"]) as running:
        yield running


def infer(server, model, timeout=None, body=BODY):
    headers = {} if timeout is None else {"Request-Timeout": timeout}
    with wire.Connection(server) as client:
        return client.request("POST", f"/v2/models/{model}/infer", body, headers)


def batched(parameters=None):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    return json.dumps({"inputs": [tensor], "parameters": parameters or {}})


class Busy:
    """A model that executes requests one after another until the end of the block: how long they take is
    known, and one executes while another one waits."""

    def __init__(self, server, model, body=BODY):
        self.send = lambda: infer(server, model, "60", body)

    def __enter__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        # Times are taken from the first request with a deadline on.
        assert all(r.result().status == 200 for r in [self.pool.submit(self.send) for _ in range(3)])
        self.waiting = [self.pool.submit(self.send) for _ in range(4)]
        concurrent.futures.wait(self.waiting, return_when=concurrent.futures.FIRST_COMPLETED)
        return self

    def __exit__(self, *_):
        assert all(r.result().status == 200 for r in self.waiting)
        self.pool.shutdown()


def refusals(server, model, reason):
    """What Y-3 counts."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as page:
        text = page.read().decode()
    wanted = f'nereid_overload_refusals_total{{model="{model}",reason="{reason}",version="1"}} '
    lines = [line for line in text.splitlines() if line.startswith(wanted)]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else 0.0


def test_o1_a_request_that_comes_after_its_deadline_is_refused(server):
    reply = infer(server, "slow", "1us")
    assert reply.status == 504
    assert "the deadline of the request passed" in reply.error


def while_busy(server, model, ask, body=BODY):
    """What `ask` gives of a model that is busy all the while. On a machine that was too slow for that, which says
    nothing, it is asked once more: ask then gives None, or the model had nothing left to do."""
    for _ in range(20):
        with Busy(server, model, body) as busy:
            result = ask()
            was_busy = not all(waiting.done() for waiting in busy.waiting)
        if was_busy and result is not None:
            return result
    raise AssertionError(f"model {model!r} was never busy for long enough")


def in_time(reply):
    """The reply, unless the deadline had passed before the server looked at the request."""
    return None if reply.status == 504 else reply


def test_o3_a_request_that_cannot_be_answered_in_time_is_refused_at_once(server):
    def ask():
        nonlocal before
        before = refusals(server, "slow", "deadline")
        return in_time(infer(server, "slow", "100ms"))

    before = None
    reply = while_busy(server, "slow", ask)
    assert reply.status == 503
    assert int(reply.headers["retry-after"]) >= 1
    assert "model 'slow' is overloaded: a response would take about" in reply.error
    assert refusals(server, "slow", "deadline") == before + 1


def test_o3_a_deadline_of_grpc_counts_as_well(server):
    tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.zeros(2, np.float32))

    def ask():
        try:
            return client.infer("slow", [tensor], client_timeout=DELAY_MS / 1000 * 0.9)
        except InferenceServerException as error:
            return None if error.status() == str(grpc.StatusCode.DEADLINE_EXCEEDED) else error

    with grpcclient.InferenceServerClient(server.grpc) as client:
        error = while_busy(server, "slow", ask)
    assert isinstance(error, InferenceServerException)
    assert error.status() == str(grpc.StatusCode.UNAVAILABLE)
    assert "is overloaded" in error.message()


def test_o1_a_request_whose_deadline_passes_in_the_queue_is_not_executed(start_server, tmp_path):
    trouble.write(tmp_path / "m", "gated")
    server = start_server(tmp_path / "m")
    with wire.Connection(server) as first, trouble.closed_gate(tmp_path / "m", "gated"):
        first.send(wire.encode("POST", "/v2/models/gated/infer", trouble.body(trouble.WAIT)))
        with trouble.waiting_at_gate(tmp_path / "m", "gated"):
            # Nothing is known about how long this model takes, so the request is admitted.
            reply = infer(server, "gated", "1", trouble.body(trouble.WAIT))
        assert first.receive().status == 200
    assert reply.status == 504
    assert "the deadline of the request passed before model 'gated' could execute it" in reply.error
    assert refusals(server, "gated", "expired") == 1
    # Had it been executed all the same, the only instance would now wait at the gate.
    assert infer(server, "gated", "60", trouble.body(trouble.NOTHING)).status == 200


def test_o2_an_idle_model_executes_whatever_it_took_before(server):
    with Busy(server, "slow"):
        pass
    # It takes longer than that, and the client gets its response nevertheless.
    for _ in range(10):
        reply = in_time(infer(server, "slow", "300ms"))
        if reply is not None:
            break
    assert reply is not None and reply.status == 200


def test_o6_steps_of_an_ensemble_have_its_deadline(server):
    reply = infer(server, "ensemble", "1us")
    assert reply.status == 504
    assert reply.error.startswith("in ensemble 'ensemble', ")


def test_o6_a_request_of_a_sequence_that_comes_after_its_deadline_is_refused(server):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    parameters = {"sequence_id": 7, "sequence_start": True, "sequence_end": True}
    body = json.dumps({"inputs": [tensor], "parameters": parameters})
    assert infer(server, "sequence", "1us", body).status == 504
    assert infer(server, "sequence", "60", body).status == 200


@pytest.mark.parametrize("value", ["soon", "0", "-1", "1h"])
def test_a_timeout_that_is_no_time_is_refused(server, value):
    reply = infer(server, "slow", value)
    assert reply.status == 400
    assert "'Request-Timeout'" in reply.error


def test_o4_a_timeout_that_the_queue_policy_hears_is_refused_at_once(server):
    def ask():
        return infer(server, "override", body=batched({"timeout": 1000}))

    reply = while_busy(server, "override", ask, batched())
    assert reply.status == 503
    assert "is overloaded" in reply.error or "Request timeout expired" in reply.error


def test_o4_a_timeout_that_the_queue_policy_does_not_hear_changes_nothing(server):
    with Busy(server, "fixed", batched()):
        assert infer(server, "fixed", body=batched({"timeout": 1000})).status == 200


def test_o7_an_adaptive_limit_refuses_what_is_beyond(server):
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        replies = [r.result() for r in [pool.submit(infer, server, "adaptive") for _ in range(60)]]
    refused = [reply for reply in replies if reply.status != 200]
    assert 0 < len(refused) < 60
    for reply in refused:
        assert reply.status == 503
        assert int(reply.headers["retry-after"]) >= 1
        assert "requests are in progress, its limit for now" in reply.error
    assert refusals(server, "adaptive", "concurrency") == len(refused)
    assert infer(server, "adaptive").status == 200


def test_a_parameter_that_means_nothing_is_an_error(require_server, tmp_path):
    models.write_model(tmp_path / "m", "bad", slow(parameter("adaptive_concurrency", "maybe")))
    with servers.running(tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"]) as server:
        index = wire.request(server, "POST", "/v2/repository/index").body.decode()
        assert "parameter 'adaptive_concurrency' is 'maybe'; expected 'true' or 'false'" in index
