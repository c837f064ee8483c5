# SPDX-License-Identifier: Apache-2.0
"""Large requests are received into the memory of the worker that will run them, where it can be: what
it holds stays right, and is given back, whatever becomes of the clients, the worker and the model."""

import json
import queue
import socket
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

# Answers whether the input lies where requests are received, its sum, and its first element.
LOOKS = """
from nereid_python.session import session

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()
            offset = value.ctypes.data - session.memory.address
            is_received = session.memory.size // 4 <= offset < session.memory.size // 2
            if value[0] == -1:
                open(os.path.join(os.path.dirname(__file__), "busy"), "w").close()
                time.sleep(3600)
            out = np.array([is_received, value.sum(dtype=np.float64), value[0]], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", out)]))
        return responses
"""

# Keeps what it gets, and answers whether all of it is still what it was.
KEEPS = """
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []

    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()
            self.kept.append((value, float(value[0])))
            right = all((kept == first).all() for kept, first in self.kept)
            self.kept = self.kept[-5:]
            out = np.array([right], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", out)]))
        return responses
"""

LARGE = 1 << 18  # elements
LIMIT = 256 << 20  # bytes that one worker lends


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def tensor_of(module, value, name="INPUT0", datatype="FP32"):
    tensor = module.InferInput(name, list(value.shape), datatype)
    tensor.set_data_from_numpy(value)
    return tensor


def ask(client, value, model="looks", module=httpclient):
    return client.infer(model, [tensor_of(module, value)]).as_numpy("OUTPUT0")


def head_of(size, model="looks"):
    """The head of a request with one tensor of `size` bytes, and its JSON."""
    described = {"inputs": [{"name": "INPUT0", "shape": [size // 4], "datatype": "FP32",
                             "parameters": {"binary_data_size": size}}],
                 "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": False}}]}
    text = json.dumps(described).encode()
    return (f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: h\r\n"
            f"Inference-Header-Content-Length: {len(text)}\r\n"
            f"Content-Length: {len(text) + size}\r\n\r\n").encode() + text


def connect(server):
    return socket.create_connection(("127.0.0.1", server.http_port), 30)


def pending(server):
    return server.scrape().get(("nv_inference_pending_request_count", "looks"), 0)


def answer_of(connection):
    """Status and JSON of the next answer."""
    with connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        length = 0
        while (line := file.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, json.loads(file.read(length))


def test_large_requests_arrive_where_the_model_reads_them(start_server, folder):
    python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder)
    value = np.arange(LARGE, dtype=np.float32) % 100
    with httpclient.InferenceServerClient(server.http) as client:
        for k in range(20):
            value[0] = k
            assert ask(client, value).tolist() == [1, value.sum(dtype=np.float64), k]
        # Whatever is small, compressed or JSON is copied, as before.
        assert ask(client, np.ones(16, np.float32)).tolist() == [0, 16, 1]
        tensor = tensor_of(httpclient, value)
        result = client.infer("looks", [tensor], request_compression_algorithm="gzip")
        assert result.as_numpy("OUTPUT0")[0] == 0
        tensor = httpclient.InferInput("INPUT0", [LARGE], "FP32")
        tensor.set_data_from_numpy(value, binary_data=False)
        assert client.infer("looks", [tensor]).as_numpy("OUTPUT0").tolist()[0] == 0
    with grpcclient.InferenceServerClient(server.grpc) as client:
        assert ask(client, value, module=grpcclient)[1:].tolist() == [value.sum(dtype=np.float64), 19]


def test_a_tensor_that_came_without_json_is_received_there_too(start_server, folder):
    python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder)
    value = np.full(LARGE, 2, np.float32)
    with connect(server) as connection:
        connection.sendall(b"POST /v2/models/looks/infer HTTP/1.1\r\nHost: h\r\n"
                           b"Inference-Header-Content-Length: 0\r\n"
                           b"Content-Length: %d\r\n\r\n" % value.nbytes + value.tobytes())
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1 << 16)
    assert head.startswith(b"HTTP/1.1 200")


def test_outputs_made_of_what_was_received_are_right(start_server, folder):
    python_models.write(folder, "same", python_models.IDENTITY)
    server = python_models.start(start_server, folder)
    wrong = queue.Queue()

    def run(seed):
        random = np.random.default_rng(seed)
        with httpclient.InferenceServerClient(server.http) as client:
            for _ in range(15):
                value = random.random(int(random.integers(1, LARGE)), np.float32)
                if not np.array_equal(ask(client, value, "same"), value):
                    wrong.put(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong.empty()


def test_what_a_model_keeps_stays_as_it_was(start_server, folder):
    python_models.write(folder, "keeps", KEEPS)
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http) as client:
        for k in range(30):
            assert ask(client, np.full(LARGE, k, np.float32), "keeps")[0] == 1


def test_several_inputs_whatever_their_places(start_server, folder):
    config = ("input [ " + models.tensor_config("A", "BOOL", [-1]) + ", "
              + models.tensor_config("B", "FP32", [-1]) + ", "
              + models.tensor_config("C", "FP32", [-1]) + " ]\n"
              "output [ " + models.tensor_config("OUTPUT0", "FP32", [-1]) + " ]\n")
    python_models.write(folder, "sums", """
        class TritonPythonModel:
            def execute(self, requests):
                responses = []
                for request in requests:
                    arrays = [pb_utils.get_input_tensor_by_name(request, n).as_numpy() for n in "ABC"]
                    assert all(array.flags.aligned and array.ctypes.data % array.itemsize == 0
                               for array in arrays)
                    out = np.array([array.sum(dtype=np.float64) for array in arrays], np.float32)
                    responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", out)]))
                return responses
        """, config=config)
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http) as client:
        for sizes in ((LARGE, LARGE, 0), (LARGE + 1, LARGE, 5), (4, 3, LARGE), (0, 0, LARGE)):
            values = [np.ones(size, kind) for size, kind in zip(sizes, (bool, np.float32, np.float32))]
            inputs = [tensor_of(httpclient, value, name, kind)
                      for value, name, kind in zip(values, "ABC", ("BOOL", "FP32", "FP32"))]
            for order in (inputs, inputs[::-1]):
                assert client.infer("sums", order).as_numpy("OUTPUT0").tolist() == list(sizes)


def test_requests_in_the_memory_of_a_worker_that_dies_are_answered_by_the_next(start_server, folder):
    model = python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder)
    answers = queue.Queue()

    def run(first):
        value = np.full(LARGE, 1, np.float32)
        value[0] = first
        with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
            try:
                answers.put((first, ask(client, value).tolist()))
            except InferenceServerException as error:
                answers.put((first, str(error)))

    (worker,) = python_models.workers(server)
    threads = [threading.Thread(target=run, args=(-1,))]
    threads[0].start()
    servers.wait_until(lambda: (model / "1" / "busy").exists(), "the model to be busy")
    threads += [threading.Thread(target=run, args=(first,)) for first in range(2, 6)]
    for thread in threads[1:]:
        thread.start()

    # Half of a request that is still being received when the worker dies.
    with connect(server) as connection:
        rest = np.full(LARGE, 1, np.float32).tobytes()
        connection.sendall(head_of(len(rest)) + rest[: len(rest) // 2])
        servers.wait_until(lambda: pending(server) == 4, "the others to wait")
        worker.kill()
        for thread in threads:
            thread.join()
        connection.sendall(rest[len(rest) // 2 :])
        status, answer = answer_of(connection)
        assert status == 200 and answer["outputs"][0]["data"][1] == LARGE
    got = dict(answers.get() for _ in threads)
    assert "signal 9" in got.pop(-1)
    for first, values in got.items():
        assert values[1:] == [LARGE - 1 + first, first], values
    with httpclient.InferenceServerClient(server.http) as client:
        assert ask(client, np.ones(LARGE, np.float32))[0] == 1


def test_clients_that_stop_in_the_middle_hold_little_and_give_it_back(start_server, folder):
    python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder)
    size = LIMIT // 4 - (1 << 20)
    stopped = []
    value = np.ones(LARGE, np.float32)
    with httpclient.InferenceServerClient(server.http) as client:
        for _ in range(6):
            connection = connect(server)
            connection.sendall(head_of(size) + bytes(1 << 16))
            stopped.append(connection)
        # No more is lent: what comes now is copied.
        servers.wait_until(lambda: ask(client, value)[0] == 0, "all to be lent")
        assert ask(client, value).tolist() == [0, LARGE, 1]
        for connection in stopped:
            connection.close()
        servers.wait_until(lambda: ask(client, value)[0] == 1, "the memory to be given back")
        # Many that hang up do no harm either.
        for _ in range(40):
            with connect(server) as connection:
                connection.sendall(head_of(size) + bytes(100000))
        servers.wait_until(lambda: ask(client, value)[0] == 1, "the memory to be given back")
    assert servers.is_sanitized() or server.resident_bytes() < 200 << 20


def test_a_body_that_is_too_large_is_refused_as_ever(start_server, folder):
    python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder)
    with connect(server) as connection:
        connection.sendall(head_of(1 << 33))
        status, answer = answer_of(connection)
        assert status == 400 and "exceeds the maximum allowed input size" in answer["error"]
    # Larger than what is lent for one request.
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        value = np.ones((LIMIT + (1 << 20)) // 4, np.float32)
        assert ask(client, value).tolist() == [0, value.size, 1]


def test_a_request_that_is_wrong_gives_its_memory_back(start_server, folder):
    python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder)
    with httpclient.InferenceServerClient(server.http) as client:
        for _ in range(LIMIT // (16 << 20) + 5):
            with pytest.raises(InferenceServerException):
                client.infer("looks", [tensor_of(httpclient, np.ones(4 << 20, np.float32), "WRONG")])
        assert ask(client, np.ones(LARGE, np.float32))[0] == 1


def test_a_model_that_is_unloaded_while_a_request_arrives(start_server, folder):
    python_models.write(folder, "looks", LOOKS)
    server = python_models.start(start_server, folder, "--model-control-mode=explicit", "--load-model=looks")
    body = np.ones(LARGE, np.float32).tobytes()
    with httpclient.InferenceServerClient(server.http) as client, connect(server) as connection:
        connection.sendall(head_of(len(body)) + body[: len(body) // 2])
        assert ask(client, np.ones(LARGE, np.float32))[1] == LARGE
        client.unload_model("looks")
        servers.wait_until(lambda: not python_models.workers(server), "the worker to end")
        connection.sendall(body[len(body) // 2 :])
        status, answer = answer_of(connection)
        assert status == 404 and "looks" in answer["error"]
        client.load_model("looks")
        # Begun with one version, run by another.
        connection.sendall(head_of(len(body)) + body[: len(body) // 2])
        assert ask(client, np.ones(LARGE, np.float32))[1] == LARGE
        client.unload_model("looks")
        client.load_model("looks")
        connection.sendall(body[len(body) // 2 :])
        status, answer = answer_of(connection)
        assert status == 200 and answer["outputs"][0]["data"][1] == LARGE
