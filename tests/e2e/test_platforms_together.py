# SPDX-License-Identifier: Apache-2.0
"""The same classifier in the formats of all frameworks, in one server at once: scikit-learn says what it answers."""

import concurrent.futures
import shutil
import threading

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import LabelBinarizer

from harness import clients, models
from harness import server as servers

pytestmark = pytest.mark.newer

PLATFORMS = models.ROOT / "examples" / "platforms"
# Model: the backend that has to be in the build, the names of the input and the outputs.
USUAL = ("pixels", "label", "probabilities")
MODELS = {
    "digits": ("onnxruntime", *USUAL),
    "digits_torchscript": ("pytorch", *USUAL),
    "digits_aoti": ("pytorch", "INPUT__0", "OUTPUT__0", "OUTPUT__1"),
    "digits_savedmodel": ("tensorflow", *USUAL),
    "digits_graphdef": ("tensorflow", *USUAL),
    "digits_netdef": ("caffe2", *USUAL),
    "digits_openvino": ("openvino", *USUAL),
}


def classifier():
    """scikit-learn's network with the weights of the ONNX file."""
    graph = onnx.load(models.EXAMPLES / "digits" / "1" / "model.onnx").graph
    weights = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in graph.initializer}
    layers = sum(name.startswith("w") for name in weights)
    network = MLPClassifier()
    network.coefs_ = [weights[f"w{i}"] for i in range(layers)]
    network.intercepts_ = [weights[f"b{i}"] for i in range(layers)]
    network.n_layers_, network.n_outputs_, network.out_activation_ = layers + 1, 10, "softmax"
    network.n_features_in_ = 64
    network.classes_ = np.arange(10)
    network._label_binarizer = LabelBinarizer().fit(network.classes_)
    return network


@pytest.fixture(scope="module")
def images():
    return models.digit_images()


@pytest.fixture(scope="module")
def expected(images):
    return classifier().predict_proba(images / 16)


def folders():
    """The folder of each model whose backend is in the build."""
    everything = {path.name: path for path in (*PLATFORMS.glob("*/*"), models.EXAMPLES / "digits")}
    return {name: everything[name] for name, (backend, *_) in MODELS.items() if servers.has_backend(backend)}


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("platforms") / "models"
    for name, folder in folders().items():
        shutil.copytree(folder, repository / name)
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


@pytest.mark.parametrize("rows", [1, 50])
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_scikit_learn(client, images, expected, name, rows):
    backend, pixels, label, scores = MODELS[name]
    if not servers.has_backend(backend):
        pytest.skip(f"the build has no backend '{backend}'")
    for first in range(0, len(images), rows):
        batch = images[first : first + rows]
        result = client.infer(name, [client.input(pixels, batch, "FP32")])
        np.testing.assert_allclose(result.as_numpy(scores), expected[first : first + rows], atol=1e-4)
        np.testing.assert_array_equal(result.as_numpy(label)[:, 0], expected[first : first + rows].argmax(axis=1))


def test_every_example_is_compared():
    assert {path.name for path in PLATFORMS.glob("*/*")} | {"digits"} == set(MODELS)


def test_models_of_all_platforms_come_and_go_at_once(require_server, tmp_path, images, expected):
    """In each round, two models of each platform are loaded, answer, and are unloaded at the same moment."""
    copies = []
    for name, folder in folders().items():
        for copy in (f"{name}_0", f"{name}_1"):
            shutil.copytree(folder, tmp_path / "models" / copy)
            copies.append((copy, name))
    all_have_answered = threading.Barrier(len(copies), timeout=60 * servers.SLOWNESS)

    def come_and_go(running, copy, name):
        _, pixels, _, scores = MODELS[name]
        client = clients.Client("grpc", running)
        try:
            for _ in range(5):
                client.load_model(copy)
                result = client.infer(copy, [client.input(pixels, images[:50], "FP32")])
                np.testing.assert_allclose(result.as_numpy(scores), expected[:50], atol=1e-4)
                all_have_answered.wait()
                client.unload_model(copy)
        except BaseException:
            all_have_answered.abort()
            raise
        finally:
            client.close()

    with servers.running(tmp_path / "models", args=["--model-control-mode=explicit"], log_dir=tmp_path) as running:
        with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
            for done in [pool.submit(come_and_go, running, *names) for names in copies]:
                done.result()
