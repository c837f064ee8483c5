# SPDX-License-Identifier: Apache-2.0
"""PyTorch models that are Python code (backend "pytorch", runtime "model.py").

With NEREID_TORCH_PYTHON, an interpreter that can import torch, the tests run with the real PyTorch, too. Without it
a stand-in on numpy plays its part: what is tested is how a repository is read and requests are served.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from harness import clients, models, python_models
from harness import server as servers

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(not servers.has_backend("python"), reason="the build has no Python backend"),
]
REAL = os.environ.get("NEREID_TORCH_PYTHON", "")
STAND_IN = str(pathlib.Path(__file__).resolve().parents[1] / "harness" / "stand_in_torch")

ADD = """
import torch
from torch.nn import Identity

class Add(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, y):
        return x * self.weight + y, x - y
"""
NAMED = """
import torch

class Named(torch.nn.Module):
    def forward(self, x, y):
        return {"difference": x - y, "sum": x + y}
"""
THREADS = """
import torch

class Threads(torch.nn.Module):
    def forward(self, x, y):
        return x * 0 + torch.get_num_threads(), y * 0 + torch.get_num_interop_threads()
"""
FAILS = """
import torch

class Fails(torch.nn.Module):
    def forward(self, x, y):
        if float(x.max()) > 100:
            raise ValueError("only small numbers")
        return x, y
"""


def parameter(key, value):
    value = value.replace('"', '\\"')
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


EAGER = parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", '{"disable": true}')


def config(extra="", max_batch_size=0):
    def tensors(*names):
        return ", ".join(models.tensor_config(name, "FP32", [2]) for name in names)

    return (f'backend: "pytorch"\nruntime: "model.py"\nmax_batch_size: {max_batch_size}\n'
            f"input [ {tensors('x', 'y')} ]\noutput [ {tensors('sum', 'difference')} ]\n{extra}")


@pytest.fixture(scope="module", params=["stand-in", "real"])
def torch_environment(request):
    """The variables of a server whose models find torch."""
    if request.param == "stand-in":
        path = STAND_IN + os.pathsep + os.environ.get("PYTHONPATH", "")
        return {**python_models.ENVIRONMENT, "PYTHONPATH": path.rstrip(os.pathsep), "TORCH_PYTHON": sys.executable}
    if not REAL:
        pytest.skip("needs PyTorch for Python: NEREID_TORCH_PYTHON=/path/to/its/python3")
    return {"PATH": os.path.dirname(REAL) + os.pathsep + os.environ.get("PATH", ""), "TORCH_PYTHON": REAL}


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory, torch_environment):
    repository = tmp_path_factory.mktemp("models")

    def add(name, code, text):
        return models.write_model(repository, name, text, {"1": {"model.py": code.encode()}})

    add("add", ADD, config(EAGER))
    add("batched", ADD, config(EAGER + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n", max_batch_size=8))
    add("named", NAMED, config(EAGER))
    add("one_thread", THREADS, config(EAGER))
    add("threads", THREADS, config(EAGER + parameter("NUM_THREADS", "3") + parameter("NUM_INTEROP_THREADS", "2")))
    add("plain", ADD, config(parameter("DISABLE_OPTIMIZED_EXECUTION", "true") + parameter("INFERENCE_MODE", "false")))
    add("fails", FAILS, config(EAGER))
    weighted = add("weighted", ADD, config(EAGER))
    code = f"import torch; torch.save({{'weight': torch.full((1,), 3.0)}}, {str(weighted / '1' / 'model.pt')!r})"
    subprocess.run([torch_environment["TORCH_PYTHON"], "-c", code], check=True, env={**os.environ, **torch_environment})
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server"), env=torch_environment, timeout=300) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


def ask(client, model, x, y):
    x, y = np.array(x, np.float32), np.array(y, np.float32)
    result = client.infer(model, [client.input("x", x, "FP32"), client.input("y", y, "FP32")])
    return result.as_numpy("sum").tolist(), result.as_numpy("difference").tolist()


@pytest.mark.parametrize("model", ["add", "named", "plain"])
def test_a_module_serves_its_forward_by_order_or_by_key(client, model):
    assert ask(client, model, [5, 6], [1, 2]) == ([6, 8], [4, 4])


def test_parameters_are_read_from_the_file_beside_the_code(client):
    assert ask(client, "weighted", [5, 6], [1, 2]) == ([16, 20], [4, 4])


def test_threads_are_one_unless_the_configuration_says_otherwise(client):
    assert ask(client, "one_thread", [0, 0], [0, 0]) == ([1, 1], [1, 1])
    assert ask(client, "threads", [0, 0], [0, 0]) == ([3, 3], [2, 2])


def test_requests_of_a_batch_get_their_own_rows(server):
    def one(number):
        client = clients.Client("grpc", server)
        rows = 1 + number % 3
        result = ask(client, "batched", [[number, 1]] * rows, [[1, number]] * rows)
        client.close()
        return result == ([[number + 1, number + 1]] * rows, [[number - 1, 1 - number]] * rows)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(one, range(30)))


def test_what_the_model_raises_is_the_error_of_the_request(client):
    with pytest.raises(InferenceServerException, match="only small numbers"):
        ask(client, "fails", [500, 0], [0, 0])
    assert ask(client, "fails", [5, 0], [1, 0]) == ([5, 0], [1, 0])


def test_a_repository_that_cannot_work_is_refused_with_the_reason(start_server, empty_repository, torch_environment):
    nothing = b"import torch\nfrom torch.nn import Identity\nclass Net:\n    pass\n"
    wrong = {
        "no_class": (config(), {"model.py": nothing}, "Cannot find a subclass of torch.nn.Module in model.py"),
        "no_file": (config(), {"net.py": ADD.encode()}, "there is none of model.py, model.pt, but net.py"),
        "no_number": (config(parameter("NUM_THREADS", "many")), {"model.py": ADD.encode()}, "'NUM_THREADS' is 'many'"),
        "no_json": (config(parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", "{")), {"model.py": ADD.encode()}, "is not JSON"),
        "model": (config(parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", '{"model": 1}')), {"model.py": ADD.encode()},
                  "'model' is not an optional parameter for 'torch.compile'"),
        "script": (config(), {"model.pt": b"PK"}, "PytorchStreamReader failed"),
    }
    for name, (text, files, _) in wrong.items():
        models.write_model(empty_repository, name, text, {"1": files})
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"],
                          env=torch_environment, timeout=300)
    client = clients.Client("http", server)
    index = {m["name"]: m for m in client.get_model_repository_index()}
    client.close()
    for name, (_, _, text) in wrong.items():
        assert text in index[name]["reason"], index[name]


def test_without_torch_the_error_says_what_to_install(start_server, empty_repository):
    models.write_model(empty_repository, "m", config(), {"1": {"model.py": ADD.encode()}})
    server = start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"],
                          env=python_models.ENVIRONMENT)
    client = clients.Client("http", server)
    (model,) = client.get_model_repository_index()
    client.close()
    assert "need PyTorch in the environment that runs them (pip install torch" in model["reason"]


def test_a_model_that_cannot_be_compiled_runs_without(start_server, empty_repository):
    broken = parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", '{"backend": "broken"}')
    models.write_model(empty_repository, "m", config(broken), {"1": {"model.py": ADD.encode()}})
    server = start_server(empty_repository, env={**python_models.ENVIRONMENT, "PYTHONPATH": STAND_IN})
    client = clients.Client("http", server)
    assert ask(client, "m", [5, 6], [1, 2]) == ([6, 8], [4, 4])
    client.close()
    server.wait_for_log("runs without torch.compile: no working C++ compiler found")
