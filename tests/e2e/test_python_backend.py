# SPDX-License-Identifier: Apache-2.0
"""The Python backend: what models get, give, and say when they fail."""

import concurrent.futures
import json
import os
import re

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

TYPES = [t for t in models.TYPES if t != "BF16"]

DESCRIBE = """
class TritonPythonModel:
    def initialize(self, args):
        self.args = args

    def execute(self, requests):
        responses = []
        for request in requests:
            seen = {
                "args": {k: v for k, v in self.args.items() if k != "model_config"},
                "config": json.loads(self.args["model_config"])["name"],
                "id": request.request_id(),
                "correlation": request.correlation_id(),
                "flags": request.flags(),
                "timeout": request.timeout(),
                "parameters": json.loads(request.parameters()),
                "outputs": sorted(request.requested_output_names()),
                "cancelled": request.is_cancelled(),
                "trace": request.trace().get_context(),
                "dir": pb_utils.get_model_dir(),
                "tensor": [[t.name(), t.triton_dtype(), t.shape(), t.is_cpu()] for t in request.inputs()],
                "pid": os.getpid(),
            }
            text = np.array([json.dumps(seen).encode()], dtype=object)
            responses.append(pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUTPUT0", text), pb_utils.Tensor("UNASKED", text)],
                parameters={"a": "text", "b": 5, "c": True}))
        return responses
"""

ERRORS = """
class Odd(Exception):
    pass

class TritonPythonModel:
    def execute(self, requests):
        what = requests[0].inputs()[0].as_numpy()[0].decode()
        if what == "raise":
            raise Odd("it went wrong")
        if what == "none":
            return None
        if what == "number":
            return 5
        if what == "few":
            return []
        if what == "type":
            return ["text"]
        if what == "exit":
            os._exit(7)
        if what == "default":
            return [pb_utils.InferenceResponse(error=pb_utils.TritonError("said so"))]
        code = getattr(pb_utils.TritonError, what)
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("said so", code))]
"""

BATCH = """
class TritonPythonModel:
    def execute(self, requests):
        size = len(requests)
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()
            if (value < 0).any():
                responses.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("negative")))
                continue
            responses.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("OUTPUT0", value * 2),
                pb_utils.Tensor("SIZE", np.full((value.shape[0], 1), size, np.int32))]))
        return responses
"""

LIFE = """
print("on import")
class TritonPythonModel:
    def initialize(self, args):
        print("initialized", args["model_name"])
        pb_utils.Logger.log_info("info said")
        pb_utils.Logger.log_warn("warning said")
        pb_utils.Logger.log_error("error said")
        pb_utils.Logger.log_verbose("verbose said")
        pb_utils.Logger.log("level said", pb_utils.Logger.WARNING)
        sys.stderr.write("on stderr\\n")

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", r.inputs()[0].as_numpy())])
                for r in requests]

    def finalize(self):
        print("finalized")
"""

COMPLETES = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        assert config.as_dict()["input"] == []
        config.add_input({"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_output({"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        return config
""" + python_models.IDENTITY.split(":", 1)[1]

BF16 = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0]
            try:
                value.as_numpy()
                return None
            except pb_utils.TritonModelException:
                pass
            copy = pb_utils.Tensor.from_dlpack("OUTPUT0", value.to_dlpack())
            assert copy.triton_dtype() == 14 and copy.shape() == value.shape()
            responses.append(pb_utils.InferenceResponse([copy]))
        return responses
"""

DLPACK = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0]
            assert value.__dlpack_device__() == (1, 0)
            seen = np.from_dlpack(value)
            assert np.shares_memory(seen, value.as_numpy())
            for bad in (np.zeros((2, 3), np.float32).T, "text", None):
                try:
                    pb_utils.Tensor.from_dlpack("X", bad)
                    return None
                except pb_utils.TritonModelException:
                    pass
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUTPUT0", seen + 1)]))
        return responses
"""

VIEWS = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value.T[::-1])]))
        return responses
"""


# Changes what it has sent, once the next request comes.
KEEPS = """
class TritonPythonModel:
    kept = None

    def execute(self, requests):
        responses = []
        for request in requests:
            if self.kept is not None:
                self.kept[:] = -1
            self.kept = request.inputs()[0].as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", self.kept)]))
        return responses
"""

# What is outside the usual ways of making tensors and responses, which have ways of their own.
CORNERS = """
class TritonPythonModel:
    def execute(self, requests):
        assert pb_utils.get_input_tensor_by_name(name="INPUT0", inference_request=requests[0]) is not None
        assert pb_utils.get_input_tensor_by_name(requests[0], "NONE") is None
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()
            what, count = int(value[0]), int(value[1])
            result = np.arange(count, dtype=np.float32)
            if what == 1:  # another byte order
                result = result.astype(">f4")
            tensor = pb_utils.Tensor(name="OUTPUT0", numpy_array=result)
            if what == 2:  # changed afterwards: its bytes are no longer what the tensor says
                result.dtype = np.uint8
            if what == 3:
                tensor = pb_utils.Tensor("OUTPUT0", np.broadcast_to(result[:1], (count,)))
            outputs = (tensor,) if what == 4 else [tensor]
            if what == 5:  # a part of the input, which lies in shared memory
                outputs = [pb_utils.Tensor("OUTPUT0", value[1:])]
            if what == 6:
                outputs = [request.inputs()[0].__class__("OUTPUT0", value)]
            responses.append(pb_utils.InferenceResponse(output_tensors=outputs))
        for bad in (lambda: pb_utils.InferenceResponse([None]), lambda: pb_utils.Tensor("", value),
                    lambda: pb_utils.Tensor("X", np.zeros(1, complex))):
            try:
                bad()
                return None
            except pb_utils.TritonModelException:
                pass
        for bad in (lambda: pb_utils.InferenceResponse(5), lambda: pb_utils.InferenceResponse([5]),
                    lambda: pb_utils.Tensor("X", [1]), lambda: pb_utils.Tensor("X"),
                    lambda: pb_utils.Tensor(1, value)):
            try:
                bad()
                return None
            except TypeError:
                pass
        return responses
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    path = tmp_path_factory.mktemp("python")
    for datatype in TYPES:
        python_models.write(path, f"id_{datatype}", python_models.IDENTITY, datatype=datatype)
    described = ('max_batch_size: 0\ninput [ { name: "IN" data_type: TYPE_STRING dims: [ -1 ] } ]\n'
                 'output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]\n')
    python_models.write(path, "describe", DESCRIBE, config=described)
    python_models.write(path, "errors", ERRORS, datatype="BYTES")
    python_models.write(path, "batch", BATCH, config=(
        'max_batch_size: 8\ninput [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 2 ] } ]\n'
        'output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 2 ] },\n'
        '         { name: "SIZE" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 5000000 }\n"))
    python_models.write(path, "life", LIFE)
    python_models.write(path, "completed", COMPLETES, config="")
    python_models.write(path, "bf16", BF16, datatype="BF16")
    python_models.write(path, "dlpack", DLPACK)
    python_models.write(path, "corners", CORNERS)
    python_models.write(path, "keeps", KEEPS)
    python_models.write(path, "cached", python_models.IDENTITY, extra="response_cache { enable: true }\n")
    twice = path / "twice"
    (twice / "1").mkdir(parents=True)
    steps = ", ".join('{ model_name: "id_FP32" model_version: -1 input_map { key: "INPUT0" value: "%s" } '
                      'output_map { key: "OUTPUT0" value: "%s" } }' % names
                      for names in (("INPUT0", "MIDDLE"), ("MIDDLE", "OUTPUT0")))
    (twice / "config.pbtxt").write_text(
        'platform: "ensemble"\ninput [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
        'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
        "ensemble_scheduling { step [ %s ] }\n" % steps)
    python_models.write(path, "views", VIEWS, dims=(-1, -1))
    two = python_models.write(path, "two_files", (
        "from .helper import twice\nclass TritonPythonModel:\n    def execute(self, requests):\n"
        "        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUTPUT0',\n"
        "            twice(r.inputs()[0].as_numpy()))]) for r in requests]\n"))
    (two / "1" / "helper.py").write_text("def twice(value):\n    return value * 2\n")
    named = python_models.write(path, "named", python_models.IDENTITY,
                                extra='default_model_filename: "other.py"\n')
    (named / "1" / "model.py").rename(named / "1" / "other.py")
    return path


@pytest.fixture(scope="module")
def python_server(require_server, repository, tmp_path_factory):
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server"),
                         args=["--cache-config=local,size=16777216"],
                         env=python_models.ENVIRONMENT) as running:
        yield running


@pytest.fixture(scope="module")
def http(python_server):
    with httpclient.InferenceServerClient(python_server.http, concurrency=8) as client:
        yield client


def infer(client, model, value, datatype="FP32", name="INPUT0", module=httpclient, **options):
    tensor = module.InferInput(name, list(value.shape), datatype)
    tensor.set_data_from_numpy(value)
    return client.infer(model, [tensor], **options)


def text(value):
    return np.array([value.encode()], dtype=object)


@pytest.mark.parametrize("datatype", TYPES)
def test_tensors_of_every_type_go_in_and_out(http, datatype):
    rng = np.random.default_rng(1)
    for count in (0, 1, 7, 3000):
        value = models.random_tensor(rng, datatype, (count,))
        result = infer(http, f"id_{datatype}", value, datatype)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), value)


def test_large_tensors_grow_the_memory(http):
    for count in (1 << 18, 1 << 23, 1 << 20):
        value = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(infer(http, "id_FP32", value).as_numpy("OUTPUT0"), value)


def test_bf16_goes_through_dlpack(python_server):
    with grpcclient.InferenceServerClient(python_server.grpc) as client:
        value = np.array([0.5, -2.0, 4096.0], ml_dtypes.bfloat16)
        result = infer(client, "bf16", value, "BF16", module=grpcclient)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), value)


def test_dlpack_shares_memory_and_refuses_what_it_cannot(http):
    value = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(infer(http, "dlpack", value).as_numpy("OUTPUT0"), value + 1)


# From a few bytes to more than is kept for the next answer, and back.
@pytest.mark.parametrize("count", [1, 1000, 5000, 400000, 3])
@pytest.mark.parametrize("what", [0, 1, 3, 4])
def test_outputs_of_every_make_come_as_they_are(http, what, count):
    result = infer(http, "corners", np.array([what, count], np.float32)).as_numpy("OUTPUT0")
    expected = np.zeros(count) if what == 3 else np.arange(count)
    assert result.dtype == np.float32 and (result == expected).all()


def test_outputs_that_lie_in_shared_memory_come_as_they_are(http):
    value = np.array([5] + list(range(2000)), np.float32)
    assert (infer(http, "corners", value).as_numpy("OUTPUT0") == value[1:]).all()
    value[0] = 6
    assert (infer(http, "corners", value).as_numpy("OUTPUT0") == value).all()


# They are sent from the memory that the next requests use, too.
@pytest.mark.parametrize("model", ["id_FP32", "corners", "keeps", "cached", "twice"])
@pytest.mark.parametrize("module", [httpclient, grpcclient])
def test_large_outputs_of_many_requests_are_not_mixed_up(python_server, module, model):
    def ask(seed):
        value = np.random.default_rng(seed).random(100000, np.float32)
        value[0] = 6
        with module.InferenceServerClient(python_server.http if module is httpclient
                                          else python_server.grpc) as client:
            for turn in range(6):
                value[1] = 0 if model == "cached" else turn
                result = infer(client, model, value, module=module)
                assert (result.as_numpy("OUTPUT0") == value).all()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in pool.map(ask, range(8)):
            pass


def test_an_array_that_changes_its_type_is_not_read_as_the_old_one(http):
    with pytest.raises(InferenceServerException, match="bytes, which its shape does not"):
        infer(http, "corners", np.array([2, 100], np.float32))


def test_views_that_are_not_contiguous_are_written_in_order(http):
    value = np.arange(6000, dtype=np.float32).reshape(60, 100)
    np.testing.assert_array_equal(infer(http, "views", value).as_numpy("OUTPUT0"), value.T[::-1])


def test_a_model_sees_all_of_a_request(python_server, repository):
    with grpcclient.InferenceServerClient(python_server.grpc) as client:
        result = infer(client, "describe", text("x"), "BYTES", "IN", grpcclient, request_id="one",
                       timeout=1234567, parameters={"text": "é", "whole": 3, "yes": True})
    seen = json.loads(result.as_numpy("OUTPUT0")[0])
    assert (seen["id"], seen["timeout"], seen["flags"]) == ("one", 1234567, 0)
    assert seen["correlation"] == 0 and seen["cancelled"] is False and seen["trace"] is None
    assert seen["parameters"] == {"text": "é", "whole": 3, "yes": True}
    assert seen["outputs"] == ["OUTPUT0"]
    assert seen["tensor"] == [["IN", 13, [1], True]]
    assert seen["dir"] == str(repository / "describe" / "1")
    assert seen["config"] == "describe"
    args = seen["args"]
    assert args["model_name"] == "describe" and args["model_version"] == "1"
    assert args["model_instance_kind"] == "CPU" and args["model_instance_device_id"] == "0"
    assert args["model_repository"] == str(repository / "describe")
    parameters = result.get_response().parameters
    assert parameters["a"].string_param == "text" and parameters["b"].int64_param == 5
    assert parameters["c"].bool_param is True
    assert [output.name for output in result.get_response().outputs] == ["OUTPUT0"]


def test_an_exception_is_told_with_the_place_where_it_happened(http, python_server):
    with pytest.raises(InferenceServerException) as error:
        infer(http, "errors", text("raise"), "BYTES")
    message = error.value.message()
    instance = re.search(r"for model '(errors_0(_0)?)'", message)
    assert message.startswith(f"Failed to process the request(s) for model '{instance[1]}', "
                              "message: Odd: it went wrong\n\nAt:\n  /")
    assert re.search(r"/errors/1/model.py\(\d+\): execute\n$", message)


@pytest.mark.parametrize("what, expected", [
    ("number", "Expected a list in the execute return, found type '<class 'int'>'."),
    ("few", "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
            "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0"),
    ("type", "Expected an 'InferenceResponse' object in the execute function return list, found type "
             "'<class 'str'>'."),
    ("none", "the model dropped the request without a response"),
])
def test_a_wrong_answer_is_explained(http, what, expected):
    with pytest.raises(InferenceServerException) as error:
        infer(http, "errors", text(what), "BYTES")
    assert expected in error.value.message()


@pytest.mark.parametrize("what, code", [
    ("default", "INTERNAL"), ("UNKNOWN", "UNKNOWN"), ("INTERNAL", "INTERNAL"),
    ("NOT_FOUND", "NOT_FOUND"), ("INVALID_ARG", "INVALID_ARGUMENT"), ("UNAVAILABLE", "UNAVAILABLE"),
    ("UNSUPPORTED", "UNIMPLEMENTED"), ("ALREADY_EXISTS", "ALREADY_EXISTS"), ("CANCELLED", "CANCELLED")])
def test_errors_of_a_model_keep_their_code(python_server, what, code):
    with grpcclient.InferenceServerClient(python_server.grpc) as client:
        with pytest.raises(InferenceServerException) as error:
            infer(client, "errors", text(what), "BYTES", module=grpcclient)
    assert error.value.message() == "said so"
    assert error.value.status() == f"StatusCode.{code}"


def test_a_batch_comes_as_one_list_and_each_request_has_its_own_answer(http):
    values = [np.array([[i, 1]], np.int32) for i in (1, 2, -1, 4)]
    waiting = [http.async_infer("batch", [_input(value)]) for value in values]
    for value, one in zip(values, waiting):
        if value[0, 0] < 0:
            with pytest.raises(InferenceServerException, match="negative"):
                one.get_result()
            continue
        result = one.get_result()
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), value * 2)
        assert result.as_numpy("SIZE")[0, 0] == 4


def _input(value):
    tensor = httpclient.InferInput("INPUT0", list(value.shape), "INT32")
    tensor.set_data_from_numpy(value)
    return tensor


def test_a_model_completes_its_configuration(http):
    config = http.get_model_config("completed")
    assert config["max_batch_size"] == 8 and "dynamic_batching" in config
    assert config["input"][0]["data_type"] == "TYPE_FP32" and config["input"][0]["dims"] == [4]
    value = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(infer(http, "completed", value).as_numpy("OUTPUT0"), value)


def test_models_of_several_files_and_of_another_name(http):
    value = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(infer(http, "two_files", value).as_numpy("OUTPUT0"), value * 2)
    np.testing.assert_array_equal(infer(http, "named", value).as_numpy("OUTPUT0"), value)


def test_executions_are_counted(http):
    before = http.get_inference_statistics("id_INT8")["model_stats"][0]
    infer(http, "id_INT8", np.zeros(3, np.int8), "INT8")
    after = http.get_inference_statistics("id_INT8")["model_stats"][0]
    assert after["execution_count"] - before["execution_count"] == 1
    assert after["inference_stats"]["success"]["count"] == (
        before["inference_stats"]["success"]["count"] + 1)


def test_what_a_model_prints_and_logs_is_in_the_servers_output(start_server, repository, tmp_path):
    (tmp_path / "m").mkdir()
    os.symlink(repository / "life", tmp_path / "m" / "life")
    server = start_server(tmp_path / "m", env=python_models.ENVIRONMENT)
    server.stop()
    log = server.log
    for line in ("on import", "initialized life", "on stderr", "finalized"):
        assert re.search(rf"^{line}$", log, re.M), line
    assert re.search(r'^I.* model.py:\d+\] "info said"', log, re.M)
    assert re.search(r'^W.* model.py:\d+\] "warning said"', log, re.M)
    assert re.search(r'^E.* model.py:\d+\] "error said"', log, re.M)
    assert re.search(r'^W.* model.py:\d+\] "level said"', log, re.M)
    assert "verbose said" not in log
