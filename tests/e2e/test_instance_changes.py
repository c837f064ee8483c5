# SPDX-License-Identifier: Apache-2.0
"""Instance groups change in place: instances are added and removed, and the version stays loaded."""

import concurrent.futures
import json
import os
import re

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers

COUNTING = """
class TritonPythonModel:
    def initialize(self, args):
        open(os.environ["MARK"], "a").write("+")
        config = json.loads(args["model_config"])
        if "fails" in str(config.get("parameters", "")) and os.path.exists(os.environ["MARK"] + ".fail"):
            raise RuntimeError("no more of these")

    def execute(self, requests):
        responses = []
        for request in requests:
            value = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value.as_numpy())]))
        return responses

    def finalize(self):
        open(os.environ["MARK"], "a").write("-")
"""
EXPLICIT = ["--model-control-mode=explicit", "--load-model=m"]


class Place:
    def __init__(self, folder, start_server, args=(), groups="{ kind: KIND_CPU count: 2 }", extra="",
                 gives_batch_size=True):
        self.mark = folder / "mark"
        self.extra = extra
        self.folder = python_models.write(folder / "models", "m", COUNTING, extra=extra)
        if not gives_batch_size:
            file = self.folder / "config.pbtxt"
            file.write_text(file.read_text().replace("max_batch_size: 0\n", ""))
        self.configure(groups)
        env = {**python_models.ENVIRONMENT, "MARK": str(self.mark)}
        self.server = start_server(folder / "models", args=args or EXPLICIT, env=env)
        self.client = httpclient.InferenceServerClient(self.server.http)

    def configure(self, groups):
        file = self.folder / "config.pbtxt"
        text = re.sub(r"instance_group \[.*?\]\n", f"instance_group [ {groups} ]\n", file.read_text(), flags=re.S)
        new = self.folder / "new"
        new.write_text(text)
        # A look at the folder must see another time of change, and never half a file.
        later = file.stat().st_mtime_ns + 1_000_000
        os.utime(new, ns=(later, later))
        new.rename(file)

    def change(self, groups):
        self.configure(groups)
        self.client.load_model("m")

    def workers(self):
        return {worker.pid for worker in python_models.workers(self.server)}

    def counts(self):
        text = self.mark.read_text()
        return text.count("+"), text.count("-")

    def infer(self, client=None):
        tensor = httpclient.InferInput("INPUT0", [3], "FP32")
        data = np.arange(3, dtype=np.float32)
        tensor.set_data_from_numpy(data)
        np.testing.assert_array_equal((client or self.client).infer("m", [tensor]).as_numpy("OUTPUT0"), data)


def test_i1_instances_are_added_and_removed_and_the_others_stay(start_server, tmp_path):
    place = Place(tmp_path, start_server)
    first = place.workers()
    place.change("{ kind: KIND_CPU count: 4 }")
    assert place.counts() == (4, 0) and first < place.workers()
    assert place.client.get_model_config("m")["instance_group"][0]["count"] == 4
    place.infer()
    place.change("{ kind: KIND_CPU count: 1 }")
    # What was removed is gone when the load has been answered.
    assert place.counts() == (4, 3) and len(place.workers()) == 1
    place.infer()
    place.change("{ name: \"other\" kind: KIND_CPU count: 1 }")
    assert place.counts() == (4, 3)


def test_a_file_that_was_only_touched_changes_nothing(start_server, tmp_path):
    place = Place(tmp_path, start_server)
    first = place.workers()
    place.change("{ kind: KIND_CPU count: 2 }")
    assert place.counts() == (2, 0) and place.workers() == first


@pytest.mark.newer
def test_anything_else_loads_the_version_anew(start_server, tmp_path):
    place = Place(tmp_path, start_server)
    file = place.folder / "config.pbtxt"
    file.write_text(file.read_text() + 'parameters { key: "a" value { string_value: "b" } }\n')
    place.change("{ kind: KIND_CPU count: 3 }")
    assert place.counts()[0] == 5
    servers.wait_until(lambda: place.counts() == (5, 2), "the old version to be unloaded")


def test_i3_no_request_is_lost(start_server, tmp_path):
    place = Place(tmp_path, start_server)
    stop = False

    def ask():
        asked = 0
        with httpclient.InferenceServerClient(place.server.http) as client:
            while not stop:
                place.infer(client)
                asked += 1
        return asked

    with concurrent.futures.ThreadPoolExecutor() as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            for count in (3, 1, 2, 4, 1):
                place.change("{ kind: KIND_CPU count: %d }" % count)
        finally:
            stop = True
        assert all(each.result() > 0 for each in asking)


def test_i2_what_fails_leaves_everything_as_it_was(start_server, tmp_path):
    place = Place(tmp_path, start_server, extra='parameters { key: "fails" value { string_value: "1" } }\n')
    first = place.workers()
    (tmp_path / "mark.fail").touch()
    place.configure("{ kind: KIND_CPU count: 3 }")
    with pytest.raises(httpclient.InferenceServerException, match="no more of these"):
        place.client.load_model("m")
    assert place.workers() == first
    place.infer()
    (tmp_path / "mark.fail").unlink()
    place.client.load_model("m")
    assert len(place.workers()) == 3 and first < place.workers()


def test_i5_more_of_a_resource_than_there_is_leaves_everything_as_it_was(start_server, tmp_path):
    def group(count):
        return f'{{ kind: KIND_CPU rate_limiter {{ resources [ {{ name: "r1" count: {count} }} ] }} }}'

    args = [*EXPLICIT, "--rate-limit=execution_count", "--rate-limit-resource=r1:10"]
    place = Place(tmp_path, start_server, args, groups=group(2))
    first = place.workers()
    place.configure(group(32))
    with pytest.raises(httpclient.InferenceServerException, match="r1"):
        place.client.load_model("m")
    assert place.workers() == first
    place.infer()
    place.change(group(10))
    assert place.counts() == (2, 1)
    place.infer()


def test_polling_changes_instances_in_place(start_server, tmp_path):
    place = Place(tmp_path, start_server, ["--model-control-mode=poll", "--repository-poll-secs=1"])
    first = place.workers()
    place.configure("{ kind: KIND_CPU count: 3 }")
    servers.wait_until(lambda: place.counts() == (3, 0), "the third instance")
    assert first < place.workers()


@pytest.mark.parametrize("gives_batch_size", [True, False])
@pytest.mark.parametrize("is_given_back", [True, False])
def test_the_configuration_of_a_load_request_may_be_the_one_that_was_told(
    start_server, tmp_path, gives_batch_size, is_given_back
):
    place = Place(tmp_path, start_server, gives_batch_size=gives_batch_size)
    config = place.client.get_model_config("m")
    if not is_given_back:
        # As messages of gRPC are without values that are 0.
        assert config.pop("max_batch_size") == 0
    config["instance_group"][0]["count"] = 3
    place.client.load_model("m", config=json.dumps(config))
    assert place.counts() == (3, 0)
    place.infer()


@pytest.mark.newer
def test_instances_that_share_what_was_loaded_come_and_go_too(start_server, tmp_path):
    models.write_model(tmp_path / "models", "m", models.identity_config("FP32", [-1]))
    file = tmp_path / "models" / "m" / "config.pbtxt"
    server = start_server(tmp_path / "models", args=[*EXPLICIT, "--log-verbose=1"])
    client = httpclient.InferenceServerClient(server.http)
    for count in (4, 1, 3):
        file.write_text(re.sub(r"count: \d+ }", f"count: {count} }}", file.read_text()))
        servers.wait_until(lambda: not client.load_model("m")
                           and client.get_model_config("m")["instance_group"][0]["count"] == count,
                           "the new count")
    assert "successfully unloaded 'm'" not in server.log
