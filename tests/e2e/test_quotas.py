# SPDX-License-Identifier: Apache-2.0
"""What callers may take (docs/scheduling.md, K-7)."""

import hashlib
import json

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import models, wire
from harness import server as servers
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer

BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
LIMITS = {
    "slow": {"requests_per_second": 0.01},
    "few_bytes": {"bytes_per_second": 8},
    "free": {},
    "generating": {"requests_per_second": 0.01},
}


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    if "--api-keys" not in servers.run_to_end(["--help"]).stdout:
        pytest.skip("this server does not know callers")
    folder = tmp_path_factory.mktemp("quotas")
    limit = 'parameters { key: "caller_requests_per_second" value { string_value: "0.01" } }\n'
    models.write_model(folder / "models", "open", models.identity_config("FP32", [2]))
    models.write_model(folder / "models", "limited", models.identity_config("FP32", [2]) + limit)
    keys = [
        {
            "id": name,
            "sha256": hashlib.sha256(f"key-{name}".encode()).hexdigest(),
            "scopes": ["infer", "metadata", "metrics"],
            "limits": limits,
        }
        for name, limits in LIMITS.items()
    ]
    rules = {"keys": keys, "anonymous": {"scopes": ["metadata", "metrics"]}}
    (folder / "keys.json").write_text(json.dumps(rules))
    with servers.running(folder / "models", args=[f"--api-keys={folder / 'keys.json'}"]) as running:
        yield running


def infer(server, key, model="open"):
    headers = {"Authorization": f"Bearer key-{key}"}
    return wire.request(server, "POST", f"/v2/models/{model}/infer", BODY, headers)


def test_requests_beyond_the_rate_are_refused_until_it_allows_more(server):
    first = infer(server, "slow")
    assert first.status == 200
    assert first.headers["ratelimit-limit"] == "1"
    assert first.headers["ratelimit-remaining"] == "0"
    assert 90 <= int(first.headers["ratelimit-reset"]) <= 100
    refused = infer(server, "slow")
    assert refused.status == 429
    assert refused.error == "'slow' has used up its limit of 0.01 requests per second"
    assert 90 <= int(refused.headers["retry-after"]) <= 100
    assert 90 <= int(refused.headers["ratelimit-reset"]) <= 100


def test_a_refusal_over_grpc_is_resource_exhausted(server):
    infer(server, "slow")
    tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.zeros(2, np.float32))
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as error:
            client.infer("open", [tensor], headers={"authorization": "Bearer key-slow"})
    assert error.value.status() == str(grpc.StatusCode.RESOURCE_EXHAUSTED)


def test_what_is_left_is_told_to_who_generates(server):
    headers = {"Authorization": "Bearer key-generating"}
    body = json.dumps({"INPUT0": [1, 2]})
    generate = lambda action, size=0: wire.request(  # noqa: E731
        server, "POST", f"/v2/models/open/{action}", body.ljust(size), headers
    )
    first = generate("generate_stream")
    assert first.status == 200 and first.headers["content-type"].startswith("text/event-stream")
    assert first.headers["ratelimit-limit"] == "1"
    assert first.headers["ratelimit-remaining"] == "0"
    assert 90 <= int(first.headers["ratelimit-reset"]) <= 100
    # A large body is submitted by another thread than a small one.
    for action in ("generate", "generate_stream"):
        for size in (0, 70_000):
            refused = generate(action, size)
            assert refused.status == 429, (action, size)
            assert refused.error == "'generating' has used up its limit of 0.01 requests per second"
            assert refused.headers["content-type"] == "application/json"
            assert 90 <= int(refused.headers["retry-after"]) <= 100
            assert 90 <= int(refused.headers["ratelimit-reset"]) <= 100


def test_bytes_of_inputs_have_a_rate(server):
    assert infer(server, "few_bytes").status == 200
    refused = [infer(server, "few_bytes") for _ in range(30)]
    assert any(reply.status == 429 and "bytes per second" in reply.error for reply in refused)


def test_a_model_limits_each_caller(server):
    assert infer(server, "free", "limited").status == 200
    assert infer(server, "free", "limited").status == 429
    free = infer(server, "free")
    assert free.status == 200
    assert "ratelimit-limit" not in free.headers
    assert server.scrape()["nereid_overload_refusals_total", "limited"] == 1
