# SPDX-License-Identifier: Apache-2.0
"""Instance groups: kinds, counts and what cannot be had on this machine."""

import os
import threading

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, trouble
from harness import server as servers


def write(folder, name, groups):
    config = models.identity_config("FP32", [2]).split("instance_group")[0]
    config += f"instance_group [ {groups} ]\n"
    models.write_model(folder, name, config)


def test_a_gpu_that_is_not_there_is_named(start_server, tmp_path):
    write(tmp_path / "m", "gpu", "{ kind: KIND_CPU }, { name: \"fast\" kind: KIND_GPU gpus: [ 0 ] }")
    write(tmp_path / "m", "auto", "{ kind: KIND_AUTO count: 2 }")
    server = start_server(
        tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"])
    client = httpclient.InferenceServerClient(server.http)
    index = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert index["gpu"]["state"] == "UNAVAILABLE"
    reason = index["gpu"]["reason"]
    assert "instance group fast of model gpu has kind KIND_GPU" in reason
    assert index["auto"]["state"] == "READY"
    (group,) = client.get_model_config("auto")["instance_group"]
    assert (group["kind"], group["count"]) == ("KIND_CPU", 2)


def test_as_many_executions_at_once_as_there_are_instances(start_server, tmp_path):
    groups = "{ kind: KIND_CPU count: 1 }, { kind: KIND_CPU count: 3 }, { kind: KIND_CPU count: 2 passive: true }"
    trouble.write(tmp_path / "m", "four", extra=f"instance_group [ {groups} ]\n")
    server = start_server(tmp_path / "m")
    client = grpcclient.InferenceServerClient(server.grpc)
    done = threading.Semaphore(0)
    with trouble.closed_gate(tmp_path / "m", "four"):
        for _ in range(6):
            value = grpcclient.InferInput("COMMAND", [1], "INT32")
            value.set_data_from_numpy(np.array([trouble.WAIT], np.int32))
            client.async_infer("four", [value], lambda result, error: done.release())
        waiting = ("nv_inference_pending_request_count", "four")
        with trouble.waiting_at_gate(tmp_path / "m", "four") as gate:
            client.is_server_live()  # on the same connection: all have arrived
            # Four execute; passive instances take no requests.
            servers.wait_until(lambda: server.scrape()[waiting] == 2, "four of six to start")
            os.write(gate, b"xxxxxx")  # one for each execution
            for _ in range(6):
                assert done.acquire(timeout=60)
    client.close()
