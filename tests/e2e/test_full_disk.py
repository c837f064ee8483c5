# SPDX-License-Identifier: Apache-2.0
"""Disks without room: what cannot be written is refused or left out, and requests are served as before."""

import base64
import json

import pytest
from harness import models, small_disk, wire
from harness import server as servers

pytestmark = pytest.mark.newer

MIB = 1 << 20
INFER = "/v2/models/m/infer"
GOOD = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
CONFIG = {"backend": "identity", "max_batch_size": 0,
          "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
          "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}  # fmt: skip


@pytest.fixture
def disk(tmp_path):
    with small_disk.mounted(tmp_path / "disk", 2 * MIB) as folder:
        yield folder


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


def is_well(server):
    reply = wire.request(server, "POST", INFER, GOOD)
    return reply.status == 200 and reply.json()["outputs"][0]["data"] == [1, 2]


def load(server, size):
    files = {"config": json.dumps(CONFIG), "file:1/data": base64.b64encode(bytes(size)).decode()}
    body = json.dumps({"parameters": files}).encode()
    return wire.request(server, "POST", "/v2/repository/models/m/load", body)


def test_a_model_that_does_not_fit_is_refused_with_the_reason(start_server, repository, disk):
    args = ["--model-control-mode=explicit", "--load-model=m"]
    server = start_server(repository, args=args, env={"TMPDIR": str(disk)})
    reply = load(server, 4 * MIB)
    assert 400 <= reply.status <= 503
    assert "No space left on device" in reply.error
    assert is_well(server)
    assert load(server, MIB // 2).status == 200
    assert is_well(server)
    server.stop()


def test_logs_and_traces_that_cannot_be_written_cost_no_request(start_server, repository, disk):
    args = ["--log-verbose=1", f"--log-file={disk}/log", f"--trace-config=triton,file={disk}/trace",
            "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1"]  # fmt: skip
    server = start_server(repository, args=args)
    filler = small_disk.fill(disk)
    for _ in range(200):
        assert is_well(server)
    filler.unlink()
    before = (disk / "log").stat().st_size

    def is_written_again():
        assert is_well(server)
        return (disk / "log").stat().st_size > before

    servers.wait_until(is_written_again, "the log goes on")
    server.stop()
