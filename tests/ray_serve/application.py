# SPDX-License-Identifier: Apache-2.0
"""Runs under the Python that has Ray: a cluster on this machine with applications of nereid.ray, for as long as the
standard input is open. Each line there is a command, in JSON; each line of the standard output is what it returned.

usage: application.py PORT FOLDER
"""

import json
import pathlib
import sys
import threading
import time
import traceback

import nereid.ray  # isort: skip  # before Ray, which would send statistics of its use otherwise

import models_of_tests
import numpy as np
import ray
from ray import serve
from ray._common.usage import usage_lib

REPLICA = {
    "ray_actor_options": {"num_cpus": 0.1},
    "health_check_period_s": 0.5,
    "graceful_shutdown_wait_loop_s": 0.1,
    "logging_config": {"log_level": "ERROR", "enable_access_log": False},
}
# What scaling.py says, at once.
SCALED = {
    "autoscaling_config": {
        "min_replicas": 1,
        "max_replicas": 3,
        "upscale_delay_s": 0,
        "downscale_delay_s": 0,
        "metrics_interval_s": 0.1,
        "policy": {"policy_function": "scaling:wanted"},
    }
}
# Applications by name. "cases" is at the root, the others each at the path of that name.
APPLICATIONS = {
    "main": lambda folder: {"models": (folder / "models", folder / "digits.onnx", *models_of_tests.ALL), **SCALED},
    "load": lambda folder: {"models": (models_of_tests.number, models_of_tests.Sum), **SCALED},
    "cases": lambda folder: {"models": (folder / "shared",), "num_replicas": 2},
    "many": lambda folder: {"models": (folder / "many",), "max_models_per_replica": 2, "num_replicas": 1},
    "scenarios": lambda folder: {"models": (folder / "scenarios", models_of_tests.metrics_page), "num_replicas": 1},
}


def run(name, folder):
    options = APPLICATIONS[name](folder)
    models = options.pop("models")
    serve.run(nereid.ray.app(*models, **options, **REPLICA), name=name, route_prefix="/" if name == "cases" else f"/{name}")


def texts(values):
    """The same, with bytes as texts: JSON has no bytes."""
    if isinstance(values, list):
        return [texts(value) for value in values]
    return values.decode() if isinstance(values, bytes) else values


class Commands:
    """What the tests can ask for; the names are those in the commands."""

    def __init__(self, folder):
        self.folder = folder
        self.handles = {}

    def handle(self, app):
        if app not in self.handles:
            self.handles[app] = serve.get_app_handle(app)
        return self.handles[app]

    def infer(self, app, inputs, model=None, multiplexed=None, **fields):
        handle = self.handle(app).options(multiplexed_model_id=multiplexed) if multiplexed else self.handle(app)
        made = {name: np.array(values, dtype) for name, (dtype, values) in inputs.items()}
        try:
            outputs = handle.infer.remote(made, model=model, **fields).result(timeout_s=60)
        except nereid.TritonError as error:
            return {"raised": [kind.__name__ for kind in type(error).__mro__], "text": str(error)}
        return {name: [type(array).__name__, array.dtype.name, texts(array.tolist())] for name, array in outputs.items()}

    def stream(self, app, inputs, model):
        made = {name: np.array(values, dtype) for name, (dtype, values) in inputs.items()}
        responses = self.handle(app).options(stream=True).stream.remote(made, model=model)
        return [{name: array.tolist() for name, array in response.items()} for response in responses]

    def leave(self, app, inputs, model, streams):
        """Begins to read responses, and cancels: after the first one of a stream, or in the middle of `infer`, once the
        file `begun` is there."""
        made = {name: np.array(values, dtype) for name, (dtype, values) in inputs.items()}
        if streams:
            responses = self.handle(app).options(stream=True).stream.remote(made, model=model)
            next(responses)
        else:
            responses = self.handle(app).infer.remote(made, model=model)
            begun = pathlib.Path(inputs["begun"][1][0])
            deadline = time.monotonic() + 30
            while not begun.exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
        responses.cancel()

    def models(self, app):
        return self.handle(app).models.remote().result(timeout_s=60)

    def run(self, app):
        run(app, self.folder)

    def delete(self, app):
        """Begins to end an application."""
        threading.Thread(target=serve.delete, args=(app,), daemon=True).start()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = serve.status().applications.get(app)
            if status is None or status.status == "DELETING":
                return
            time.sleep(0.02)
        raise AssertionError(f"the application is {status.status}")

    def reports_its_use(self):
        return usage_lib.usage_stats_enabled()


def main():
    port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    answers = sys.stdout
    sys.stdout = sys.stderr
    # Sockets need short paths.
    ray.init(num_cpus=4, include_dashboard=False, _temp_dir=str(folder / "r"), log_to_driver=False, logging_level="error")
    serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config={"log_level": "ERROR"})
    commands = Commands(folder)
    try:
        for line in sys.stdin:
            command = json.loads(line)
            try:
                answer = {"result": getattr(commands, command.pop("do"))(**command)}
            except Exception:
                answer = {"failed": traceback.format_exc()}
            print(json.dumps(answer), file=answers, flush=True)
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
