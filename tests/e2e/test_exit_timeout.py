# SPDX-License-Identifier: Apache-2.0
"""--exit-timeout-secs bounds the end of the process, whatever it is at, and nothing is left of it."""

import base64
import json
import signal
import threading

import numpy as np
import psutil
import pytest
import requests
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers

pytestmark = pytest.mark.newer

ARGS = ["--exit-timeout-secs=2", "--model-control-mode=explicit"]
# Far more than the timeout, and far less than any of what the server is at would take.
PATIENCE = 30

STUCK = """
class TritonPythonModel:
    def execute(self, requests):
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        open(os.environ["MARK"], "w").write(str(child.pid))
        time.sleep(3600)
"""

SLOW_START = """
class TritonPythonModel:
    def initialize(self, args):
        open(os.environ["MARK"], "w").write("0")
        time.sleep(300)
"""

SLOW_END = python_models.IDENTITY + """
    def finalize(self):
        open(os.environ["MARK"], "w").write("0")
        time.sleep(300)
"""

LONG_WARM_UP = """parameters { key: "execute_delay_ms" value: { string_value: "50" } }
model_warmup [ { name: "long" batch_size: 1 count: 100000
                 inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } } ]
"""


class Place:
    """A repository, and a folder for everything temporary, where the server leaves its traces."""

    def __init__(self, folder):
        self.repository = folder / "models"
        self.repository.mkdir()
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.mark = folder / "mark"

    def start(self, start_server, *args, **options):
        env = {**python_models.ENVIRONMENT, "TMPDIR": str(self.temporary), "MARK": str(self.mark)}
        return start_server(self.repository, args=[*ARGS, *args], env=env, **options)

    def marked(self):
        """The number that the model wrote when it got to where it stays."""
        text = servers.wait_until(lambda: self.mark.exists() and self.mark.read_text(), "the model to be at it")
        return int(text)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def in_background(call, *args, **kwargs):
    def run():
        try:
            call(*args, **kwargs)
        except Exception:  # the server ends meanwhile, which is the point
            pass

    threading.Thread(target=run, daemon=True).start()


def load(server, name, body=None):
    return requests.post(f"http://{server.http}/v2/repository/models/{name}/load", json=body or {}, timeout=300)


def unload(server, name):
    return requests.post(f"http://{server.http}/v2/repository/models/{name}/unload", json={}, timeout=300)


def infer(server, name):
    client = httpclient.InferenceServerClient(server.http, network_timeout=300)
    tensor = httpclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.zeros(2, np.float32))
    client.infer(name, [tensor])


def assert_it_ends(place, server, *whys):
    """The process ends with status 1, says what it did not wait for, and leaves nothing."""
    family = psutil.Process(server.pid).children(recursive=True)
    server.signal()
    assert server.wait(timeout=PATIENCE) == 1
    for why in ("--exit-timeout-secs", *whys):
        assert why in server.tail()
    servers.wait_until(lambda: not psutil.wait_procs(family, timeout=0)[1], "every worker to be gone")
    servers.wait_until(lambda: not list(place.temporary.iterdir()), "the temporary files to be gone")


def test_an_execution_that_does_not_return(place, start_server):
    python_models.write(place.repository, "stuck", STUCK)
    server = place.start(start_server, "--load-model=stuck")
    in_background(infer, server, "stuck")
    child = psutil.Process(place.marked())
    assert_it_ends(place, server, "Model 'stuck' (version 1) has 1 in-flight inferences")
    servers.wait_until(lambda: not child.is_running(), "what the model started to be gone")


def test_a_load_in_progress(place, start_server):
    python_models.write(place.repository, "slow", SLOW_START)
    server = place.start(start_server)
    in_background(load, server, "slow")
    place.marked()
    assert_it_ends(place, server, "Model 'slow' is being loaded")


def test_a_load_with_files_in_progress_leaves_no_folder(place, start_server):
    server = place.start(start_server)
    code = (python_models.HEAD + SLOW_START).encode()
    config = {"backend": "python", "max_batch_size": 0,
              "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
              "instance_group": [{"kind": "KIND_CPU"}]}
    body = {"parameters": {"config": json.dumps(config), "file:1/model.py": base64.b64encode(code).decode()}}
    in_background(load, server, "sent", body)
    place.marked()
    assert list(place.temporary.iterdir()) != []
    assert_it_ends(place, server, "Model 'sent' is being loaded")


def test_a_start_in_progress(place, start_server):
    python_models.write(place.repository, "slow", SLOW_START)
    server = place.start(start_server, "--load-model=slow", wait=False)
    place.marked()
    assert_it_ends(place, server, "Model 'slow' is being loaded")


def test_an_unload_in_progress(place, start_server):
    python_models.write(place.repository, "slow", SLOW_END)
    server = place.start(start_server, "--load-model=slow")
    in_background(unload, server, "slow")
    place.marked()
    assert_it_ends(place, server, "Model 'slow' (version 1) is being unloaded")


def test_a_long_warm_up_is_given_up_at_once(place, start_server):
    models.write_model(place.repository, "warm", models.identity_config("FP32", [2], 1, 4, LONG_WARM_UP))
    server = place.start(start_server, "--load-model=warm", "--log-verbose=1", "--exit-timeout-secs=3600",
                         wait=False)
    server.wait_for_log("is running warmup sample 'long'")
    server.signal()
    assert server.wait(timeout=PATIENCE) == 0


def test_a_second_signal_while_models_load_ends_it_at_once(place, start_server):
    python_models.write(place.repository, "slow", SLOW_START)
    server = place.start(start_server, "--load-model=slow", "--exit-timeout-secs=3600", wait=False)
    place.marked()
    server.signal()
    server.wait_for_log("Waiting for in-flight requests to complete.")
    server.signal()
    assert server.wait(timeout=PATIENCE) == -signal.SIGTERM


def test_models_that_nobody_uses_are_unloaded_in_order_beside_one_that_is_stuck(place, start_server):
    python_models.write(place.repository, "stuck", STUCK)
    models.write_model(place.repository, "idle", models.identity_config("FP32", [2], 1, 4))
    server = place.start(start_server, "--load-model=stuck", "--load-model=idle", "--exit-timeout-secs=10")
    in_background(infer, server, "stuck")
    place.marked()
    server.signal()
    assert server.wait(timeout=PATIENCE) == 1
    server.wait_for_log("successfully unloaded 'idle' version 1")
    assert "Model 'idle'" not in server.tail(2)
