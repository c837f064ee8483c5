# SPDX-License-Identifier: Apache-2.0
"""Why batches closed and why requests failed; cancellation (docs/scheduling.md, X-2, X-3, Y-1, Y-2)."""

import re
import threading
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import models, trouble
from harness import server as servers
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer


def write(folder, name, batching, delay_ms=0, dims=(-1,)):
    extra = (f"{batching}\n"
             f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay_ms}" }} }}\n')
    models.write_model(folder, name, models.identity_config("FP32", dims, max_batch_size=4, extra=extra))


def tensor(batch=1, width=2):
    value = grpcclient.InferInput("INPUT0", [batch, width], "FP32")
    value.set_data_from_numpy(np.zeros((batch, width), np.float32))
    return [value]


def reasons(server, family, model):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    found = {}
    for labels, value in re.findall(rf"^{family}\{{(.*)\}} (\S+)$", text, re.M):
        if f'model="{model}"' in labels:
            found[re.search(r'reason="(\w+)"', labels).group(1)] = int(float(value))
    return found


def wait_for_reasons(server, family, model, expected):
    servers.wait_until(lambda: reasons(server, family, model) == expected, f"{family} to be {expected}")


def infer_at_once(client, model, inputs):
    """Sends all, then waits for all answers."""
    done = threading.Semaphore(0)
    calls = [client.async_infer(model, i, lambda result, error: done.release()) for i in inputs]
    for _ in calls:
        assert done.acquire(timeout=60)


def test_y1_why_batches_closed(start_server, tmp_path):
    write(tmp_path / "m", "eager", "dynamic_batching { }")
    write(tmp_path / "m", "waiting",
          "dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 3000000 }")
    server = start_server(tmp_path / "m")
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.infer("eager", tensor())
        client.infer("eager", tensor(4))
        client.infer("waiting", tensor(2))  # preferred
        client.infer("waiting", tensor(1))  # after its delay
        # The second does not match the first; the third fills the second's batch to a preferred size.
        infer_at_once(client, "waiting", [tensor(1, 2), tensor(1, 3), tensor(1, 3)])
    wait_for_reasons(server, "nereid_batches_closed_total", "eager", {"full": 1, "eager": 1})
    expected = {"preferred": 2, "delay": 1, "incompatible": 1}
    wait_for_reasons(server, "nereid_batches_closed_total", "waiting", expected)


def test_y2_x3_why_requests_failed(start_server, tmp_path):
    repository = tmp_path / "m"
    trouble.write(repository, "busy", extra="dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n")
    server = start_server(repository)
    client = grpcclient.InferenceServerClient(server.grpc)
    waiting = ("nv_inference_pending_request_count", "busy")

    def command(number):
        value = grpcclient.InferInput("COMMAND", [1], "INT32")
        value.set_data_from_numpy(np.array([number], np.int32))
        return [value]

    with trouble.closed_gate(repository, "busy"):
        client.async_infer("busy", command(trouble.WAIT), lambda result, error: None)
        with trouble.waiting_at_gate(repository, "busy"):
            queued = client.async_infer("busy", command(trouble.NOTHING), lambda result, error: None)
            servers.wait_until(lambda: server.scrape()[waiting] == 1, "the second request to wait")
            with pytest.raises(InferenceServerException, match="Exceeds maximum queue size"):
                client.infer("busy", command(trouble.NOTHING))
            queued.cancel()
            servers.wait_until(lambda: server.scrape()[waiting] == 0, "the second request to leave")
            with pytest.raises(InferenceServerException, match="unexpected inference output"):
                client.infer("busy", command(trouble.NOTHING), outputs=[grpcclient.InferRequestedOutput("NONE")])
            expected = {"REJECTED": 1, "CANCELED": 1, "BACKEND": 0, "OTHER": 1}
            wait_for_reasons(server, "nv_inference_request_failure", "busy", expected)
    client.close()


def test_x2_what_executes_goes_on(start_server, tmp_path):
    write(tmp_path / "m", "busy", "", delay_ms=700)
    server = start_server(tmp_path / "m")
    client = grpcclient.InferenceServerClient(server.grpc)
    call = client.async_infer("busy", tensor(), lambda result, error: None)
    client.is_server_live()
    servers.wait_until(
        lambda: server.scrape()[("nv_inference_pending_request_count", "busy")] == 0, "its start")
    call.cancel()
    servers.wait_until(
        lambda: server.scrape()[("nv_inference_request_success", "busy")] == 1, "its end")
    assert reasons(server, "nv_inference_request_failure", "busy")["CANCELED"] == 0
    client.close()
