# SPDX-License-Identifier: Apache-2.0
"""Rate limits (docs/scheduling.md, R-1 to R-5)."""

import concurrent.futures
import contextlib
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, python_models, trouble
from harness import server as servers

LIMITED = "--rate-limit=execution_count"


def write(folder, name, needs, priority=1, delay_ms=0, instances=1):
    resources = ", ".join(
        f'{{ name: "{n}" global: {str(is_global).lower()} count: {count} }}'
        for n, is_global, count in needs)
    limiter = f"rate_limiter {{ resources [ {resources} ] priority: {priority} }}"
    config = models.identity_config("FP32", [2]).replace(
        "count: 1 }", f"count: {instances} {limiter} }}")
    config += f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay_ms}" }} }}\n'
    models.write_model(folder, name, config)


def infer_all(server, model, count, when_sent=lambda: None):
    """Sends everything at once and calls when_sent; the order in which answers came, over all models."""
    order, done = [], threading.Condition()
    client = grpcclient.InferenceServerClient(server.grpc)
    tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.zeros(2, np.float32))
    total = 0
    for name, number in zip(model, count):
        for _ in range(number):
            total += 1

            def answered(result, error, name=name):
                with done:
                    order.append(name if error is None else str(error))
                    done.notify_all()

            client.async_infer(name, [tensor], answered)
    when_sent()
    with done:
        assert done.wait_for(lambda: len(order) == total, 120)
    client.close()
    return order


def test_r1_instances_that_share_a_resource_take_turns(start_server, tmp_path):
    # Each needs all of both, named in opposite order: taken one by one they would deadlock.
    write(tmp_path / "m", "one", [("a", True, 1), ("b", True, 1)], instances=3, delay_ms=1)
    write(tmp_path / "m", "two", [("b", True, 1), ("a", True, 1)], instances=3, delay_ms=1)
    server = start_server(tmp_path / "m", args=[LIMITED])
    order = infer_all(server, ["one", "two"], [200, 200])
    assert order.count("one") == order.count("two") == 200


def test_r3_executions_are_shared_by_priority(start_server, tmp_path):
    write(tmp_path / "m", "often", [("a", True, 1)], priority=1, delay_ms=2)
    write(tmp_path / "m", "seldom", [("a", True, 1)], priority=3, delay_ms=2)
    # Has the resource while the requests arrive: whoever came first would have executions to make up for.
    resource = 'resources [ { name: "a" global: true count: 1 } ]'
    limiter = f"rate_limiter {{ {resource} }}"
    trouble.write(tmp_path / "m", "plug", extra=f"instance_group [ {{ kind: KIND_CPU {limiter} }} ]")
    server = start_server(tmp_path / "m", args=[LIMITED])
    with contextlib.ExitStack() as stack:
        plug = trouble.connect(server)
        stack.callback(plug.close)
        stack.enter_context(trouble.closed_gate(tmp_path / "m", "plug"))
        trouble.send(plug, "plug", trouble.WAIT)
        opening = stack.enter_context(contextlib.ExitStack())
        opening.enter_context(trouble.waiting_at_gate(tmp_path / "m", "plug"))

        def open_gate_when_all_wait():
            for name in ("often", "seldom"):
                pending = ("nv_inference_pending_request_count", name)
                servers.wait_until(lambda: server.scrape()[pending] == 300, f"all requests of {name} to wait")
            opening.close()

        order = infer_all(server, ["often", "seldom"], [300, 300], open_gate_when_all_wait)
    # While both have work, three executions to one.
    first = order[:200]
    assert 2.5 < first.count("often") / first.count("seldom") < 3.5


# Asks another model as soon as it is told to.
CALLS = """
class TritonPythonModel:
    def execute(self, requests):
        [request] = requests
        open("FOLDER/begun", "w").close()
        while not os.path.exists("FOLDER/proceed"):
            time.sleep(0.01)
        inner = pb_utils.InferenceRequest(model_name="called", requested_output_names=["OUTPUT0"],
                                          inputs=request.inputs())
        return [inner.exec()]
"""


@pytest.mark.newer
@pytest.mark.parametrize("called, waiting", [("", "a"), ("b", "a"), ("b", "ab")])
def test_r3_a_model_that_calls_another_one_gets_its_answer(start_server, tmp_path, called, waiting):
    """Whoever waits for what the caller holds keeps nothing from the model that is called."""
    if not servers.has_backend("python"):
        pytest.skip("no backend python here")
    limiter = 'rate_limiter { resources [ { name: "a" global: true count: 1 } ] }'
    python_models.write(tmp_path / "m", "calls", CALLS.replace("FOLDER", str(tmp_path)), config=(
        f"input [ {models.tensor_config('INPUT0', 'FP32', [2])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [2])} ]\n"
        f"instance_group [ {{ kind: KIND_CPU count: 1 {limiter} }} ]\n"))
    write(tmp_path / "m", "called", [(name, True, 1) for name in called])
    write(tmp_path / "m", "waiting", [(name, True, 1) for name in waiting])
    server = start_server(tmp_path / "m", args=[LIMITED], env=python_models.ENVIRONMENT)
    pending = ("nv_inference_pending_request_count", "waiting")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        caller = pool.submit(infer_all, server, ["calls"], [1])
        servers.wait_until((tmp_path / "begun").exists, "the caller to execute")
        waiter = pool.submit(infer_all, server, ["waiting"], [1])
        servers.wait_until(lambda: server.scrape()[pending] == 1, "another one to wait for its resource")
        (tmp_path / "proceed").touch()
        assert caller.result() == ["calls"]
        assert waiter.result() == ["waiting"]


def test_r4_a_resource_that_is_too_small_fails_the_load(start_server, tmp_path):
    write(tmp_path / "m", "greedy", [("a", False, 4)])
    write(tmp_path / "m", "modest", [("a", False, 3)])
    server = start_server(
        tmp_path / "m",
        args=[LIMITED, "--rate-limit-resource=a:3", "--exit-on-error=false",
              "--strict-readiness=false"])
    client = httpclient.InferenceServerClient(server.http)
    index = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert index["modest"]["state"] == "READY"
    assert index["greedy"]["state"] == "UNAVAILABLE"
    assert ('Resource count for "a" is limited to 3 which will prevent scheduling of one or more '
            "model instances, the minimum required count is 4") in index["greedy"]["reason"]


@pytest.mark.newer
def test_r4_what_one_instance_needs_is_checked_together(start_server, tmp_path):
    write(tmp_path / "m", "both", [("b", False, 1), ("b", True, 1)])
    write(tmp_path / "m", "twice", [("a", False, 2), ("a", False, 2)])
    write(tmp_path / "m", "modest", [("a", False, 1), ("a", False, 2)])
    server = start_server(
        tmp_path / "m",
        args=[LIMITED, "--rate-limit-resource=a:3", "--rate-limit-resource=b:1", "--rate-limit-resource=b:1:GLOBAL",
              "--exit-on-error=false", "--strict-readiness=false"])
    client = httpclient.InferenceServerClient(server.http)
    index = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert 'Resource "b" is present as both global and device-specific resource' in index["both"]["reason"]
    assert 'Resource count for "a" is limited to 3' in index["twice"]["reason"]
    assert "the minimum required count is 4" in index["twice"]["reason"]
    assert infer_all(server, ["modest"], [3]) == ["modest"] * 3


def test_r2_names_of_resources_are_as_models_spell_them(start_server, tmp_path):
    write(tmp_path / "m", "upper", [("R1", False, 2), ("Shared", True, 1)])
    write(tmp_path / "m", "lower", [("r1", False, 2)])
    server = start_server(
        tmp_path / "m",
        args=[LIMITED, "--rate-limit-resource=R1:10", "--rate-limit-resource=Shared:1:GLOBAL",
              "--exit-on-error=false", "--strict-readiness=false"])
    assert infer_all(server, ["upper"], [3]) == ["upper"] * 3
    client = httpclient.InferenceServerClient(server.http)
    index = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert 'Resource count for "r1" is limited to 0' in index["lower"]["reason"]


def test_r5_without_the_flag_resources_mean_nothing(start_server, tmp_path):
    write(tmp_path / "m", "greedy", [("a", False, 4)])
    server = start_server(tmp_path / "m", args=["--rate-limit-resource=a:3"])
    assert infer_all(server, ["greedy"], [3]) == ["greedy"] * 3
