# SPDX-License-Identifier: Apache-2.0
"""Configurations that are wrong, by the hundreds and over the network, and repositories that go away while a model is
loaded (S25, S02): each load fails alone, with a reason, and all other models go on serving."""

import copy
import json
import os
import random
import shutil
import threading

import grpc
import pytest
from harness import models, python_models, transports, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

MIB = 1 << 20
EXPLICIT = "--model-control-mode=explicit"
BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})


def check_serves(server, model="steady"):
    reply = wire.request(server, "POST", f"/v2/models/{model}/infer", BODY)
    assert reply.status == 200 and reply.json()["outputs"][0]["data"] == [1, 2], reply


def load_over_http(server, model, config):
    body = json.dumps({"parameters": {"config": config}}) if config is not None else "{}"
    reply = wire.request(server, "POST", f"/v2/repository/models/{model}/load", body)
    assert reply.status == 200 or (400 <= reply.status <= 503 and reply.error), reply
    return "" if reply.status == 200 else reply.error


def load_over_grpc(server, model, config):
    request = pb.RepositoryModelLoadRequest(model_name=model)
    if config is not None:
        request.parameters["config"].string_param = config
    with server.channel() as channel:
        try:
            service_pb2_grpc.GRPCInferenceServiceStub(channel).RepositoryModelLoad(
                request, timeout=60 * servers.SLOWNESS)
        except grpc.RpcError as error:
            assert error.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED), error
            return error.details()
    return ""


LOADS = {"http": load_over_http, "grpc": load_over_grpc}


@pytest.fixture(scope="module", params=["tcp", "unix-keys"])
def server(request, require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    for name in ("steady", "m"):
        models.write_model(repository, name, models.identity_config("FP32", [-1]))
    transport = transports.ALL[request.param]()
    with servers.running(repository, args=[EXPLICIT, "--load-model=steady", "--load-model=m"], transport=transport,
                         log_dir=tmp_path_factory.mktemp("log"), env=python_models.ENVIRONMENT) as running:  # fmt: skip
        running.repository = repository
        yield running
    transport.close()


# --- Generated configurations -------------------------------------------------------------------


def tensor(name, **more):
    return {"name": name, "data_type": "TYPE_FP32", "dims": [-1], **more}


# Configurations that are right, which together have most fields.
RIGHT = [
    {"backend": "identity", "max_batch_size": 0, "input": [tensor("INPUT0")], "output": [tensor("OUTPUT0")]},
    {"backend": "identity", "max_batch_size": 8,
     "input": [tensor("INPUT0", reshape={"shape": [-1]}, format="FORMAT_NONE")],
     "output": [tensor("OUTPUT0", reshape={"shape": [-1]})],
     "version_policy": {"latest": {"num_versions": 1}},
     "instance_group": [{"name": "g", "kind": "KIND_CPU", "count": 2}],
     "dynamic_batching": {"preferred_batch_size": [4], "max_queue_delay_microseconds": 100,
                          "priority_levels": 2, "default_priority_level": 1,
                          "default_queue_policy": {"timeout_action": "REJECT", "max_queue_size": 10},
                          "priority_queue_policy": {"1": {"timeout_action": "DELAY"}}},
     "response_cache": {"enable": False}, "metric_tags": {"a": "b"},
     "optimization": {"priority": "PRIORITY_DEFAULT", "input_pinned_memory": {"enable": False}},
     "model_warmup": [{"name": "w", "batch_size": 2, "count": 1, "inputs": {
         "INPUT0": {"data_type": "TYPE_FP32", "dims": [4], "zero_data": True}}}],
     "parameters": {"p": {"string_value": "q"}}},
    {"backend": "identity", "max_batch_size": 4, "input": [tensor("INPUT0")], "output": [tensor("OUTPUT0")],
     "sequence_batching": {"max_sequence_idle_microseconds": 1000000,
                           "oldest": {"max_candidate_sequences": 4, "preferred_batch_size": [2]},
                           "control_input": [],
                           "state": [{"input_name": "S", "output_name": "T", "data_type": "TYPE_FP32", "dims": [1],
                                      "initial_state": [{"name": "i", "data_type": "TYPE_FP32", "dims": [1],
                                                         "zero_data": True}]}]}},
    {"platform": "ensemble", "max_batch_size": 0, "input": [tensor("INPUT0")], "output": [tensor("OUTPUT0")],
     "ensemble_scheduling": {"step": [{"model_name": "steady", "model_version": -1, "input_map": {"INPUT0": "INPUT0"},
                                       "output_map": {"OUTPUT0": "OUTPUT0"}}]}},
]  # fmt: skip
VALUES = [None, True, False, 0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**64, 1e308, 0.5, "", " ",
          "x" * 70_000, "../../x", "/etc/passwd", "$(touch x)", "\0", "\u2028\n\x1b[2J", "é" * 100, [], {}, [[]], [{}],
          {"": ""}, [0] * 1000, [-1, -1], "KIND_GPU", "TYPE_STRING", "INPUT0", "steady", "m"]  # fmt: skip


def places(value, path=()):
    """The paths to all values inside."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*path, key))


def change(config, rng):
    """Changes one value, takes it away, doubles it, renames it or puts it elsewhere."""
    path = rng.choice(list(places(config)))
    holder = config
    for key in path[:-1]:
        holder = holder[key]
    last = path[-1]
    kind = rng.randrange(6)
    if kind == 0:
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[last])] * rng.choice((1, 2, 300)))
    elif kind == 2 and isinstance(holder, dict):
        holder[rng.choice(("x", "", last + last, "input", "dims", "name"))] = holder.pop(last)
    elif kind == 3:
        other = config
        for key in rng.choice(list(places(config))):
            other = other[key]
        holder[last] = copy.deepcopy(other)
    else:
        holder[last] = copy.deepcopy(rng.choice(VALUES))  # a later change must not reach VALUES


def generated(seed):
    rng = random.Random(seed)
    config = copy.deepcopy(rng.choice(RIGHT))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if config:
            change(config, rng)
    text = json.dumps(config)
    if rng.random() < 0.05:  # or no JSON at all
        text = text[: rng.randrange(len(text))]
    return text


def state_of(server, model):
    index = wire.request(server, "POST", "/v2/repository/index").json()
    return next((one.get("state") for one in index if one["name"] == model), None)


def test_s25_what_is_right_is_loaded(server):
    """Otherwise the changed ones would fail for another reason."""
    for config in (RIGHT[0], RIGHT[1], RIGHT[3]):
        for load in LOADS.values():
            assert load(server, "m", json.dumps(config)) == ""
    check_serves(server)


@pytest.mark.parametrize("seeds", [range(at, at + 125) for at in range(0, 500, 125)], ids=lambda seeds: seeds[0])
def test_s25_five_hundred_wrong_configurations_fail_alone(server, seeds):
    assert load_over_http(server, "m", json.dumps(RIGHT[0])) == ""
    failures = 0
    for seed in seeds:
        config = generated(seed)
        error = LOADS["grpc" if seed % 2 else "http"](server, "m", config)
        assert server.process.poll() is None, (seed, config)
        check_serves(server)
        # What was there before goes on, or the new one is there. A model that has become an ensemble which cannot be
        # put together is unloaded.
        if state_of(server, "m") != "READY":
            assert "ensemble" in error, (seed, config, error)
            assert load_over_http(server, "m", json.dumps(RIGHT[0])) == ""
        if error:
            failures += 1
            assert "root:" not in error and len(error) < 4 * MIB, (seed, error[:1000])
    assert failures > len(seeds) // 2
    assert load_over_http(server, "m", json.dumps(RIGHT[0])) == ""
    check_serves(server, "m")


# --- Paths (S02) --------------------------------------------------------------------------------


def with_path(path):
    """Every setting of a configuration that names a file, with this path."""
    base = RIGHT[0]
    batched = {**base, "max_batch_size": 8, "dynamic_batching": {}}
    warm = {"name": "w", "batch_size": 1, "inputs": {"INPUT0": {"data_type": "TYPE_FP32", "dims": [1], "input_data_file": path}}}
    return {
        "label": {**base, "output": [tensor("OUTPUT0", label_filename=path)]},
        "warm-up": {**base, "model_warmup": [warm]},
        "batching": {**batched, "parameters": {"TRITON_BATCH_STRATEGY_PATH": {"string_value": path}}},
        "file": {**base, "default_model_filename": path},
        "runtime": {**base, "runtime": path},
        "backend": {**base, "backend": path},
        "environment": {**base, "backend": "python", "parameters": {"EXECUTION_ENV_PATH": {"string_value": path}}},
    }


@pytest.mark.parametrize("setting", with_path(""))
def test_s02_no_setting_names_a_file_elsewhere(server, setting):
    """m_evil is beside m, so its path begins with that of m. Files are looked for in m, m/1 and m/warmup."""
    up = ".." if setting in ("label", "batching", "runtime", "backend", "environment") else "../.."
    evil = server.repository / "m_evil"
    evil.mkdir(exist_ok=True)
    shutil.copyfile(servers.backends() / "identity" / "libtriton_identity.so", evil / "x")
    os.chmod(evil / "x", 0o755)
    try:
        relative = [f"{up}/m_evil/x", f"{up}/../m_evil/x", "../../../../../../etc/passwd", "1/../../../m_evil/x"]
        # The name of a model's file is one inside the folder, whatever it begins with.
        absolute = [] if setting == "file" else [str(evil / "x"), "/etc/passwd", f"{server.repository}/m/../m_evil/x"]
        for path in relative + absolute:
            for load in LOADS.values():
                error = load(server, "m", json.dumps(with_path(path)[setting]))
                assert error, (setting, path)
                assert "root:" not in error
        check_serves(server, "m")
    finally:
        shutil.rmtree(evil)


def test_s02_files_inside_are_found(start_server, empty_repository):
    """The accepted side: a check that refuses everything would pass the tests above."""
    folder = models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    (folder / "warmup").mkdir()
    (folder / "warmup" / "data").write_bytes(bytes(4))
    (folder / "more").mkdir()
    (folder / "more" / "labels.txt").write_text("a\nb\n")
    server = start_server(empty_repository, args=[EXPLICIT, "--load-model=m"])
    for setting, path in (("warm-up", "data"), ("label", "more/labels.txt"), ("label", "more/../more/labels.txt"),
                          ("file", "..weights"), ("file", "a/../b")):  # fmt: skip
        assert load_over_http(server, "m", json.dumps(with_path(path)[setting])) == "", (setting, path)


# --- Repositories that go away ------------------------------------------------------------------

# Loads as slowly as a test wants: until the file `go` is there.
SLOW = """
class TritonPythonModel:
    def initialize(self, args):
        folder = os.environ["NEREID_TEST_GATE"]
        open(os.path.join(folder, "begun"), "w").close()
        while not os.path.exists(os.path.join(folder, "go")):
            time.sleep(0.01)

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", pb_utils.get_input_tensor_by_name(
            r, "INPUT0").as_numpy())]) for r in requests]
"""


def remove(folder):
    shutil.rmtree(folder)


def replace_by_a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("no folder")


def replace_by_a_loop(folder):
    shutil.rmtree(folder)
    folder.symlink_to(folder)


def make_unreadable(folder):
    """Also for root: the configuration and the version are what cannot be read as such."""
    (folder / "config.pbtxt").unlink()
    (folder / "config.pbtxt").mkdir()
    shutil.rmtree(folder / "1")
    (folder / "1").symlink_to("1")
    folder.chmod(0)


@pytest.mark.parametrize("what", [remove, replace_by_a_file, replace_by_a_loop, make_unreadable])
@pytest.mark.parametrize("is_whole", [False, True], ids=["the model", "the repository"])
def test_s25_a_repository_that_goes_away_while_a_model_is_loaded(start_server, tmp_path, what, is_whole):
    steady, repository, gate = (tmp_path / name for name in ("steady", "models", "gate"))
    gate.mkdir()
    models.write_model(steady, "steady", models.identity_config("FP32", [-1]))
    python_models.write(repository, "slow", SLOW)
    server = start_server(steady, repository, args=[EXPLICIT, "--load-model=steady"],
                          env={**python_models.ENVIRONMENT, "NEREID_TEST_GATE": str(gate)})  # fmt: skip
    errors = []
    loading = threading.Thread(target=lambda: errors.append(load_over_http(server, "slow", None)))
    loading.start()
    servers.wait_until((gate / "begun").exists, "the load to begin")
    what(repository / "slow")
    if is_whole:
        shutil.rmtree(repository, ignore_errors=True)
    check_serves(server)
    (gate / "go").touch()
    loading.join(60 * servers.SLOWNESS)
    assert errors and not loading.is_alive()
    # What was read before it went is served.
    if errors == [""]:
        check_serves(server, "slow")
    for load in LOADS.values():
        assert load(server, "slow", None) != "" or state_of(server, "slow") == "READY"
        check_serves(server)
    assert wire.request(server, "POST", "/v2/repository/index").status == 200
    wire.request(server, "POST", "/v2/repository/models/slow/unload", "{}")
    servers.wait_until(lambda: state_of(server, "slow") != "READY", "the model to go")
    # A model that comes back is loaded again.
    if (repository / "slow").is_symlink() or (repository / "slow").is_file():
        (repository / "slow").unlink()
    elif (repository / "slow").exists():
        (repository / "slow").chmod(0o755)
        shutil.rmtree(repository / "slow")
    python_models.write(repository, "slow", SLOW)
    servers.wait_until(lambda: load_over_http(server, "slow", None) == "", "the model to be loaded again")
    check_serves(server, "slow")
