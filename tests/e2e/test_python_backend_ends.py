# SPDX-License-Identifier: Apache-2.0
"""Workers of the Python backend that die while their model is unloaded, loaded anew, or its server
stops: nothing waits for ever, and nothing is left."""

import signal
import threading
import time

import numpy as np
import psutil
import pytest
import tritonclient.http as httpclient
from harness import python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")

# Its first start is quick. Each of the others says that it began, and goes on when it may.
SLOW_TO_COME_BACK = """
class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.dirname(__file__)
        if os.path.exists(os.path.join(folder, "first")):
            open(os.path.join(folder, "begun"), "w").close()
            while not os.path.exists(os.path.join(folder, "go")):
                time.sleep(0.01)
        open(os.path.join(folder, "first"), "w").close()
""" + python_models.IDENTITY.split(":\n", 1)[1]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def state_of(client, model):
    return {e["name"]: e.get("state", "") for e in client.get_model_repository_index()}[model]


def infer(client, model):
    tensor = httpclient.InferInput("INPUT0", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32))
    return client.infer(model, [tensor]).as_numpy("OUTPUT0")[0]


def start(start_server, folder, *args):
    return python_models.start(start_server, folder, *EXPLICIT, *args)


@pytest.mark.parametrize("may_finish", [True, False], ids=["ends", "hangs"])
def test_an_unload_ends_while_the_next_worker_starts(start_server, folder, may_finish):
    model = python_models.write(folder, "slow", SLOW_TO_COME_BACK) / "1"
    server = start(start_server, folder)
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for _ in range(3):
            (worker,) = python_models.workers(server)
            worker.kill()
            servers.wait_until((model / "begun").exists, "the next worker to start")
            client.unload_model("slow")
            if may_finish:
                (model / "go").touch()
            servers.wait_until(lambda: state_of(client, "slow") == "UNAVAILABLE", "the unload to end")
            servers.wait_until(lambda: python_models.workers(server) == [], "its workers to end")
            for name in ("first", "begun", "go"):
                (model / name).unlink(missing_ok=True)
            client.load_model("slow")
            assert infer(client, "slow") == 1


def test_a_worker_killed_before_an_unload_a_load_or_the_end(start_server, folder):
    python_models.write(folder, "m", python_models.IDENTITY)
    server = start(start_server, folder)
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for pause in (0.5, 0, 0.05, 0.1, 0.2, 0.4):  # where the next one is by then varies
            (worker,) = python_models.workers(server)
            worker.kill()
            time.sleep(pause)
            client.unload_model("m")
            servers.wait_until(lambda: state_of(client, "m") == "UNAVAILABLE", "the unload to end")
            client.load_model("m")
            assert infer(client, "m") == 1
            (worker,) = python_models.workers(server)
            worker.kill()
            time.sleep(pause)
            (folder / "m" / "config.pbtxt").touch()
            (folder / "m" / "1" / "model.py").touch()
            client.load_model("m")
            assert infer(client, "m") == 1
            servers.wait_until(lambda: len(python_models.workers(server)) == 1, "the old one to end")
        (worker,) = python_models.workers(server)
        worker.kill()
        time.sleep(0.5)
    server.stop()
    assert not worker.is_running()


def test_workers_that_died_are_counted(start_server, folder):
    for name in ("m", "well"):
        python_models.write(folder, name, python_models.IDENTITY)
    server = start(start_server, folder)

    def deaths(model):
        return server.scrape()[("nereid_model_process_deaths_total", model)]

    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        assert (deaths("m"), deaths("well")) == (0, 0)
        for count in (1, 2):
            for worker in python_models.workers(server):
                worker.kill()
            servers.wait_until(lambda n=count: (deaths("m"), deaths("well")) == (n, n), "the deaths to be counted")
            assert infer(client, "m") == infer(client, "well") == 1
        # An end that was asked for is none.
        client.unload_model("well")
        servers.wait_until(lambda: len(python_models.workers(server)) == 1, "the worker to end")
        assert deaths("m") == 2


def test_a_server_ends_while_the_next_worker_hangs_in_its_start(start_server, folder):
    model = python_models.write(folder, "slow", SLOW_TO_COME_BACK) / "1"
    server = start(start_server, folder)
    (worker,) = python_models.workers(server)
    worker.kill()
    servers.wait_until((model / "begun").exists, "the next worker to start")
    (successor,) = python_models.workers(server)
    server.stop()
    assert not successor.is_running()


def test_workers_may_be_killed_and_models_unloaded_all_the_time(start_server, folder):
    for name in ("one", "two"):
        python_models.write(folder, name, python_models.IDENTITY)
    server = start(start_server, folder)
    is_over = threading.Event()
    answered = []

    def ask(model):
        with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
            while not is_over.is_set():
                try:
                    answered.append(infer(client, model))
                except InferenceServerException as error:
                    # Whatever is refused says why.
                    assert error.message()

    threads = [threading.Thread(target=ask, args=(m,)) for m in ("one", "two") for _ in range(2)]
    for thread in threads:
        thread.start()
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for round_number in range(12):
            for worker in python_models.workers(server):
                try:
                    worker.send_signal(signal.SIGKILL)
                except psutil.NoSuchProcess:
                    pass
            model = ("one", "two")[round_number % 2]
            client.unload_model(model)
            client.load_model(model)
        is_over.set()
        for thread in threads:
            thread.join()
        assert all(value == 1 for value in answered)
        for model in ("one", "two"):
            servers.wait_until(lambda: client.is_model_ready(model), f"{model} to be ready")
            assert infer(client, model) == 1
    server.stop()
