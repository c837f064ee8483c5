# SPDX-License-Identifier: Apache-2.0
"""Models compiled by AOTInductor (platform torch_aoti, model.pt2): names, batches, checks, files that are none.

The package of tests/data/aoti was made by tests/harness/make_aoti_package.py; it runs on every x86-64 processor.
"""

import concurrent.futures
import io
import json
import platform
import shutil
import zipfile

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from harness import clients, memory, models
from harness import server as servers

pytestmark = [
    pytest.mark.skipif(
        not servers.has_backend("pytorch"), reason="the build has no PyTorch backend (tools/setup --with pytorch)"
    ),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the package was compiled for x86-64"),
]

PACKAGE = models.ROOT / "tests" / "data" / "aoti" / "nested.pt2"
FOLDER = "p/data/aotinductor/model/"
WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
BIAS = np.array([0.5, -0.5, 1.0], np.float32)
TYPES = {"x": "FP32", "ids": "INT64", "add": "FP32", "bias": "FP32"}
DIMS = {"x": [4], "ids": [], "add": [3], "bias": [3]}
ORDINAL = {"x": "INPUT__0", "ids": "INPUT__1", "add": "INPUT__2", "bias": "INPUT__3"}
BY_PATH = {"x": "ARGS[0]", "ids": "ARGS[1]", "add": "ARGS[2][add]", "bias": "KWARGS[bias]"}


def config(names, outputs, dims=None, extra="", types=TYPES):
    dims = dims or {name: ([-1] if name != "bias" else []) + DIMS[name] for name in TYPES}
    inputs = ", ".join(models.tensor_config(names[n], types[n], dims[n]) for n in TYPES)
    results = ", ".join(models.tensor_config(*output) for output in outputs)
    return f'platform: "torch_aoti"\ninput [ {inputs} ]\noutput [ {results} ]\n{extra}\n'


OUTPUTS = [("OUTPUT__0", "FP32", [-1, 3]), ("OUTPUT__1", "FP32", [-1]), ("OUTPUT__2", "INT64", [-1])]
PATHS = [("RESULT[pair][1]", "INT64", [-1]), ("RESULT[y]", "FP32", [-1, 3])]


def values(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((rows, 4), np.float32), "ids": rng.integers(0, 99, rows, np.int64),
            "add": rng.standard_normal((rows, 3), np.float32), "bias": rng.standard_normal(3, np.float32)}


def expected(given):
    y = given["x"] @ WEIGHT.T + BIAS + given["add"] + given["bias"]
    return {"y": y, "sum": given["x"].sum(-1), "ids": given["ids"] + 1}


def ask(client, model, given, names=ORDINAL, **options):
    tensors = []
    for name, value in given.items():
        datatype = {"float32": "FP32", "int64": "INT64", "int32": "INT32"}[str(value.dtype)]
        tensors.append(client.input(names[name], value, datatype))
    return client.infer(model, tensors, **options)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    package = {"1": {"model.pt2": PACKAGE.read_bytes()}}
    models.write_model(repository, "bare", None, package)
    models.write_model(repository, "ordinal", config(ORDINAL, OUTPUTS), package)
    models.write_model(repository, "paths", config(BY_PATH, PATHS, extra="instance_group [ { count: 3 } ]"), package)
    models.write_model(repository, "half", 'platform: "torch_aoti"\n', package)
    models.write_model(repository, "backend_as_platform", 'platform: "pytorch"\n', package)
    shutil.copytree(models.ROOT / "examples/platforms/pytorch/digits_aoti", repository / "digits_aoti")
    rows = (models.ROOT / "examples/platforms/pytorch/digits_aoti/1/model.pt2").read_bytes()
    models.write_model(repository, "rows", 'platform: "torch_aoti"\nmax_batch_size: 16\n', {"1": {"model.pt2": rows}})
    if servers.has_backend("onnxruntime"):
        models.copy_example(repository, "digits")
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
def test_a_compiled_model_computes_what_the_model_does(client, rows):
    given = values(rows, rows)
    result = ask(client, "ordinal", given)
    wanted = expected(given)
    np.testing.assert_allclose(result.as_numpy("OUTPUT__0"), wanted["y"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(result.as_numpy("OUTPUT__1"), wanted["sum"], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT__2"), wanted["ids"])


def test_inputs_and_outputs_have_the_names_of_the_call_specification(client):
    given = values(3)
    result = ask(client, "paths", given, BY_PATH)
    np.testing.assert_allclose(result.as_numpy("RESULT[y]"), expected(given)["y"], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(result.as_numpy("RESULT[pair][1]"), given["ids"] + 1)


@pytest.mark.parametrize("model", ["bare", "half", "backend_as_platform"])
def test_a_configuration_is_completed_from_the_package(client, server, model):
    metadata = json.loads(server_get(server, f"/v2/models/{model}"))
    tensors = [(t["name"], t["datatype"], t["shape"]) for t in metadata["inputs"] + metadata["outputs"]]
    assert tensors == [
        ("INPUT__0", "FP32", [-1, 4]), ("INPUT__1", "INT64", [-1]), ("INPUT__2", "FP32", [-1, 3]),
        ("INPUT__3", "FP32", [3]), *[(n, t, list(d)) for n, t, d in OUTPUTS]]
    given = values(5)
    np.testing.assert_allclose(ask(client, model, given).as_numpy("OUTPUT__0"), expected(given)["y"], rtol=1e-5, atol=1e-5)


def server_get(server, path):
    import urllib.request

    with urllib.request.urlopen(f"http://{server.http}{path}", timeout=10) as reply:
        return reply.read()


def test_wrong_inputs_reach_no_code_of_the_model(client):
    def error(change):
        given = {**values(3), **change}
        with pytest.raises(InferenceServerException) as caught:
            ask(client, "ordinal", given)
        return str(caught.value)

    assert "has to be 3 as in input 'INPUT__0'" in error({"ids": np.arange(2)})
    assert "has to be 3 as in input 'INPUT__0'" in error({"add": np.zeros((5, 3), np.float32)})
    assert "may be 1 to 64" in error(values(65))
    assert "unexpected shape" in error({"x": np.zeros((3, 5), np.float32)})
    assert "INPUT__1" in error({"ids": np.arange(3, dtype=np.int32)})
    given = values(3)
    del given["bias"]
    with pytest.raises(InferenceServerException, match="expected 4 inputs"):
        ask(client, "ordinal", given)
    test_a_compiled_model_computes_what_the_model_does(client, 3)


def test_many_requests_at_once_are_answered_each(server):
    def one(seed):
        client = clients.Client("http", server)
        given = values(1 + seed % 5, seed)
        result = ask(client, "paths", given, BY_PATH).as_numpy("RESULT[y]")
        client.close()
        return np.allclose(result, expected(given)["y"], rtol=1e-5, atol=1e-5)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(64)))


def digits(client, model, pixels, name, outputs):
    result = client.infer(model, [client.input(name, pixels, "FP32")])
    return [result.as_numpy(output) for output in outputs]


@pytest.mark.parametrize("rows", [1, 2, 64])
def test_digits_come_out_as_from_the_onnx_model(client, rows):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime backend")
    pixels = models.digit_images()[:rows]
    pixels = np.resize(pixels, (rows, 64))
    label, scores = digits(client, "digits_aoti", pixels, "INPUT__0", ["OUTPUT__0", "OUTPUT__1"])
    wanted_label, wanted_scores = digits(client, "digits", pixels, "pixels", ["label", "probabilities"])
    np.testing.assert_array_equal(label, wanted_label)
    np.testing.assert_allclose(scores, wanted_scores, atol=1e-4)


def test_requests_of_a_batch_get_their_own_rows(server):
    table = models.digit_images()

    def one(number):
        client = clients.Client("grpc", server)
        pixels = np.ascontiguousarray(np.roll(table, number, axis=0)[: 1 + number % 4])
        (scores,) = digits(client, "digits_aoti", pixels, "INPUT__0", ["OUTPUT__1"])
        (alone,) = digits(client, "rows", pixels, "INPUT__0", ["OUTPUT__1"])
        client.close()
        return np.allclose(scores, alone, atol=1e-5)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(48)))


def test_with_a_batch_size_the_rows_are_not_part_of_the_completed_dimensions(server):
    config = json.loads(server_get(server, "/v2/models/rows/config"))
    assert [(t["name"], [int(d) for d in t["dims"]]) for t in config["input"] + config["output"]] == [
        ("INPUT__0", [64]), ("OUTPUT__0", [1]), ("OUTPUT__1", [10])]


def test_the_bytes_of_the_weights_are_reported(server):
    statistics = json.loads(server_get(server, "/v2/models/paths/stats"))["model_stats"][0]
    (use,) = statistics["memory_usage"]
    # Three instances share 12 weights and 3 of the bias, each rounded up to 64 bytes at most.
    assert use["type"] == "CPU" and 48 <= use["byte_size"] <= 256


def repackaged(change):
    """The package with changed files: `change` maps name and content to a new content, or None."""
    result = io.BytesIO()
    with zipfile.ZipFile(PACKAGE) as source, zipfile.ZipFile(result, "w") as sink:
        for name in source.namelist():
            data = change(name, source.read(name))
            if data is not None:
                sink.writestr(name, data)
    return result.getvalue()


def with_metadata(**values):
    def change(name, data):
        return json.dumps({**json.loads(data), **values}) if name.endswith("wrapper_metadata.json") else data

    return repackaged(change)


def archive(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, "text")
    return content.getvalue()


def bomb():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open(FOLDER + "a.wrapper.so", "w", force_zip64=True) as entry:
            for _ in range(600):
                entry.write(bytes(1 << 20))
    return content.getvalue()


def test_a_file_that_cannot_be_served_is_refused_and_leaves_nothing(start_server, empty_repository, tmp_path):
    good = PACKAGE.read_bytes()
    whole = with_metadata()
    bad = {
        "empty": (b"", "is empty"),
        "cut": (good[: len(good) // 2], "cut off"),
        "random": (np.random.default_rng(1).bytes(100_000), "not a file of PyTorch"),
        "onnx": (models.onnx_identity("FP32", [2]).SerializeToString(), "an ONNX model"),
        "exported": (archive("m/models/model.json"), "not compiled: compile the model"),
        "script": (archive("m/data.pkl", "m/code/__torch__.py"), 'set platform: "pytorch_libtorch"'),
        "sources": (archive(FOLDER + "a.wrapper.cpp"), "aot_inductor.package_cpp_only"),
        "escapes": (archive(FOLDER + "a.so", FOLDER + "../../../../x.so"), "outside of its folder"),
        "bomb": (bomb(), "far larger when unpacked"),
        "no_library": (archive(FOLDER + "a.wrapper.so"), "failed to load model 'no_library'"),
        "gpu": (with_metadata(AOTI_DEVICE_KEY="cuda"), "compiled for the device 'cuda'"),
        "other_machine": (with_metadata(AOTI_MACHINE="aarch64"), "was compiled for linux on aarch64"),
        "scrambled": (repackaged(lambda n, d: bytes(b ^ 0x55 for b in d) if n.endswith(".so") else d),
                      "failed to load model 'scrambled'"),
        "cut_library": (repackaged(lambda n, d: d[:5000] if n.endswith(".so") else d),
                        "failed to load model 'cut_library'"),
    }
    for name, (content, _) in bad.items():
        models.write_model(empty_repository, name, None, {"1": {"model.pt2": content}})
    models.write_model(empty_repository, "folder", 'platform: "torch_aoti"\n')
    (empty_repository / "folder" / "1" / "model.pt2").mkdir()
    models.write_model(empty_repository, "good", None, {"1": {"model.pt2": whole}})
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"],
                          env={"TMPDIR": str(temporary)})
    client = clients.Client("http", server)
    index = {m["name"]: m for m in client.client.get_model_repository_index()}
    for name, (_, text) in bad.items():
        assert text in index[name]["reason"], index[name]
        assert str(temporary) not in index[name]["reason"], name
    assert "is a folder" in index["folder"]["reason"]
    assert index["good"]["state"] == "READY"
    np.testing.assert_array_equal(ask(client, "good", values(2)).as_numpy("OUTPUT__2"), values(2)["ids"] + 1)
    client.close()
    # Not even the package that is served has files there: its library is loaded.
    assert list(temporary.iterdir()) == []
    raw = [line for line in server.log.splitlines() if line.startswith(("Error:", "frame #", "Exception"))]
    assert raw == []


def test_a_configuration_that_does_not_fit_is_refused_with_the_reason(start_server, empty_repository):
    def dims(**change):
        return {**{name: ([-1] if name != "bias" else []) + DIMS[name] for name in TYPES}, **change}

    wrong = {
        "type": (config(ORDINAL, OUTPUTS, types={**TYPES, "ids": "INT32"}), "model provides TYPE_INT64"),
        "size": (config(ORDINAL, OUTPUTS, dims(x=[-1, 5])), "has dims [-1, 5] in the configuration"),
        "rank": (config(ORDINAL, OUTPUTS, dims(bias=[1, 3])), "but the model was compiled for [3]"),
        "name": (config({**BY_PATH, "bias": "KWARGS[scale]"}, OUTPUTS), "KWARGS[scale]"),
        "key": (config({**BY_PATH, "add": "ARGS[2][sub]"}, OUTPUTS), "ARGS[2][sub]"),
        "output": (config(ORDINAL, [("OUTPUT__3", "FP32", [-1])]), "refers to an output index which doesn't exist"),
        "result": (config(ORDINAL, [("RESULT[z]", "FP32", [-1])]), "'RESULT[z]' has no place in the result of"),
        # The bias has no row for each request of a batch.
        "batch": ('platform: "torch_aoti"\nmax_batch_size: 8\n', "export the model with a dynamic first dimension"),
    }
    package = {"1": {"model.pt2": PACKAGE.read_bytes()}}
    for name, (text, _) in wrong.items():
        models.write_model(empty_repository, name, text, package)
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    client = clients.Client("http", server)
    index = {m["name"]: m for m in client.client.get_model_repository_index()}
    client.close()
    for name, (_, text) in wrong.items():
        assert text in index[name].get("reason", ""), index[name]


def test_packages_are_loaded_at_the_same_time(start_server, empty_repository):
    names = [f"m{i}" for i in range(6)]
    for name in names:
        models.write_model(empty_repository, name, config(ORDINAL, OUTPUTS), {"1": {"model.pt2": PACKAGE.read_bytes()}})
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])

    def cycle(name):
        client = clients.Client("http", server)
        for _ in range(60):
            client.client.load_model(name)
            client.client.unload_model(name)
        client.client.load_model(name)
        given = values(3)
        result = ask(client, name, given).as_numpy("OUTPUT__0")
        client.close()
        return np.allclose(result, expected(given)["y"], rtol=1e-5, atol=1e-5)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        assert all(pool.map(cycle, names))


def test_without_its_source_the_library_checks_the_inputs(start_server, empty_repository):
    package = repackaged(lambda name, data: None if name.endswith(".cpp") else data)
    models.write_model(empty_repository, "m", config(ORDINAL, OUTPUTS), {"1": {"model.pt2": package}})
    server = start_server(empty_repository)
    client = clients.Client("http", server)
    given = values(4)
    np.testing.assert_allclose(ask(client, "m", given).as_numpy("OUTPUT__0"), expected(given)["y"], rtol=1e-5, atol=1e-5)
    with pytest.raises(InferenceServerException, match="PyTorch execute failure"):
        ask(client, "m", {**given, "ids": np.arange(2)})
    with pytest.raises(InferenceServerException, match="too large"):
        ask(client, "m", values(65))
    client.close()
    assert not [line for line in server.log.splitlines() if line.startswith("Error:")]


def test_what_a_model_took_is_given_back_when_it_is_unloaded(start_server, empty_repository):
    models.write_model(empty_repository, "compiled", None, {"1": {"model.pt2": PACKAGE.read_bytes()}})
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    client = clients.Client("http", server)
    memory.check_cycles(server, client, {"compiled": lambda: ask(client, "compiled", values(2))})
    client.close()
