# SPDX-License-Identifier: Apache-2.0
"""Tensors of every type and shape, over the four published clients, come back as computed."""

import numpy as np
import onnxruntime
import pytest
from harness import models, repository
from harness import server as servers
from harness.clients import KINDS, Client

JSON_TYPES = [t for t in models.TYPES if t not in ("FP16", "BF16", "BYTES")]


@pytest.fixture(params=KINDS)
def client(request, server):
    made = Client(request.param, server)
    yield made
    made.close()


def assert_equal(result, name, expected, datatype):
    got = result.as_numpy(name)
    assert got is not None, f"no output {name}"
    assert list(got.shape) == list(expected.shape)
    if datatype == "BYTES":
        assert got.ravel().tolist() == expected.ravel().tolist()
    else:
        np.testing.assert_array_equal(got, expected)


SHAPES = [(1, 1), (3, 5), (0, 4), (2, 0), (17, 129)]


@pytest.mark.parametrize("datatype", models.TYPES)
def test_identity_returns_every_type_in_every_shape(client, datatype):
    rng = np.random.default_rng(11)
    for shape in SHAPES + [tuple(rng.integers(1, 40, 2)) for _ in range(3)]:
        tensor = models.random_tensor(rng, datatype, shape)
        result = client.infer(f"id_{datatype}", [client.input("INPUT0", tensor, datatype)])
        assert_equal(result, "OUTPUT0", tensor, datatype)


@pytest.mark.parametrize("datatype", models.TYPES)
def test_batched_identity_returns_every_type(client, datatype):
    rng = np.random.default_rng(12)
    for batch in (1, 3, 8):
        tensor = models.random_tensor(rng, datatype, (batch, int(rng.integers(1, 30))))
        result = client.infer(f"idb_{datatype}", [client.input("INPUT0", tensor, datatype)])
        assert_equal(result, "OUTPUT0", tensor, datatype)


@pytest.mark.parametrize("datatype", repository.ONNX_IDENTITY_TYPES)
def test_onnx_identity_returns_every_type(client, onnx, datatype):
    rng = np.random.default_rng(13)
    for shape in [(1, 1), (4, 6), (0, 3)]:
        tensor = models.random_tensor(rng, datatype, shape)
        if datatype == "BYTES":
            # ONNX Runtime ends a string at its first zero byte.
            tensor = np.array([b.replace(b"\0", b"x") for b in tensor.ravel()], np.object_).reshape(shape)
        result = client.infer(f"onnx_id_{datatype}", [client.input("INPUT0", tensor, datatype)])
        assert_equal(result, "OUTPUT0", tensor, datatype)


@pytest.mark.parametrize("datatype", repository.ONNX_ADD_TYPES)
def test_onnx_results_equal_those_of_onnxruntime_in_python(client, onnx, datatype):
    model = models.onnx_add_sub(datatype, ["n", 16]).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(14)
    for batch in (1, 2, 4):
        a, b = (models.random_tensor(rng, datatype, (batch, 16)) for _ in range(2))
        expected = session.run(["OUTPUT0", "OUTPUT1"], {"INPUT0": a, "INPUT1": b})
        inputs = [client.input("INPUT0", a, datatype), client.input("INPUT1", b, datatype)]
        result = client.infer(f"onnx_add_{datatype}", inputs)
        for i in range(2):
            assert_equal(result, f"OUTPUT{i}", expected[i], datatype)


@pytest.mark.parametrize("kind", ["http", "http.aio"])
@pytest.mark.parametrize("datatype", JSON_TYPES)
def test_json_tensors_in_both_directions(server, kind, datatype):
    client = Client(kind, server)
    rng = np.random.default_rng(15)
    for shape in [(1, 1), (3, 7), (0, 2)]:
        tensor = models.random_tensor(rng, datatype, shape)
        for binary_in, binary_out in [(False, False), (False, True), (True, False)]:
            result = client.infer(
                f"id_{datatype}",
                [client.input("INPUT0", tensor, datatype, binary=binary_in)],
                outputs=[client.output("OUTPUT0", binary=binary_out)],
            )
            if servers.REFERENCE and datatype == "FP64":
                # That release is off by a bit or two when it reads long numbers.
                np.testing.assert_allclose(result.as_numpy("OUTPUT0"), tensor, rtol=1e-15)
            else:
                assert_equal(result, "OUTPUT0", tensor, datatype)
    client.close()


@pytest.mark.parametrize("kind", ["http", "http.aio"])
def test_json_strings_in_both_directions(server, kind):
    client = Client(kind, server)
    strings = ["", "plain", "quote \" and \\", "line\nend", "umlaut ü, kanji 字, 🙂", "\x01\x1f"]
    tensor = np.array([s.encode() for s in strings], dtype=np.object_).reshape(2, 3)
    result = client.infer(
        "id_BYTES",
        [client.input("INPUT0", tensor, "BYTES", binary=False)],
        outputs=[client.output("OUTPUT0", binary=False)],
    )
    got = [s if isinstance(s, str) else s.decode() for s in result.as_numpy("OUTPUT0").ravel()]
    assert got == strings
    client.close()


@pytest.mark.parametrize("bits", [0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 1])
def test_special_floats_pass_bit_by_bit(client, bits):
    tensor = np.array([[bits]], dtype=np.uint32).view(np.float32)
    result = client.infer("id_FP32", [client.input("INPUT0", tensor, "FP32")])
    assert result.as_numpy("OUTPUT0").view(np.uint32)[0, 0] == bits


def test_scalars_by_reshape(client):
    tensor = np.array([[2.5], [-1]], dtype=np.float32)
    result = client.infer("id_scalar", [client.input("INPUT0", tensor, "FP32")])
    assert_equal(result, "OUTPUT0", tensor, "FP32")


def test_only_requested_outputs_come_back(client):
    a, b = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)
    inputs = [client.input("INPUT0", a, "FP32"), client.input("INPUT1", b, "FP32")]
    result = client.infer("id_pair", inputs, outputs=[client.output("OUTPUT1")])
    assert_equal(result, "OUTPUT1", b, "FP32")
    assert result.as_numpy("OUTPUT0") is None

    result = client.infer("id_pair", inputs)
    assert_equal(result, "OUTPUT0", a, "FP32")
    assert_equal(result, "OUTPUT1", b, "FP32")


def test_inputs_in_any_order(client):
    a, b = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)
    inputs = [client.input("INPUT1", b, "FP32"), client.input("INPUT0", a, "FP32")]
    result = client.infer("id_pair", inputs)
    assert_equal(result, "OUTPUT0", a, "FP32")
    assert_equal(result, "OUTPUT1", b, "FP32")


def test_request_id_model_name_and_version_come_back(client):
    tensor = np.zeros((1, 2), np.float32)
    result = client.infer("id_FP32", [client.input("INPUT0", tensor, "FP32")], request_id="ticket 7/ü")
    response = result.get_response() if client.is_http else result.get_response(as_json=True)
    assert response["id"] == "ticket 7/ü"
    assert response["model_name"] == "id_FP32"
    assert response["model_version"] == "1"


def test_named_version(client):
    tensor = np.zeros((1, 2), np.float32)
    result = client.infer("id_FP32", [client.input("INPUT0", tensor, "FP32")], model_version="1")
    assert_equal(result, "OUTPUT0", tensor, "FP32")


@pytest.mark.parametrize("size", [1 << 20, 16 << 20])
def test_large_tensors(client, size):
    rng = np.random.default_rng(size)
    tensor = rng.integers(0, 255, (1, size), dtype=np.uint8)
    result = client.infer("id_UINT8", [client.input("INPUT0", tensor, "UINT8")])
    assert_equal(result, "OUTPUT0", tensor, "UINT8")


def test_example_simple(client, onnx):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    b = np.ones((1, 16), dtype=np.int32)
    result = client.infer("simple", [client.input("INPUT0", a, "INT32"), client.input("INPUT1", b, "INT32")])
    assert_equal(result, "OUTPUT0", a + b, "INT32")
    assert_equal(result, "OUTPUT1", a - b, "INT32")


def test_example_simple_string(client, onnx):
    a, b = np.arange(16).reshape(1, 16), np.full((1, 16), 3)
    text = [np.array([str(x).encode() for x in t.ravel()], np.object_).reshape(1, 16) for t in (a, b)]
    inputs = [client.input(f"INPUT{i}", text[i], "BYTES") for i in range(2)]
    result = client.infer("simple_string", inputs)
    assert [int(x) for x in result.as_numpy("OUTPUT0").ravel()] == (a + b).ravel().tolist()
    assert [int(x) for x in result.as_numpy("OUTPUT1").ravel()] == (a - b).ravel().tolist()


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
@pytest.mark.parametrize("kind", ["http", "http.aio"])
def test_http_compression_both_ways(server, kind, algorithm):
    client = Client(kind, server)
    tensor = np.arange(60000, dtype=np.int32).reshape(300, 200)
    result = client.infer(
        "id_INT32",
        [client.input("INPUT0", tensor, "INT32")],
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    assert_equal(result, "OUTPUT0", tensor, "INT32")
    client.close()


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
@pytest.mark.parametrize("kind", ["grpc", "grpc.aio"])
def test_grpc_compression_both_ways(server, kind, algorithm):
    client = Client(kind, server)
    tensor = np.arange(60000, dtype=np.int32).reshape(300, 200)
    result = client.infer(
        "id_INT32", [client.input("INPUT0", tensor, "INT32")], compression_algorithm=algorithm
    )
    assert_equal(result, "OUTPUT0", tensor, "INT32")
    client.close()


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_async_infer_with_callbacks(server, kind):
    client = Client(kind, server)
    tensors = [np.full((1, 4), i, np.float32) for i in range(20)]
    if kind == "http":
        pending = [
            client.client.async_infer("id_FP32", [client.input("INPUT0", t, "FP32")]) for t in tensors
        ]
        results = [p.get_result() for p in pending]
    else:
        import queue

        done = queue.Queue()
        for i, t in enumerate(tensors):
            client.client.async_infer(
                "id_FP32",
                [client.input("INPUT0", t, "FP32")],
                callback=lambda result, error, i=i: done.put((i, result, error)),
            )
        got = sorted((done.get(timeout=30) for _ in tensors), key=lambda entry: entry[0])
        assert all(error is None for _, _, error in got)
        results = [result for _, result, _ in got]
    for tensor, result in zip(tensors, results):
        assert_equal(result, "OUTPUT0", tensor, "FP32")
    client.close()


@pytest.mark.parametrize("batch", [1, 3])
def test_classification_gives_the_best_labels(client, onnx, batch):
    model = models.EXAMPLES / "digits" / "1" / "model.onnx"
    labels = (models.EXAMPLES / "digits" / "labels.txt").read_text().split("\n")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    pixels = np.random.default_rng(21).integers(0, 17, (batch, 64)).astype(np.float32)
    (probabilities,) = session.run(["probabilities"], {"pixels": pixels})
    result = client.infer(
        "digits",
        [client.input("pixels", pixels, "FP32")],
        outputs=[client.output("probabilities", class_count=3)],
    )
    classes = result.as_numpy("probabilities")
    assert classes.shape == (batch, 3)
    for row, expected in zip(classes, probabilities):
        best = np.argsort(-expected, kind="stable")[:3]
        for text, index in zip(row, best):
            value, number, label = text.decode().split(":")
            assert int(number) == index
            assert float(value) == pytest.approx(expected[index], abs=2e-5)
            assert label == labels[index].strip()
