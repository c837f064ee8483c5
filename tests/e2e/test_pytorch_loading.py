# SPDX-License-Identifier: Apache-2.0
"""Loading PyTorch models: files that are none, configurations that do not fit, memory after unloading."""

import io
import zipfile

import numpy as np
import pytest
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from harness import cuda, memory, models, torch_models
from harness import server as servers

pytestmark = pytest.mark.skipif(
    not servers.has_backend("pytorch"), reason="the build has no PyTorch backend (tools/setup --with pytorch)"
)

ADD = "def forward(self, x, y):\n    return x + y\n"
HEAVY = "def forward(self, x):\n    return torch.matmul(x, self.w)\n"
CONFIG = torch_models.config([("x", "FP32", [2]), ("y", "FP32", [2])], [("OUTPUT__0", "FP32", [2])])


def archive(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, "text")
    return content.getvalue()


def bomb():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("m/code/__torch__.py", "text")
        with file.open("m/data.pkl", "w", force_zip64=True) as entry:
            for _ in range(600):
                entry.write(bytes(1 << 20))
    return content.getvalue()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a model that adds."""
    path = tmp_path_factory.mktemp("good")
    torch_models.Repository(path).add("add", ADD, CONFIG).write()
    return (path / "add" / "1" / "model.pt").read_bytes()


def scrambled(content):
    """The same archive with other bytes in each of its members, whose checksums are right again."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(result, "w") as sink:
        for member in source.infolist():
            data = source.read(member)
            sink.writestr(member, bytes(b ^ 0x55 for b in data) if member.filename.endswith("data.pkl") else data)
    return result.getvalue()


def test_a_file_that_is_no_model_is_refused_with_what_it_is(start_server, empty_repository, good):
    bad = {
        "empty": (b"", "is empty"),
        "cut": (good[: len(good) // 2], "cut off"),
        "random": (np.random.default_rng(1).bytes(100_000), "not a file of PyTorch"),
        "zeros": (bytes(1_000_000), "not a file of PyTorch"),
        "onnx": (models.onnx_identity("FP32", [2]).SerializeToString(), "an ONNX model"),
        "pickle": (archive("m/data.pkl", "m/data/0", "m/version"), "whose code is not in the file"),
        "exported": (archive("m/models/model.json"), "an exported program"),
        "compiled": (archive("m/data/aotinductor/model/a.so"), "compiled by AOTInductor"),
        "word": (archive("word/document.xml"), "without a TorchScript model"),
        "bomb": (bomb(), "far larger when unpacked"),
        "scrambled": (scrambled(good), "failed to load model 'scrambled'"),
    }
    for name, (content, _) in bad.items():
        models.write_model(empty_repository, name, CONFIG, {"1": {"model.pt": content}})
    models.write_model(empty_repository, "folder", CONFIG)
    (empty_repository / "folder" / "1" / "model.pt").mkdir()
    models.write_model(empty_repository, "missing", CONFIG, {"1": {"modell.pt": good}})
    models.write_model(empty_repository, "good", CONFIG, {"1": {"model.pt": good}})
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    with http.InferenceServerClient(server.http) as client:
        index = {m["name"]: m for m in client.get_model_repository_index()}
    for name, (_, text) in bad.items():
        assert text in index[name]["reason"], name
    assert "is a folder" in index["folder"]["reason"]
    assert "That folder has 'modell.pt'" in index["missing"]["reason"]
    assert index["good"]["state"] == "READY"
    # Nothing of the stack of the library gets into the log.
    raw = [line for line in server.log.splitlines() if "Traceback" in line or "frame #" in line]
    assert raw == []


def test_gigabytes_of_zeros_are_refused_without_reading_them(start_server, empty_repository):
    begins = {"script": (b"", "not a file of PyTorch"), "archive": (b"PK\x03\x04", "cut off")}
    for name, (start, _) in begins.items():
        for kind, settings in (("pt", CONFIG), ("pt2", 'platform: "torch_aoti"\n')):
            models.write_model(empty_repository, f"{name}_{kind}", settings)
            with open(empty_repository / f"{name}_{kind}" / "1" / f"model.{kind}", "wb") as file:
                file.write(start)
                file.truncate(2 << 30)
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    with http.InferenceServerClient(server.http) as client:
        for kind in ("pt", "pt2"):
            for name, (_, text) in begins.items():
                before = server.resident_bytes(), server.read_bytes()
                with pytest.raises(InferenceServerException, match=text):
                    client.load_model(f"{name}_{kind}")
                assert server.resident_bytes() < before[0] + (256 << 20)
                assert server.read_bytes() < before[1] + (256 << 20)


def test_a_configuration_that_does_not_fit_is_refused_with_the_reason(start_server, empty_repository, good):
    config = torch_models.config
    x, y, out = ("x", "FP32", [2]), ("y", "FP32", [2]), ("OUTPUT__0", "FP32", [2])
    wrong = {
        "fewer": (config([("INPUT__0", "FP32", [2])], [out]), "configuration expects 1 inputs, model provides 2"),
        "more": (config([x, y, ("z", "FP32", [2])], [out]), "configuration expects 3 inputs, model provides 2"),
        "text": (config([x, ("y", "BYTES", [2])], [out]), "model provides Tensor"),
        "beyond": (config([x, y], [("OUTPUT__3", "FP32", [2])]), "refers to an output index which doesn't exist"),
        "number": (config([x, y], [out], torch_models.parameter("INFERENCE_MODE", "maybe")), "INFERENCE_MODE"),
        "nothing": ('platform: "pytorch_libtorch"\n', "forward(x: Tensor, y: Tensor) -> Tensor"),
    }
    for name, (text, _) in wrong.items():
        models.write_model(empty_repository, name, text, {"1": {"model.pt": good}})
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    with http.InferenceServerClient(server.http) as client:
        index = {m["name"]: m for m in client.get_model_repository_index()}
    for name, (_, text) in wrong.items():
        assert text in index[name]["reason"], index[name]["reason"]


def test_outputs_that_a_configuration_leaves_out_are_found_by_calling_the_model(start_server, empty_repository):
    def inputs_only(text):
        return text[: text.index("output [")]

    code = "def forward(self, x):\n    return {'sum': [x.sum(1, True)], 'parts': [x > 0, x.long()]}\n"
    repository = torch_models.Repository(empty_repository)
    config = torch_models.config([("x", "FP32", [-1, 4])], [])
    repository.add("found", code, inputs_only(config))
    config = torch_models.config([("x", "FP32", [4])], [], max_batch_size=8)
    repository.add("rows", code, inputs_only(config))
    fails = "def forward(self, x):\n    assert bool((x > 0).all()), 'only positive numbers'\n    return x\n"
    repository.add("fails", fails, inputs_only(config))
    repository.write()
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    with http.InferenceServerClient(server.http) as client:
        metadata = client.get_model_metadata("found")
        tensors = [(o["name"], o["datatype"], o["shape"]) for o in metadata["outputs"]]
        expected = [("sum[0]", "FP32", [-1, 1]), ("parts[0]", "BOOL", [-1, 4]), ("parts[1]", "INT64", [-1, 4])]
        assert sorted(tensors) == sorted(expected)
        tensor = http.InferInput("x", [2, 4], "FP32")
        tensor.set_data_from_numpy(np.arange(8, dtype=np.float32).reshape(2, 4))
        assert client.infer("rows", [tensor]).as_numpy("sum[0]").tolist() == [[6], [22]]
        index = {m["name"]: m for m in client.get_model_repository_index()}
    assert "only positive numbers" in index["fails"]["reason"]
    assert "list them in config.pbtxt" in index["fails"]["reason"]


def test_the_bytes_of_weights_are_reported_once_for_what_instances_share(start_server, empty_repository):
    repository = torch_models.Repository(empty_repository)
    ins, outs = [("x", "FP32", [2, 3])], [("OUTPUT__0", "FP32", [2, 5])]
    for name, sharing in (("shared", "true"), ("copied", "false")):
        extra = torch_models.parameter("ENABLE_WEIGHT_SHARING", sharing) + "instance_group [ { count: 3 } ]\n"
        repository.add(name, HEAVY, torch_models.config(ins, outs, extra), {"w": np.ones((3, 5), np.float32)})
    repository.write()
    server = start_server(empty_repository)
    with http.InferenceServerClient(server.http) as client:
        for name, copies in (("shared", 1), ("copied", 3)):
            (statistics,) = client.get_inference_statistics(name)["model_stats"]
            assert statistics["memory_usage"] == [{"type": "CPU", "id": 0, "byte_size": copies * 3 * 5 * 4}]


def test_an_instance_on_a_gpu_is_refused(start_server, empty_repository, good):
    group = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
    models.write_model(empty_repository, "gpu", CONFIG + group, {"1": {"model.pt": good}})
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])
    with http.InferenceServerClient(server.http) as client:
        assert client.get_model_repository_index()[0]["state"] == "UNAVAILABLE"


def test_without_pytorchs_library_for_gpus_models_stay_on_the_cpu(
    start_server, empty_repository, good, tmp_path
):
    if not cuda.is_there() or cuda.IS_REAL:
        pytest.skip("the tests' CUDA driver is not built")
    group = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
    models.write_model(empty_repository, "gpu", CONFIG + group, {"1": {"model.pt": good}})
    models.write_model(empty_repository, "auto", CONFIG, {"1": {"model.pt": good}})
    clean = 'parameters { key: "ENABLE_CACHE_CLEANING" value: { string_value: "true" } }\n'
    group = "instance_group [ { kind: KIND_MODEL } ]\n"
    models.write_model(empty_repository, "free", CONFIG + group + clean, {"1": {"model.pt": good}})
    server = start_server(
        empty_repository,
        args=["--exit-on-error=false", "--strict-readiness=false"],
        env=cuda.Control(tmp_path / "control").environment(),
    )
    with http.InferenceServerClient(server.http) as client:
        reasons = {m["name"]: m.get("reason", "") for m in client.get_model_repository_index()}
        assert "is to run on GPU 0, but PyTorch has no GPU here" in reasons["gpu"]
        assert "libtorch_cuda.so" in reasons["gpu"]
        assert client.get_model_config("auto")["instance_group"][0]["kind"] == "KIND_CPU"
        assert add(client, "auto").tolist() == [4, 6]
        assert add(client, "free").tolist() == [4, 6]


def test_an_instance_of_kind_model_runs(start_server, empty_repository, good):
    group = "instance_group [ { kind: KIND_MODEL } ]"
    models.write_model(empty_repository, "free", CONFIG + group, {"1": {"model.pt": good}})
    server = start_server(empty_repository)
    with http.InferenceServerClient(server.http) as client:
        assert add(client, "free").tolist() == [4, 6]


def add(client, model):
    inputs = [http.InferInput(name, [2], "FP32") for name in ("x", "y")]
    for tensor, values in zip(inputs, ([1, 2], [3, 4])):
        tensor.set_data_from_numpy(np.array(values, np.float32))
    return client.infer(model, inputs).as_numpy("OUTPUT__0")


def test_what_a_model_took_is_given_back_when_it_is_unloaded(start_server, empty_repository):
    """The weights of all cycles would be 3 GB, and those of one, had its instances copies, 64 MB."""
    weights = np.ones((2048, 2048), np.float32)  # 16 MB
    config = torch_models.config(
        [("x", "FP32", [1, 2048])], [("y", "FP32", [1, 2048])], "instance_group [ { kind: KIND_CPU count: 4 } ]"
    )
    torch_models.Repository(empty_repository).add("heavy", HEAVY, config, {"w": weights}).write()
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    tensor = http.InferInput("x", [1, 2048], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 2048), np.float32))

    with http.InferenceServerClient(server.http) as client:
        memory.check_cycles(server, client, {"heavy": lambda: client.infer("heavy", [tensor])})
        before = server.resident_bytes()
        client.load_model("heavy")
        assert client.infer("heavy", [tensor]).as_numpy("y")[0, 0] == 2048
        assert server.resident_bytes() < before + 3 * weights.nbytes
