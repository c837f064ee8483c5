# SPDX-License-Identifier: Apache-2.0
"""Writing a backend, as docs/backends.md tells it: an installation of the server, the examples copied
out of the tree, each built by its one command, and served."""

import csv
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tritonclient.http as http

from harness import python_models
from harness import server as servers

pytestmark = pytest.mark.skipif(servers.REFERENCE, reason="about this server's installation")

EXAMPLES = servers.ROOT / "examples" / "backend"
with open(servers.ROOT / "examples" / "clients" / "digits.csv", encoding="utf-8") as file:
    ROWS = list(csv.reader(file))[1:]
IMAGES = np.array([row[1:] for row in ROWS], dtype=np.float32)
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", servers.build_folder(), "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def server(installation, tmp_path_factory):
    """The installed server with the three example backends in its folder of backends."""
    work = tmp_path_factory.mktemp("copies")
    repositories = [work / "plain"]
    shutil.copytree(servers.ROOT / "examples" / "models" / "digits", repositories[0] / "digits")
    for example in ("template", "images", "forest"):
        copy = work / example
        shutil.copytree(EXAMPLES / example, copy, ignore=shutil.ignore_patterns("build"))
        run("cmake", "--workflow", "--preset", "release", cwd=copy, env={**os.environ, "CMAKE_PREFIX_PATH": installation})
        repositories.append(copy / "models")
        for built in (copy / "build" / "backends").iterdir():
            (installation / "backends" / built.name).symlink_to(built)
    python_models.write(repositories[0], "same", python_models.IDENTITY)
    # The backends' own folder is found from where the server lies, not named.
    with servers.running(
        *repositories, executable=installation / "bin" / "tritonserver", env=python_models.ENVIRONMENT
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with http.InferenceServerClient(server.http, concurrency=8) as connection:
        yield connection


def tensor(name, values, datatype="FP32"):
    given = http.InferInput(name, list(values.shape), datatype)
    given.set_data_from_numpy(values)
    return given


def infer(client, model, *inputs):
    return client.infer(model, list(inputs))


def pgm(image, scale):
    """The 8x8 image with levels to 16, each pixel `scale` x `scale` large, as a binary PGM file."""
    large = np.kron(image.reshape(8, 8), np.ones((scale, scale))) * (255 / 16)
    height, width = large.shape
    return b"P5\n# a digit\n%d %d\n255\n" % (width, height) + large.round().astype(np.uint8).tobytes()


def test_an_installation_has_all_of_the_python_backend(client):
    given = np.array([1, 2], np.float32)
    assert np.array_equal(infer(client, "same", tensor("INPUT0", given)).as_numpy("OUTPUT0"), given)


def test_the_template_serves_its_model(client):
    result = infer(client, "triple", tensor("INPUT", np.array([[1, 2.5, -4]], np.float32)))
    assert result.as_numpy("OUTPUT").tolist() == [[3, 7.5, -12]]


def test_the_templates_requests_are_batched(client):
    values = [np.full((1, 4), i, np.float32) for i in range(16)]
    sent = [client.async_infer("triple", [tensor("INPUT", value)]) for value in values]
    for value, request in zip(values, sent):
        assert np.array_equal(request.get_result().as_numpy("OUTPUT"), value * 3)
    statistics = client.get_inference_statistics("triple")["model_stats"][0]
    assert statistics["inference_count"] >= 16


def test_a_pipeline_reads_images(client):
    """Files of several sizes in one request: decoded, recognised and named by three models."""
    files = [pgm(image, 1 + i % 5) for i, image in enumerate(IMAGES[:20])]
    result = infer(client, "read_digit", tensor("IMAGE", np.array([[file] for file in files], object), "BYTES"))
    words = [word.decode() for word in result.as_numpy("LABEL")[:, 0]]
    expected = [NAMES[int(row[0])] for row in ROWS[:20]]
    assert sum(a == b for a, b in zip(words, expected)) >= 18
    assert (result.as_numpy("CONFIDENCE") > 0.3).all()


def test_a_text_image_is_read_as_the_binary_one(client):
    text = b"P2 8 8 16 " + b" ".join(b"%d" % level for level in IMAGES[0].astype(int))
    result = infer(client, "decode_image", tensor("IMAGE", np.array([[text]], object), "BYTES"))
    assert np.allclose(result.as_numpy("PIXELS")[0], IMAGES[0])


@pytest.mark.parametrize(
    "file, complaint",
    [
        (b"", "begins with neither P2 nor P5"),
        (b"P5 8", "header is damaged"),
        (b"P5 8 8 255\n" + bytes(63), "ends before its last pixel"),
        (b"P5 4000000000 4000000000 255\n", "more than 64 million pixels"),
        (b"P2 2 2 9 1 2 3 10 ", "pixel 3 of the image is missing or beyond 9"),
        (b"P2 2 2 9 1 2 x x x", "pixel 2 of the image is missing or beyond 9"),
    ],
)
def test_a_damaged_image_is_refused_and_the_others_are_served(client, file, complaint):
    good = pgm(IMAGES[0], 2)
    bad = client.async_infer("read_digit", [tensor("IMAGE", np.array([[file]], object), "BYTES")])
    result = infer(client, "read_digit", tensor("IMAGE", np.array([[good]], object), "BYTES"))
    assert result.as_numpy("LABEL")[0, 0].decode() == NAMES[int(ROWS[0][0])]
    with pytest.raises(http.InferenceServerException, match=complaint):
        bad.get_result()


def test_a_forest_configures_itself(client):
    config = client.get_model_config("digits_forest")
    assert config["max_batch_size"] == 64
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"]] == [("features", "TYPE_FP32", [64])]
    assert [(o["name"], o["dims"]) for o in config["output"]] == [("prediction", [10])]


def test_a_forest_predicts_what_lightgbm_does(client):
    expected = np.loadtxt(EXAMPLES / "forest" / "predictions.csv", delimiter=",")
    result = infer(client, "digits_forest", tensor("features", IMAGES[: len(expected)]))
    assert np.allclose(result.as_numpy("prediction"), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "before, after, complaint",
    [
        ("tree\n", "forest\n", "the first line is not 'tree'"),
        ("objective=multiclass num_class:10", "objective=lambdarank", "objective 'lambdarank' is not supported"),
        ("end of trees", "", "the model is incomplete"),
        ("num_leaves=8", "num_leaves=9", "tree 0: leaf_value has 8 values, expected 9"),
        ("left_child=", "left_child=0 ", "tree 0: left_child has 8 values, expected 7"),
        ("split_feature=", "split_feature=9", "splits feature 9"),
        ("decision_type=", "decision_type=1", "is a categorical split"),
    ],
)
def test_a_damaged_forest_is_refused_with_the_place(installation, server, tmp_path, before, after, complaint):
    model = tmp_path / "models" / "damaged"
    shutil.copytree(EXAMPLES / "forest" / "models" / "digits_forest", model)
    path = model / "1" / "model.txt"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with servers.running(
        model.parent, executable=installation / "bin" / "tritonserver", args=["--exit-on-error=false"], wait=False
    ) as other:
        servers.wait_until(lambda: complaint in other.log, f"a log with {complaint!r}")


def test_the_source_tree_serves_as_a_kit_too(tmp_path):
    """Without an installation; the copy keeps a module off the examples' own build folder."""
    copy = pathlib.Path(shutil.copytree(EXAMPLES / "template", tmp_path / "mine", ignore=shutil.ignore_patterns("build")))
    run("cmake", "-S", copy, "-B", copy / "build", f"-DCMAKE_PREFIX_PATH={servers.ROOT}")
    run("cmake", "--build", copy / "build")
    assert (copy / "build" / "backends" / "scale" / "libtriton_scale.so").exists()
