# SPDX-License-Identifier: Apache-2.0
"""Repository agents: the checksum agent of ours, and one that moves models, built for the tests."""

import hashlib

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import Client

TEST_AGENTS = servers.build_folder() / "src" / "plugins" / "repoagent_host" / "test_agents"

pytestmark = pytest.mark.skipif(
    servers.REFERENCE, reason="the agents of the reference server are not those of the build folder"
)


def agents(*descriptions):
    """model_repository_agents of (name, {key: value})."""
    parts = []
    for name, parameters in descriptions:
        pairs = "".join(
            f' parameters {{ key: "{key}" value: "{value}" }}' for key, value in parameters.items()
        )
        parts.append(f'agents {{ name: "{name}"{pairs} }}')
    return "model_repository_agents { " + " ".join(parts) + " }\n"


def write_checked(repository, name, **checksums):
    config = models.identity_config(
        "INT32",
        [-1],
        extra=agents(("checksum", {f"MD5:{path}": value for path, value in checksums.items()})),
    )
    models.write_model(repository, name, config, {"1": {"weights.bin": b"weights"}})


def start_failing(start_server, repository, *args):
    """Starts a server that refuses to start, and returns its log."""
    server = start_server(repository, args=args, wait=False)
    assert server.wait() == 1
    return server.log


def infer(server, model, protocol):
    client = Client(protocol, server)
    tensor = np.arange(7, dtype=np.int32)
    result = client.infer(model, [client.input("INPUT0", tensor, "INT32")])
    client.close()
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), tensor)


# --- checksum ---------------------------------------------------------------------------------


def test_a_model_with_the_right_checksum_is_served(start_server, tmp_path):
    digest = hashlib.md5(b"weights").hexdigest()
    write_checked(tmp_path / "models", "good", **{"1/weights.bin": digest})
    server = start_server(tmp_path / "models")
    for protocol in ("http", "grpc"):
        infer(server, "good", protocol)


def test_a_model_with_a_wrong_checksum_is_refused_and_the_file_named(start_server, tmp_path):
    write_checked(tmp_path / "models", "bad", **{"1/weights.bin": "invalid_checksum"})
    log = start_failing(start_server, tmp_path / "models")
    assert (
        "Poll failed for model directory 'bad': Mismatched MD5 hash for file 1/weights.bin, "
        f"expect: invalid_checksum, got: {hashlib.md5(b'weights').hexdigest()}" in log
    )


def test_a_wrong_checksum_does_not_stop_the_other_models(start_server, tmp_path):
    write_checked(tmp_path / "models", "bad", **{"1/missing.bin": "0"})
    models.write_model(tmp_path / "models", "plain", models.identity_config("INT32", [-1]))
    server = start_server(
        tmp_path / "models", args=["--exit-on-error=false", "--strict-readiness=false"]
    )
    infer(server, "plain", "http")
    assert wire.request(server, "GET", "/v2/models/bad/ready").status == 404
    server.wait_for_log("failed to open text file for read 1/missing.bin: No such file")


def test_s02_a_checksum_reveals_nothing_about_files_beside_the_model(start_server, tmp_path):
    (tmp_path / "secret").write_text("secret")
    write_checked(tmp_path / "models", "curious", **{"../../secret": "0"})
    log = start_failing(start_server, tmp_path / "models")
    assert "file path '../../secret' is outside model directory" in log
    assert hashlib.md5(b"secret").hexdigest() not in log


# --- Agents that move models ------------------------------------------------------------------


def test_a_model_is_served_from_where_its_agent_put_it(start_server, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    models.write_model(tmp_path, "elsewhere", versions={"3": {}})
    config = models.identity_config("INT32", [-1], extra=agents(("relocation", {"to": elsewhere})))
    models.write_model(tmp_path / "models", "moved", config, {"1": {}})
    server = start_server(tmp_path / "models", args=[f"--repoagent-directory={TEST_AGENTS}"])
    infer(server, "moved", "grpc")
    assert wire.request(server, "GET", "/v2/models/moved/versions/3/ready").status == 200
    assert wire.request(server, "GET", "/v2/models/moved/versions/1/ready").status == 404


def test_agents_hear_of_a_whole_life_in_order(start_server, tmp_path):
    journal = tmp_path / "journal"
    chain = agents(
        ("relocation", {"name": "a", "journal": journal, "move": ""}),
        ("relocation", {"name": "b", "journal": journal}),
    )
    config = models.identity_config("INT32", [-1], extra=chain)
    models.write_model(tmp_path / "models", "m", config)
    server = start_server(tmp_path / "models", args=[f"--repoagent-directory={TEST_AGENTS}"])
    infer(server, "m", "http")
    begin = ["a INITIALIZE", "a LOAD", "b INITIALIZE", "b LOAD", "b LOAD_COMPLETE", "a LOAD_COMPLETE"]
    assert journal.read_text().splitlines() == begin
    server.stop()
    assert journal.read_text().splitlines() == begin + [
        "a UNLOAD",
        "b UNLOAD",
        "b UNLOAD_COMPLETE",
        "a UNLOAD_COMPLETE",
        "b FINALIZE",
        "a FINALIZE",
    ]


def test_agents_hear_that_a_load_failed(start_server, tmp_path):
    journal = tmp_path / "journal"
    config = 'backend: "onnxruntime"\n' + agents(("relocation", {"journal": journal, "name": "a"}))
    models.write_model(tmp_path / "models", "m", config, {"1": {"model.onnx": b"not a model"}})
    start_failing(start_server, tmp_path / "models", f"--repoagent-directory={TEST_AGENTS}")
    assert journal.read_text().splitlines() == ["a INITIALIZE", "a LOAD", "a LOAD_FAIL", "a FINALIZE"]


def test_an_agent_that_is_not_there_is_named(start_server, tmp_path):
    config = models.identity_config("INT32", [-1], extra=agents(("missing", {})))
    models.write_model(tmp_path / "models", "m", config)
    log = start_failing(start_server, tmp_path / "models", f"--repoagent-directory={TEST_AGENTS}")
    assert (
        "unable to find 'libtritonrepoagent_missing.so' for repo agent 'missing', "
        f"searched: {TEST_AGENTS}" in log
    )


def test_agents_hear_of_loads_and_unloads_by_request(start_server, tmp_path):
    journal = tmp_path / "journal"
    config = models.identity_config(
        "INT32", [-1], extra=agents(("relocation", {"name": "a", "journal": journal}))
    )
    folder = models.write_model(tmp_path / "models", "m", config)
    server = start_server(
        tmp_path / "models",
        args=[
            f"--repoagent-directory={TEST_AGENTS}",
            "--model-control-mode=explicit",
            "--load-model=m",
        ],
    )
    load = ["a INITIALIZE", "a LOAD", "a LOAD_COMPLETE"]
    assert journal.read_text().splitlines() == load
    journal.write_text("")
    # Nothing has changed: nobody is asked.
    assert wire.request(server, "POST", "/v2/repository/models/m/load", b"{}").status == 200
    assert journal.read_text() == ""
    (folder / "1" / "weights.bin").write_bytes(b"new")
    assert wire.request(server, "POST", "/v2/repository/models/m/load", b"{}").status == 200
    unload = ["a UNLOAD", "a UNLOAD_COMPLETE", "a FINALIZE"]
    lines = servers.wait_until(
        lambda: (told := journal.read_text().splitlines()) and len(told) == 6 and told, "both loads are through"
    )
    assert [line for line in lines if line in load] == load
    assert [line for line in lines if line in unload] == unload
    assert lines.index("a LOAD") < lines.index("a UNLOAD") < lines.index("a LOAD_COMPLETE")
    journal.write_text("")
    assert wire.request(server, "POST", "/v2/repository/models/m/unload", b"{}").status == 200
    servers.wait_until(lambda: journal.read_text().splitlines() == unload, "the unload is through")


def test_agents_that_refuse_a_load_by_request_leave_the_model_as_it_is(start_server, tmp_path):
    digest = hashlib.md5(b"weights").hexdigest()
    write_checked(tmp_path / "models", "m", **{"1/weights.bin": digest})
    server = start_server(
        tmp_path / "models", args=["--model-control-mode=explicit", "--load-model=m"]
    )
    (tmp_path / "models" / "m" / "1" / "weights.bin").write_bytes(b"tampered with")
    reply = wire.request(server, "POST", "/v2/repository/models/m/load", b"{}")
    assert reply.status >= 400
    servers.wait_until(lambda: "Mismatched MD5 hash" in server.log, "the reason")
    infer(server, "m", "http")
