# SPDX-License-Identifier: Apache-2.0
"""No byte of a request becomes an object by a format that can run code (S31): nothing that users get reads such formats,
and bytes that look like one come back as they went in."""

import ast
import json
import pickle

import pytest
from harness import models, openai_models, python_models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

# --- What is in the tree ------------------------------------------------------------------------

MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "jsonpickle", "joblib", "marshal", "shelve", "xmlrpc"}
CALLS = {"eval", "exec", "yaml.load", "yaml.load_all", "yaml.full_load", "yaml.full_load_all", "yaml.unsafe_load",
         "yaml.unsafe_load_all", "read_pickle"}  # fmt: skip
# In C and C++.
NAMES = ("PyMarshal_", "PyEval_Eval", "PyRun_", "pickle_load", "YAML::Load", "_pickle", '"pickle"', '"marshal"')
SHIPPED = ("backends", "python/nereid", "deploy", "examples", "packaging", "src", "agents", "caches")


def full_name(node):
    if isinstance(node, ast.Attribute):
        return f"{full_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def option(call, name):
    return next((getattr(k.value, "value", None) for k in call.keywords if k.arg == name), None)


def dangers(source):
    """What in a Python source makes objects of bytes by running what they say."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        yield from (name for name in names if name.split(".")[0] in MODULES)
        if not isinstance(node, ast.Call):
            continue
        name = full_name(node.func)
        if name in CALLS or name.split(".")[-1] == "read_pickle" or name.split(".")[0] in MODULES:
            yield name
        if option(node, "allow_pickle"):
            yield f"{name}(allow_pickle)"
        if name == "torch.load" and option(node, "weights_only") is not True:
            yield "torch.load without weights_only"
        if name in ("__import__", "importlib.import_module") and node.args:
            module = getattr(node.args[0], "value", "")
            if isinstance(module, str) and module.split(".")[0] in MODULES:
                yield f"{name}({module})"


def sources(*endings):
    for folder in SHIPPED:
        for path in sorted((servers.ROOT / folder).rglob("*")):
            if path.suffix in endings and path.is_file() and "node_modules" not in path.parts:
                yield path


@pytest.mark.parametrize("source", [
    "import pickle", "from marshal import loads", "import a, dill as b", "eval(text)", "exec(text, {})",
    "yaml.load(text, Loader=yaml.Loader)", "np.load(file, allow_pickle=True)", "torch.load(file)",
    "torch.load(file, weights_only=False)", "pd.read_pickle(file)", "__import__('pickle')",
    "importlib.import_module('cloudpickle.core')",
])  # fmt: skip
def test_s31_the_search_finds_each_of_them(source):
    assert list(dangers(source))


def test_s31_the_search_finds_nothing_else():
    safe = ("import json", "model.eval()", "yaml.safe_load(text)", "np.load(file)", "request.exec()", "re.compile(x)",
            "torch.load(file, weights_only=True)", "importlib.import_module(name)")  # fmt: skip
    assert not [found for source in safe for found in dangers(source)]


def test_s31_nothing_that_users_get_reads_objects_that_can_run_code():
    python = list(sources(".py"))
    assert len(python) > 40
    found = [f"{path.relative_to(servers.ROOT)}: {what}" for path in python for what in dangers(path.read_text())]
    native = list(sources(".cc", ".h", ".c"))
    assert len(native) > 500
    for path in native:
        if path.name.endswith(("_test.cc", "_fuzz.cc")):
            continue
        text = path.read_text()
        found += [f"{path.relative_to(servers.ROOT)}: {name}" for name in NAMES if name in text]
    # Tells what a file is by its ending, to say that it cannot be served.
    assert [line for line in found if not line.startswith("src/cli/model_file.cc")] == []


# --- What requests can do -----------------------------------------------------------------------


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def payloads(tmp_path):
    """Bytes that make the file `ran` for whoever reads them as objects."""
    ran = tmp_path / "ran"
    pickled = [pickle.dumps(Payload(ran), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    yaml = f"!!python/object/apply:builtins.open ['{ran}', 'w']".encode()
    return ran, [*pickled, yaml]


def test_the_payloads_work(payloads):
    ran, (first, *_) = payloads
    pickle.loads(first).close()
    assert ran.exists()


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    openai_models.write(repository)
    models.write_model(repository, "bytes", models.identity_config("BYTES", [-1]))
    python_models.write(repository, "python", python_models.IDENTITY, datatype="BYTES")
    python_models.write(repository, "isolated", python_models.IDENTITY, datatype="BYTES",
                        extra='parameters { key: "isolation" value { string_value: "process" } }\n')  # fmt: skip
    with servers.running(repository, env=python_models.ENVIRONMENT, log_dir=tmp_path_factory.mktemp("log"),
                         args=["--model-control-mode=explicit", "--load-model=bytes", "--load-model=python",
                               "--load-model=isolated", "--load-model=parrot"]) as running:  # fmt: skip
        yield running


@pytest.mark.parametrize("model", ["bytes", "python", "isolated"])
def test_s31_bytes_stay_bytes(server, payloads, model):
    ran, all = payloads
    data = b"".join(len(one).to_bytes(4, "little") + one for one in all)
    body, headers = wire.infer_body([("INPUT0", "BYTES", [len(all)], data)],
                                    [{"name": "OUTPUT0", "parameters": {"binary_data": True}}])  # fmt: skip
    reply = wire.request(server, "POST", f"/v2/models/{model}/infer", body, headers)
    assert reply.status == 200, reply
    assert wire.split_reply(reply)[1] == data
    request = pb.ModelInferRequest(model_name=model)
    request.inputs.add(name="INPUT0", datatype="BYTES", shape=[len(all)])
    request.raw_input_contents.append(data)
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ModelInfer(request).raw_output_contents[0] == data
    assert not ran.exists()


@pytest.mark.parametrize("field", ["Content-Type", "Accept", "X-Serialization", "X-Bento-Name"])
def test_s31_no_header_chooses_another_reader(server, payloads, field):
    ran, all = payloads
    kinds = ("application/vnd.bentoml+pickle", "application/x-python-pickle", "application/pickle", "text/yaml")
    for path in ("/v2/models/python/infer", "/v2/models/python/generate", "/v1/completions", "/v2/repository/index",
                 "/v2/repository/models/python/load", "/v2/trace/setting", "/v2/logging"):  # fmt: skip
        for kind in kinds:
            for body in all:
                reply = wire.request(server, "POST", path, body, {field: kind})
                assert reply.status in (400, 500) and reply.error, (path, kind, reply)
    assert not ran.exists()


def test_s31_texts_and_parameters_stay_texts(server, payloads):
    ran, all = payloads
    text = all[-1].decode()
    reply = wire.request(server, "POST", "/v1/completions", json.dumps({"model": "parrot", "prompt": text}))
    assert reply.json()["choices"][0]["text"] == text
    tensor = {"name": "INPUT0", "datatype": "BYTES", "shape": [1], "data": [text]}
    body = {"id": text, "parameters": {"x": text}, "inputs": [{**tensor}]}
    reply = wire.request(server, "POST", "/v2/models/python/infer", json.dumps(body))
    assert reply.json()["outputs"][0]["data"] == [text]
    assert not ran.exists()
