# SPDX-License-Identifier: Apache-2.0
"""Temporary folders of a server that was killed go with the next start; those in use stay."""

import json
import signal
import tarfile

import pytest
import tritonclient.http as httpclient
from harness import python_models
from harness import server as servers

CONFIG = {"backend": "python", "max_batch_size": 0,
          "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
          "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}
CODE = (python_models.HEAD + python_models.IDENTITY).encode()


@pytest.fixture
def temporary(tmp_path):
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def start(start_server, folder, temporary):
    return start_server(folder, args=("--model-control-mode=explicit",),
                        env={**python_models.ENVIRONMENT, "TMPDIR": str(temporary)})


def load(server, name):
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        client.load_model(name, config=json.dumps(CONFIG), files={"file:1/model.py": CODE})
        assert client.is_model_ready(name)


def is_ready(server, name):
    with httpclient.InferenceServerClient(server.http) as client:
        return client.is_model_ready(name)


def test_what_a_killed_server_left_is_removed_and_what_others_use_is_not(start_server, folder, temporary):
    one = start(start_server, folder, temporary)
    load(one, "one")
    two = start(start_server, folder, temporary)
    load(two, "two")
    (temporary / "nereid-somebodys").mkdir()
    assert len(list(temporary.glob("nereid-tmp-*"))) == 2
    one.signal(signal.SIGKILL)
    assert one.wait() == -signal.SIGKILL
    assert len(list(temporary.glob("nereid-tmp-*"))) == 2
    three = start(start_server, folder, temporary)
    servers.wait_until(lambda: len(list(temporary.glob("nereid-tmp-*"))) == 1, "the folder to go")
    three.wait_for_log("removed 1 temporary folders of servers that are gone")
    assert is_ready(two, "two")
    load(three, "three")
    for server in (two, three):
        server.stop()
    assert [path.name for path in temporary.iterdir()] == ["nereid-somebodys"]


def test_an_unpacked_environment_goes_the_same_way(start_server, folder, temporary, tmp_path):
    archive = tmp_path / "environment.tar.gz"
    python = tmp_path / "environment" / "bin"
    python.mkdir(parents=True)
    interpreter = python_models.ENVIRONMENT["PATH"].split(":")[0] + "/python3"
    (python / "python3").write_text(f'#!/bin/sh\nexec {interpreter} "$@"\n')
    (python / "python3").chmod(0o755)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "environment", ".")
    python_models.write(folder, "m", python_models.IDENTITY, extra=(
        'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "%s" } }\n' % archive))
    server = start(start_server, folder, temporary)
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        client.load_model("m")
    assert len(list(temporary.glob("nereid-tmp-python-*"))) == 1
    server.signal(signal.SIGKILL)
    server.wait()
    assert len(list(temporary.glob("nereid-tmp-python-*"))) == 1
    start(start_server, folder, temporary)
    servers.wait_until(lambda: not list(temporary.iterdir()), "the environment to go")
