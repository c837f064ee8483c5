# SPDX-License-Identifier: Apache-2.0
"""Hostile requests over every transport (TCP, TLS, Unix sockets), without API keys and by somebody who has one, and in
every form (HTTP, gRPC, streams).

Attacks on connections, heads and bodies are in test_security.py and test_wire_attacks.py, which run over every
transport, too; those who have no key are in test_strangers.py."""

import base64
import json

import grpc
import pytest
from harness import server as servers
from harness import transports, wire
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

FLOATS = bytes(8)
MODELS = ("id_FP32", "idb_FP32", "id_BYTES")


@pytest.fixture(scope="module", params=transports.ALL)
def server(request, require_server, repository_path, tmp_path_factory):
    transport = transports.ALL[request.param]()
    args = ["--model-control-mode=explicit", "--allow-client-shm=true"]
    args += [f"--load-model={model}" for model in MODELS]
    with servers.running(
        repository_path, args=args, transport=transport, log_dir=tmp_path_factory.mktemp("server")
    ) as running:
        yield running
    transport.close()


class Http:
    """Sends requests over HTTP; what comes back is the error, "" for a success."""

    def __init__(self, server):
        self.server = server

    def close(self):
        pass

    def post(self, path, body):
        reply = wire.request(self.server, "POST", path, json.dumps(body).encode())
        return self.error_of(reply)

    @staticmethod
    def error_of(reply):
        if reply.status == 200:
            return ""
        assert 400 <= reply.status <= 503, reply
        assert reply.error, reply
        return reply.error

    def infer(self, model="id_FP32", datatype="FP32", shape=(1, 2), data=FLOATS, tensor=None, output=None, **top):
        body, headers = wire.infer_body([("INPUT0", datatype, shape, data)], **top)
        head = json.loads(body[: int(headers["Inference-Header-Content-Length"])])
        head["inputs"][0]["parameters"] |= tensor or {}
        if output is not None:
            head["outputs"] = [{"name": "OUTPUT0", "parameters": output}]
        text = json.dumps(head).encode()
        headers["Inference-Header-Content-Length"] = str(len(text))
        return self.error_of(wire.request(self.server, "POST", f"/v2/models/{model}/infer", text + data, headers))

    def load(self, model, config=None, files=None):
        parameters = {name: base64.b64encode(data).decode() for name, data in (files or {}).items()}
        if config is not None:
            parameters["config"] = json.dumps(config)
        return self.post(f"/v2/repository/models/{model}/load", {"parameters": parameters})

    def unload(self, model):
        return self.post(f"/v2/repository/models/{model}/unload", {})

    def set_log(self, **settings):
        return self.post("/v2/logging", settings)

    def set_trace(self, **settings):
        return self.post("/v2/trace/setting", settings)

    def register(self, name, key, offset, size):
        return self.post(
            f"/v2/systemsharedmemory/region/{name}/register", {"key": key, "offset": offset, "byte_size": size}
        )


class Grpc:
    """The same over unary calls of gRPC."""

    def __init__(self, server):
        self.channel = server.channel()
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def close(self):
        self.channel.close()

    def call(self, method, request):
        try:
            getattr(self.stub, method)(request, timeout=30 * servers.SLOWNESS)
        except grpc.RpcError as error:
            assert error.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED), error
            assert error.details()
            return error.details()
        return ""

    @staticmethod
    def set_parameters(to, values):
        for key, value in (values or {}).items():
            if isinstance(value, bool):
                to[key].bool_param = value
            elif isinstance(value, int):
                to[key].int64_param = value
            else:
                to[key].string_param = value

    def request(self, model="id_FP32", datatype="FP32", shape=(1, 2), data=FLOATS, tensor=None, output=None, **top):
        request = pb.ModelInferRequest(model_name=model, id=top.pop("id", ""))
        added = request.inputs.add(name="INPUT0", datatype=datatype, shape=shape)
        self.set_parameters(added.parameters, tensor)
        self.set_parameters(request.parameters, top.pop("parameters", None))
        assert not top
        if output is not None:
            self.set_parameters(request.outputs.add(name="OUTPUT0").parameters, output)
        if "shared_memory_region" not in (tensor or {}):
            request.raw_input_contents.append(data)
        return request

    def infer(self, **how):
        return self.call("ModelInfer", self.request(**how))

    def load(self, model, config=None, files=None):
        request = pb.RepositoryModelLoadRequest(model_name=model)
        if config is not None:
            request.parameters["config"].string_param = json.dumps(config)
        for name, data in (files or {}).items():
            request.parameters[name].bytes_param = data
        return self.call("RepositoryModelLoad", request)

    def unload(self, model):
        return self.call("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name=model))

    def set_log(self, **settings):
        request = pb.LogSettingsRequest()
        for key, value in settings.items():
            request.settings[key].string_param = value
        return self.call("LogSettings", request)

    def set_trace(self, **settings):
        request = pb.TraceSettingRequest()
        for key, value in settings.items():
            request.settings[key].value.append(value)
        return self.call("TraceSetting", request)

    def register(self, name, key, offset, size):
        return self.call(
            "SystemSharedMemoryRegister",
            pb.SystemSharedMemoryRegisterRequest(name=name, key=key, offset=offset, byte_size=size),
        )


class Stream(Grpc):
    """Inference over a stream, which lives on after an error."""

    def infer(self, **how):
        requests = [self.request(**how), self.request()]
        first, second = self.stub.ModelStreamInfer(iter(requests), timeout=30 * servers.SLOWNESS)
        assert second.error_message == ""
        return first.error_message


FORMS = {"http": Http, "grpc": Grpc, "stream": Stream}
CONTROLS = {"http": Http, "grpc": Grpc}


@pytest.fixture(params=FORMS)
def client(request, server):
    made = FORMS[request.param](server)
    yield made
    made.close()


@pytest.fixture(params=CONTROLS)
def control(request, server):
    made = CONTROLS[request.param](server)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def server_is_well_afterwards(server):
    yield
    assert server.process.poll() is None
    for form in FORMS.values():
        client = form(server)
        assert client.infer() == ""
        client.close()


# --- S01: paths as names ----------------------------------------------------------------------

TRAVERSALS = ["a%2f..%2fb", "..%2fetc", "%2fetc%2fpasswd", "model%2f..", "model%2f", ".."]


@pytest.mark.parametrize("name", TRAVERSALS)
def test_s01_names_are_no_paths(control, name):
    if isinstance(control, Grpc):
        name = name.replace("%2f", "/")
    elif name == "..":
        name = "%2e%2e"
    error = control.load(name)
    assert "path traversal" in error or "encoded slash" in error, error


@pytest.mark.parametrize("name", ["%20", "%09", "%0b"])
def test_s01_names_are_not_blank(control, name):
    if isinstance(control, Grpc):
        name = {"%20": " ", "%09": "\t", "%0b": "\v"}[name]
    assert "Model name cannot be empty" in control.load(name)


@pytest.mark.parametrize("path", ["file:../../x", "file:/tmp/x", "file:1/../../../x", "file:"])
def test_s01_files_stay_in_the_folder_of_the_model(control, path):
    config = {"backend": "identity", "max_batch_size": 0,
              "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}  # fmt: skip
    assert control.load("id_new", config, {path: b"x"}) != ""


def test_s01_names_that_only_look_like_paths(control):
    for name in ("...", "..my_model", "model..1"):
        assert "traversal" not in control.load(name)


# --- S02: paths inside a configuration --------------------------------------------------------


@pytest.mark.parametrize("label", ["../../../etc/passwd", "/etc/passwd", "../id_FP32_evil/labels.txt"])
def test_s02_configurations_name_no_files_elsewhere(control, label):
    config = {"backend": "identity", "max_batch_size": 0,
              "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1, -1]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1, -1],
                          "label_filename": label}]}  # fmt: skip
    error = control.load("id_FP32", config)
    assert error != ""
    assert "root:" not in error


# --- S04 and S05: files that the server writes -----------------------------------------------


def test_s04_the_log_stays_where_it_is(control, tmp_path):
    file = tmp_path / "log"
    assert "can not be updated through network protocol" in control.set_log(log_file=str(file))
    assert not file.exists()


def test_s05_traces_stay_where_they_are(control, tmp_path):
    file = tmp_path / "trace"
    assert "can not be updated through network protocol" in control.set_trace(trace_file=str(file))
    assert not file.exists()


# --- S06: text that ends up in the log --------------------------------------------------------


def test_s06_no_request_forges_a_line_of_the_log(client, server):
    forged = "x\nE9999 forged\r\x1b[2J\u2028"
    client.infer(id=forged, shape=(2**40, 2**40))
    client.infer(model=forged) if not isinstance(client, Http) else None
    assert not any(line.startswith("E9999") for line in server.log.splitlines())
    assert "\x1b[2J" not in server.log


# --- S07 and S09: shared memory ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "offset", "size"),
    [("/", 0, 64), ("///", 0, 64), ("/triton_python_backend_shm_region_1", 0, 64), ("/nowhere_at_all", 0, 64),
     ("/nowhere_at_all", 2**63, 2**63), ("/../etc/passwd", 0, 64)],
)  # fmt: skip
def test_s09_keys_that_name_no_region_of_a_client(control, key, offset, size):
    assert control.register("r", key, offset, size) != ""


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 8), (2**63, 8), (2**64 - 8, 16), (8, 2**64 - 8)], ids=["none", "far", "wraps", "wraps too"]
)  # fmt: skip
def test_s07_tensors_in_regions_that_do_not_exist(client, offset, size):
    if not isinstance(client, Http) and max(offset, size) >= 2**63:
        offset, size = offset % 2**63, size % 2**63  # the protocol's integers have a sign
    tensor = {"shared_memory_region": "none", "shared_memory_offset": offset, "shared_memory_byte_size": size}
    if isinstance(client, Http):
        tensor["binary_data_size"] = None
        head = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2],
                            "parameters": {k: v for k, v in tensor.items() if v is not None}}]}  # fmt: skip
        assert client.post("/v2/models/id_FP32/infer", head) != ""
    else:
        assert client.infer(tensor=tensor) != ""


# --- S13: outputs -----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [-1, 2**31 - 1, 2**40])
def test_s13_classes_that_nobody_has(client, count):
    error = client.infer(output={"classification": count})
    assert error == "" or "class" in error, error


def test_s13_classes_of_strings(client):
    data = b"\x01\0\0\0a"
    error = client.infer(model="id_BYTES", datatype="BYTES", shape=(1, 1), data=data, output={"classification": 1})
    assert "class result not available for output due to unsupported type 'BYTES'" in error


# --- S17: sizes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(2**31, 2**31), (2**62, 4), (2**63 - 1, 1), (-1, 2), (-2, 1), (1, -(2**63)), (0, 2**63 - 1)]
)
def test_s17_shapes_that_overflow(client, shape):
    assert client.infer(shape=shape) != ""


@pytest.mark.parametrize("batch", [9, 2**31, 2**62])
def test_s17_batches_that_are_too_large(client, batch):
    assert client.infer(model="idb_FP32", shape=(batch, 1), data=bytes(4)) != ""


@pytest.mark.parametrize("size", [0, 4, 7, 9, 1 << 16])
def test_s17_data_that_does_not_fit_its_shape(client, size):
    assert client.infer(data=bytes(size)) != ""


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x80000000, 6, 0x7FFFFFFF])
def test_s17_strings_longer_than_their_tensor(client, length):
    data = length.to_bytes(4, "little") + b"abcde"
    assert client.infer(model="id_BYTES", datatype="BYTES", shape=(1, 1), data=data) != ""


@pytest.mark.parametrize("datatype", ["FP16", "NONE", "", "\0FP32", "X" * 100_000])
def test_s17_types_that_do_not_fit(client, datatype):
    assert client.infer(datatype=datatype) != ""


# --- S25: configurations that are no configurations -------------------------------------------


@pytest.mark.parametrize("config", [{}, {"max_batch_size": -1}, {"backend": "../../x"}, {"backend": "no such"},
                                    {"instance_group": [{"count": 2**31 - 1}]}, {"input": [{"dims": [2**63 - 1] * 9}]},
                                    {"dynamic_batching": {"preferred_batch_size": [-1]}}])  # fmt: skip
def test_s25_bad_configurations_fail_alone(control, config):
    assert control.load("id_INT32", config) != ""


# --- S29: reserved names ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["triton_enable_empty_final_response_", "triton_x"])
def test_s29_reserved_parameters(client, name):
    error = client.infer(parameters={name: "1"})
    assert "reserved" in error, error


# --- S32 --------------------------------------------------------------------------------------


def test_s32_what_is_unloaded_stays_unloaded(control):
    assert control.unload("idb_FP32") == ""
    assert control.load("idb_FP32") == ""
