# SPDX-License-Identifier: Apache-2.0
"""Workers that write JSON which no program should take at its word: an error, and nothing else suffers."""

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import python_models
from tritonclient.utils import InferenceServerException

# Whatever the worker writes as JSON is nested a million deep while `deep` is on.
DEEP = """
deep = {False: json.dumps, True: lambda *args, **options: '{"a":' + "[" * 1000000}

class TritonPythonModel:
    def respond(self, what):
        out = pb_utils.Tensor("OUTPUT0", np.ones(1, np.float32))
        if what == 1:
            return pb_utils.InferenceResponse([out], parameters={"a": 1})
        if what == 2:
            family = pb_utils.MetricFamily(name="deep", description="", kind=pb_utils.MetricFamily.GAUGE)
            family.Metric(labels={"a": "b"})
        if what == 3:
            response = pb_utils.InferenceRequest(
                model_name="plain", requested_output_names=["OUTPUT0"], parameters={"a": "b"},
                inputs=[pb_utils.Tensor("INPUT0", np.ones(1, np.float32))]).exec()
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
        if what == 4:
            pb_utils.load_model("plain", config=json.dumps({}))
        return pb_utils.InferenceResponse([out])

    def execute(self, requests):
        what = int(requests[0].inputs()[0].as_numpy()[0])
        json.dumps = deep[what != 0]
        try:
            return [self.respond(what)]
        finally:
            json.dumps = deep[False]
"""

COMPLETES_DEEP = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        json.dumps = lambda *args, **options: '{"a":' * 1000000
        return config
""" + python_models.IDENTITY.split(":\n", 1)[1]


def infer(client, model, what):
    tensor = httpclient.InferInput("INPUT0", [1], "FP32")
    tensor.set_data_from_numpy(np.array([what], np.float32))
    return client.infer(model, [tensor]).as_numpy("OUTPUT0")[0]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def test_json_nested_a_million_deep_is_an_error(start_server, folder):
    python_models.write(folder, "deep", DEEP)
    python_models.write(folder, "plain", python_models.IDENTITY)
    server = python_models.start(start_server, folder, "--model-control-mode=explicit", "--load-model=*")
    (worker,) = [w for w in python_models.workers(server)][:1]
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for what, expected in ((1, "the parameters of a response are nested more than 1 deep"),
                               (2, "labels are nested more than 1 deep"),
                               (3, "the parameters of a request are nested more than 1 deep"),
                               (4, "Failed to load model")):
            with pytest.raises(InferenceServerException, match=expected):
                infer(client, "deep", what)
            assert infer(client, "deep", 0) == 1
            assert infer(client, "plain", 1) == 1
    assert worker.is_running()


def test_a_configuration_nested_a_million_deep_is_an_error(start_server, folder):
    python_models.write(folder, "completes", COMPLETES_DEEP)
    python_models.write(folder, "plain", python_models.IDENTITY)
    server = python_models.start(start_server, folder, "--exit-on-error=false", "--strict-readiness=false")
    with httpclient.InferenceServerClient(server.http) as client:
        reasons = {e["name"]: e.get("reason", "") for e in client.get_model_repository_index()}
        assert "nested more than 64 deep" in reasons["completes"]
        assert infer(client, "plain", 1) == 1
