# SPDX-License-Identifier: Apache-2.0
"""Python functions as models, asked by Triton's clients over HTTP and gRPC."""

import asyncio
import contextlib
import json
import pathlib
import queue
import runpy
import socket
import threading
import typing
import urllib.error
import urllib.request

import numpy as np
import numpy.typing as npt
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

import nereid
from nereid._functions import _serve


@nereid.model
def greet(name: str) -> str:
    return f"Hello, {name}!"


@nereid.model
def count(n: int) -> typing.Iterator[int]:
    yield from range(n)


@nereid.model
async def countdown(n: int) -> typing.AsyncIterator[int]:
    for i in range(n, 0, -1):
        await asyncio.sleep(0)
        yield i


class Gate:
    """Holds the first batch until the test has sent more requests."""

    def __init__(self):
        self.sizes, self.began, self.opened = [], threading.Event(), threading.Event()


gate = Gate()


@nereid.model(max_batch_size=16)
def double(x: (np.float32, (2,))) -> {"y": (np.float32, (2,))}:
    gate.sizes.append(len(x))
    gate.began.set()
    gate.opened.wait(60)
    return {"y": x * 2}


@nereid.model(outputs={"scores": nereid.TensorSpec(np.float32, (3,), labels=["ant", "bee", "cow"])})
def classify(x: int):
    return {"scores": np.eye(3)[x]}


@nereid.model
def refuse(code: int) -> int:
    raise [nereid.InvalidArgumentError, nereid.NotFoundError, nereid.UnavailableError, ValueError][code]("no, no")


@nereid.model
def large(n: int) -> npt.NDArray[np.float32]:
    return np.arange(n, dtype=np.float32)


@pytest.fixture(scope="module")
def server():
    functions = (greet, count, countdown, double, classify, refuse, large)
    with nereid.serve(*functions, block=False, http_port=0, grpc_port=0, metrics_port=0, log_error=False) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    if request.param == "http":
        module, port = httpclient, server.http_port
        made = httpclient.InferenceServerClient(f"127.0.0.1:{port}", concurrency=16)
    else:
        module, port = grpcclient, server.grpc_port
        made = grpcclient.InferenceServerClient(f"127.0.0.1:{port}")
    made.module = module
    yield made
    made.close()


def tensor(module, name, array):
    kind = {"f": "FP32", "i": "INT64", "O": "BYTES"}[array.dtype.kind]
    made = module.InferInput(name, array.shape, kind)
    made.set_data_from_numpy(array)
    return made


def test_a_client_is_answered(client):
    result = client.infer("greet", [tensor(client.module, "name", np.array(["Wörld".encode()], object))])
    assert result.as_numpy("output").tolist() == ["Hello, Wörld!".encode()]


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_000])
def test_results_of_any_size_arrive_whole(client, size):
    for _ in range(3):
        result = client.infer("large", [tensor(client.module, "n", np.array([size]))]).as_numpy("output")
        np.testing.assert_array_equal(result, np.arange(size, dtype=np.float32))


def test_the_models_labels_name_classes(client):
    wanted = client.module.InferRequestedOutput("scores", class_count=1)
    result = client.infer("classify", [tensor(client.module, "x", np.array([1]))], outputs=[wanted])
    assert result.as_numpy("scores").tolist() == [b"1.000000:1:bee"]


def test_requests_of_many_clients_share_batches(client, server):
    gate.__init__()
    results, errors = {}, []

    def ask(i):
        try:
            with httpclient.InferenceServerClient(client_address) as one:
                x = tensor(httpclient, "x", np.full((1, 2), i, np.float32))
                results[i] = one.infer("double", [x]).as_numpy("y")
        except Exception as error:
            errors.append(error)

    before = client_statistics(client)
    client_address = f"127.0.0.1:{server.http_port}"
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(9)]
    threads[0].start()
    gate.began.wait(60)
    for thread in threads[1:]:
        thread.start()
    while pending(server, "double") < 8:
        pass
    gate.opened.set()
    for thread in threads:
        thread.join()
    assert not errors
    for i in range(9):
        np.testing.assert_array_equal(results[i], np.full((1, 2), 2 * i))
    assert gate.sizes == [1, 8]
    after = client_statistics(client)
    assert (after[0] - before[0], after[1] - before[1]) == (9, 2)


def pending(server, model):
    """How many requests of the model wait, as the metrics page says."""
    for line in server.metrics().splitlines():
        if line.startswith("nv_inference_pending_request_count{") and f'model="{model}"' in line:
            return float(line.rsplit(" ", 1)[1])
    return 0


def client_statistics(client):
    if client.module is httpclient:
        one = client.get_inference_statistics("double")["model_stats"][0]
    else:
        one = client.get_inference_statistics("double", as_json=True)["model_stats"][0]
    # JSON made of protobuf leaves out zeros.
    return int(one.get("inference_count", 0)), int(one.get("execution_count", 0))


@pytest.mark.parametrize("code, status", [(0, 400), (1, 404), (2, 503), (3, 500)])
def test_an_exception_chooses_the_status_of_http(server, code, status):
    with pytest.raises(urllib.error.HTTPError) as caught:
        generate(server, "refuse/generate", {"code": code})
    assert caught.value.code == status
    text = json.loads(caught.value.read())["error"]
    assert text == ("no, no" if code < 3 else "model 'refuse': ValueError: no, no")


@pytest.mark.parametrize("code, status", enumerate(["INVALID_ARGUMENT", "NOT_FOUND", "UNAVAILABLE", "INTERNAL"]))
def test_an_exception_chooses_the_status_of_grpc(server, code, status):
    with grpcclient.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        with pytest.raises(InferenceServerException, match="no, no") as caught:
            client.infer("refuse", [tensor(grpcclient, "code", np.array([code]))])
    assert caught.value.status() == f"StatusCode.{status}"


def generate(server, path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.http_port}/v2/models/{path}", json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read().decode()


@pytest.mark.parametrize("model, values", [("count", [0, 1, 2]), ("countdown", [3, 2, 1])])
def test_generators_stream_over_http(server, model, values):
    events = generate(server, f"{model}/generate_stream", {"n": 3}).split("\n\n")
    assert [json.loads(event.removeprefix("data: "))["output"] for event in events if event] == values


@pytest.mark.parametrize("model, values", [("count", [0, 1, 2]), ("countdown", [3, 2, 1])])
def test_generators_stream_over_grpc(server, model, values):
    results = queue.Queue()
    with grpcclient.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        client.start_stream(lambda result, error: results.put((result, error)))
        client.async_stream_infer(
            model, [tensor(grpcclient, "n", np.array([3]))], enable_empty_final_response=True
        )
        got = []
        while True:
            result, error = results.get(timeout=60)
            assert error is None
            if result.get_response().parameters["triton_final_response"].bool_param:
                break
            got.append(int(result.as_numpy("output")[0]))
        client.stop_stream()
    assert got == values


def test_the_first_example_of_the_documentation_works(server):
    assert json.loads(generate(server, "greet/generate", {"name": "World"})) == {
        "model_name": "greet",
        "model_version": "1",
        "output": "Hello, World!",
    }


EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "functions"


def test_the_examples_work():
    examples = {path.stem: runpy.run_path(str(path)) for path in EXAMPLES.glob("*.py")}
    say, classifier, hello = examples["stream"]["say"], examples["classifier"]["Classifier"], examples["greet"]["greet"]
    with nereid.serve(say, classifier, hello, block=False, http_port=0, grpc_port=None, metrics_port=None) as server:
        assert server.infer(hello, name="you") == "Hello, you!"
        assert list(server.stream(say, text="one two", delay_s=0.0)) == ["one", "two"]
        scores = server.infer(classifier, x=[[5.1, 3.5, 1.4, 0.2], [6.5, 3.0, 5.5, 2.0]])["scores"]
        assert scores.argmax(axis=1).tolist() == [0, 2]


def test_clients_do_not_load_models_unless_the_server_lets_them(server):
    with httpclient.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        with pytest.raises(InferenceServerException, match="restricted"):
            client.load_model("greet")
    settings = {"http_port": 0, "grpc_port": None, "metrics_port": None}
    with nereid.serve(greet, block=False, model_control=True, **settings) as other:
        with httpclient.InferenceServerClient(f"127.0.0.1:{other.http_port}") as client:
            client.unload_model("greet")
            assert not other.model("greet").ready() or client.get_model_repository_index()


def test_metrics_are_served(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=60) as page:
        assert 'nv_inference_count{model="greet"' in page.read().decode()


def test_a_port_that_is_taken_is_said_and_leaves_nothing_running(server):
    with pytest.raises(nereid.TritonError, match=f"{server.http_port}"):
        nereid.serve(greet, block=False, http_port=server.http_port, grpc_port=0, metrics_port=0)


@pytest.mark.parametrize("setting", [{"http_prot": 1}, {"model_store": "x"}, {"http_thread_count": "many"}])
def test_a_wrong_setting_is_explained(setting):
    with pytest.raises(nereid.InvalidArgumentError, match=next(iter(setting)).replace("_", "-")):
        nereid.serve(greet, block=False, http_port=0, grpc_port=0, metrics_port=0, **setting)


def test_a_connection_open_at_the_end_does_not_hold_up_the_stop():
    with nereid.serve(greet, block=False, http_port=0, grpc_port=0, metrics_port=0, exit_timeout=60) as server:
        client = httpclient.InferenceServerClient(f"127.0.0.1:{server.http_port}")
        assert client.is_server_ready()
    client.close()


def test_usual_ports_that_are_taken_are_replaced_by_the_next_free_ones(monkeypatch, capfd):
    with contextlib.ExitStack() as held:
        taken = []
        for _ in range(3):
            one = held.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            one.listen()
            taken.append(one.getsockname()[1])
        usual = {name: _serve._Usual(port) for name, port in zip(("http_port", "grpc_port", "metrics_port"), taken)}
        monkeypatch.setattr(nereid.serve, "__kwdefaults__", {**nereid.serve.__kwdefaults__, **usual})
        with nereid.serve(greet, block=False) as server:
            assert server.http_port not in taken
            assert server.infer(greet, name="World") == "Hello, World!"
            said = capfd.readouterr().err
            assert f"port {taken[0]} is taken by another program: HTTP is on port {server.http_port}" in said
        with pytest.raises(nereid.UnavailableError):
            nereid.serve(greet, block=False, http_port=taken[0], grpc_port=None, metrics_port=None)
