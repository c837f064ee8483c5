# SPDX-License-Identifier: Apache-2.0
"""What Python models answer must be what their configuration says."""

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, python_models
from tritonclient.utils import InferenceServerException

PROTOCOLS = [httpclient, grpcclient]

# Answers what its input's text says: name, type and shape of each output.
SAYS = """
class TritonPythonModel:
    def tensors(self, request):
        text = request.inputs()[0].as_numpy().reshape(-1)[0].decode()
        return [pb_utils.Tensor(name, np.ones(shape, kind)) for name, kind, shape in json.loads(text)]

    def execute(self, requests):
        return [pb_utils.InferenceResponse(self.tensors(r)) for r in requests]
"""

# The same, sent later and by a sender.
SENDS = SAYS.replace("""
        return [pb_utils.InferenceResponse(self.tensors(r)) for r in requests]
""", """
        for request in requests:
            sender = request.get_response_sender()
            response = pb_utils.InferenceResponse(self.tensors(request))
            threading.Timer(0.05, self.send, (sender, response)).start()

    def send(self, sender, response):
        sender.send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
""")


def config(max_batch_size=0, extra=""):
    return (f"max_batch_size: {max_batch_size}\n"
            f"input [ {models.tensor_config('TEXT', 'BYTES', [1])} ]\n"
            f"output [ {models.tensor_config('A', 'FP32', [-1, 2])} ]\n"
            f"output [ {models.tensor_config('B', 'INT32', [1])} ]\n"
            "instance_group [ { kind: KIND_CPU count: 1 } ]\n" + extra)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    from harness import server as servers

    folder = tmp_path_factory.mktemp("outputs")
    python_models.write(folder, "says", SAYS, config())
    python_models.write(folder, "sends", SENDS, config())
    python_models.write(folder, "batch", SAYS, config(8))
    python_models.write(folder, "free", SAYS, config(
        extra='parameters { key: "CHECK_OUTPUTS" value { string_value: "no" } }\n'))
    with servers.running(folder, env=python_models.ENVIRONMENT) as running:
        yield running


def ask(server, protocol, model, text, outputs=None, batch=()):
    url = server.http if protocol is httpclient else server.grpc
    value = np.full([*batch, 1], text.encode(), np.object_)
    tensor = protocol.InferInput("TEXT", list(value.shape), "BYTES")
    tensor.set_data_from_numpy(value)
    wanted = outputs and [protocol.InferRequestedOutput(name) for name in outputs]
    with protocol.InferenceServerClient(url) as client:
        result = client.infer(model, [tensor], outputs=wanted)
        return {name: a.shape for name in ("A", "B") if (a := result.as_numpy(name)) is not None}


A = '["A", "float32", [3, 2]]'
B = '["B", "int32", [1]]'

WRONG = [
    ('[["A", "float64", [3, 2]], %s]' % B, None,
     "output 'A' of model '{}' has data type FP64, but its configuration says FP32"),
    ('[["A", "float32", [3, 5]], %s]' % B, None,
     "output 'A' of model '{}' has shape [3,5], but its configuration says [-1,2]"),
    ('[["A", "float32", [6]], %s]' % B, None,
     "output 'A' of model '{}' has shape [6], but its configuration says [-1,2]"),
    ('[%s, ["B", "int32", []]]' % A, None,
     "output 'B' of model '{}' has shape [], but its configuration says [1]"),
    ("[%s]" % A, None, "the response of model '{}' lacks output 'B'"),
    ("[]", None, "the response of model '{}' lacks output 'A'"),
    ("[%s]" % A, ["B"], "the response of model '{}' lacks output 'B'"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["http", "grpc"])
@pytest.mark.parametrize("model", ["says", "sends"])
@pytest.mark.parametrize("text, outputs, expected", WRONG)
def test_an_output_that_is_not_as_configured_is_an_error(server, protocol, model, text, outputs, expected):
    with pytest.raises(InferenceServerException) as error:
        ask(server, protocol, model, text, outputs)
    assert error.value.message() == expected.format(model)
    assert error.value.status() == ("500" if protocol is httpclient else "StatusCode.INTERNAL")


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["http", "grpc"])
@pytest.mark.parametrize("model", ["says", "sends"])
def test_what_is_as_configured_or_was_not_asked_for_is_not(server, protocol, model):
    assert ask(server, protocol, model, f"[{A}, {B}]") == {"A": (3, 2), "B": (1,)}
    assert ask(server, protocol, model, f"[{A}]", ["A"]) == {"A": (3, 2)}
    assert ask(server, protocol, model, f'[{A}, {B}, ["C", "int32", [7]]]') == {"A": (3, 2), "B": (1,)}
    # What was not asked for is not looked at.
    assert ask(server, protocol, model, f'[{A}, ["B", "int64", [9]]]', ["A"]) == {"A": (3, 2)}


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["http", "grpc"])
def test_the_batch_dimension_is_the_models_own_affair(server, protocol):
    crops = '[["A", "float32", [7, 3, 2]], ["B", "int32", [7, 1]]]'
    assert ask(server, protocol, "batch", crops, batch=[2]) == {"A": (7, 3, 2), "B": (7, 1)}
    merged = '[["A", "float32", [3, 2]], ["B", "int32", [2, 1]]]'
    assert ask(server, protocol, "batch", merged, batch=[2]) == {"A": (3, 2), "B": (2, 1)}
    with pytest.raises(InferenceServerException, match=r"output 'B' of model 'batch' has shape \[2\]"):
        ask(server, protocol, "batch", '[["A", "float32", [2, 3, 2]], ["B", "int32", [2]]]', batch=[2])


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["http", "grpc"])
def test_a_model_may_say_that_nothing_is_checked(server, protocol):
    assert ask(server, protocol, "free", '[["A", "float64", [9]]]') == {"A": (9,)}


def test_an_operator_may_say_so_for_all_models(start_server, tmp_path):
    (tmp_path / "m").mkdir()
    python_models.write(tmp_path / "m", "says", SAYS, config())
    server = python_models.start(start_server, tmp_path / "m", "--backend-config=python,check-outputs=false")
    assert ask(server, httpclient, "says", '[["A", "float64", [9]]]') == {"A": (9,)}


def test_a_response_that_is_refused_counts_as_a_failure(start_server, tmp_path):
    (tmp_path / "m").mkdir()
    python_models.write(tmp_path / "m", "says", SAYS, config())
    server = python_models.start(start_server, tmp_path / "m")
    with pytest.raises(InferenceServerException):
        ask(server, httpclient, "says", "[]")
    with httpclient.InferenceServerClient(server.http) as client:
        (stats,) = client.get_inference_statistics("says")["model_stats"]
    assert (stats["inference_stats"]["success"]["count"], stats["inference_stats"]["fail"]["count"]) == (0, 1)
