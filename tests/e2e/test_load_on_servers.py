# SPDX-License-Identifier: Apache-2.0
"""`nereid load` and `nereid unload` with --servers: each replica is told, and each is answered for."""

import json
import os
import signal
import socket
import subprocess

import pytest
from harness import certificates, models
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SUCCESS, FAILURE, USAGE, UNREACHABLE = range(4)
EXPLICIT = "--model-control-mode=explicit"


def start_command(*args, env=None):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}
    return subprocess.Popen(
        [str(servers.binary()), *map(str, args)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**kept, **(env or {})},
    )  # fmt: skip


def run(*args, env=None):
    process = start_command(*args, env=env)
    out, err = process.communicate(timeout=60 * servers.SLOWNESS)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def url_of(server):
    return f"http://{server.http}"


def lines_of(text):
    """The rows of the table, each as server, result and details."""
    head, *rows = text.splitlines()
    assert head.split() == ["SERVER", "RESULT", "DETAILS"]
    return [tuple(row.split(maxsplit=2)) for row in rows]


def replica(tmp_path, start_server, name, holds=("m",), **options):
    repository = tmp_path / name
    repository.mkdir()
    for model in holds:
        models.write_model(repository, model, models.identity_config("FP32", [-1]))
    (tmp_path / f"{name}-log").mkdir()
    args = [EXPLICIT, *options.pop("args", [])]
    return start_server(repository, args=args, log_dir=tmp_path / f"{name}-log", **options)


@pytest.fixture
def replicas(tmp_path, start_server):
    """Two servers with the model "m", and one without it."""
    return [
        replica(tmp_path, start_server, "a"),
        replica(tmp_path, start_server, "b"),
        replica(tmp_path, start_server, "c", holds=()),
    ]


def states(server):
    index = json.loads(run("models", "--json", "--url", url_of(server)).stdout)
    return {entry["name"]: entry.get("state", "") for entry in index}


def test_every_server_is_told_and_has_a_line(replicas):
    a, b, c = replicas
    done = run("load", "m", "--servers", f"{url_of(a)},{url_of(b)}")
    assert done.returncode == SUCCESS, done.stderr
    assert lines_of(done.stdout) == [
        (url_of(a), "done", "m, version 1: READY"),
        (url_of(b), "done", "m, version 1: READY"),
    ]
    assert states(a)["m"] == states(b)["m"] == "READY"
    assert "m" not in states(c)
    done = run("unload", "m", "--json", "--servers", url_of(a), "--servers", url_of(b))
    assert done.returncode == SUCCESS, done.stderr
    answer = json.loads(done.stdout)
    assert answer["model"] == "m"
    assert [(one["url"], one["result"]) for one in answer["servers"]] == [
        (url_of(a), "done"),
        (url_of(b), "done"),
    ]
    assert states(a)["m"] != "READY" != states(b)["m"]


def test_one_that_is_down_and_one_that_refuses_keep_no_other_from_being_told(replicas):
    down, good, refusing = replicas
    down.stop()
    listed = ",".join(map(url_of, [down, refusing, good]))
    done = run("load", "m", "--servers", listed)
    assert done.returncode == FAILURE
    lines = lines_of(done.stdout)
    assert [line[:2] for line in lines] == [
        (url_of(down), "unreachable"),
        (url_of(refusing), "failed"),
        (url_of(good), "done"),
    ]
    assert lines[0][2].startswith(f"no reply from {url_of(down)}: ")
    assert "failed to load 'm'" in lines[1][2]
    assert states(good)["m"] == "READY"

    done = run("load", "m", "--json", "--servers", listed)
    assert done.returncode == FAILURE
    first, second, third = json.loads(done.stdout)["servers"]
    assert (first["result"], second["result"]) == ("unreachable", "failed")
    assert first["error"].startswith("no reply from")
    assert "failed to load 'm'" in second["error"]
    assert third == {
        "url": url_of(good), "result": "done", "versions": [{"version": "1", "state": "READY"}],
    }  # fmt: skip


def test_servers_that_are_away_have_an_exit_status_of_their_own(replicas):
    down, good, _ = replicas
    down.stop()
    done = run("load", "m", "--servers", f"{url_of(down)},{url_of(good)}")
    assert done.returncode == UNREACHABLE
    assert [line[1] for line in lines_of(done.stdout)] == ["unreachable", "done"]


def test_each_server_has_the_timeout_for_itself():
    with socket.socket() as first, socket.socket() as second:
        for silent in (first, second):
            silent.bind(("127.0.0.1", 0))
            silent.listen()
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}" for silent in (first, second)]
        done = run("load", "m", "--timeout=200ms", "--servers", ",".join(urls))
        # Both were told, although neither answered.
        for silent in (first, second):
            silent.setblocking(False)
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(1000).startswith(b"POST /v2/repository/models/m/load ")
    assert done.returncode == UNREACHABLE
    for line, url in zip(lines_of(done.stdout), urls, strict=True):
        assert line[:2] == (url, "unreachable")
        assert "imeout" in line[2]


def test_control_c_ends_the_waiting_and_still_says_what_happened(replicas):
    good = replicas[0]
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        listed = f"{url_of(good)},http://127.0.0.1:{silent.getsockname()[1]}"
        process = start_command("load", "m", "--servers", listed)
        silent.settimeout(60 * servers.SLOWNESS)
        connection, _ = silent.accept()
        with connection:
            servers.wait_until(lambda: states(good).get("m") == "READY", "m to be loaded")
            # The good server's second reply, its index, may still be under way, so its line is not
            # looked at.
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60 * servers.SLOWNESS)
    assert process.returncode == UNREACHABLE
    assert lines_of(out)[1][1] == "unreachable"
    assert "interrupted" in lines_of(out)[1][2]


def test_a_model_without_versions_is_said_to_have_none(replicas):
    unknowing = replicas[2]
    done = run("unload", "m", "--servers", url_of(unknowing))
    assert done.returncode == SUCCESS
    assert lines_of(done.stdout) == [(url_of(unknowing), "done", "m: no versions")]


def test_wrong_lists_are_refused_before_any_server_is_told(replicas):
    good = replicas[0]
    for given, says in [
        (["--url", "http://b:1"], "options '--servers' and '--url' exclude each other"),
        (["--servers", "http://b:1,"], "expected addresses with one comma between each two"),
        (["--servers", url_of(good)], f"'{url_of(good)}' stands there twice"),
        (["--servers", "http://"], "--servers 'http://': expected http[s]://HOST:PORT or unix:PATH"),
        (["--config", "nowhere.json"], "nowhere.json"),
    ]:
        done = run("load", "m", "--servers", url_of(good), *given)
        assert (done.returncode, done.stdout) == (USAGE, ""), given
        assert says in done.stderr
    assert states(good)["m"] != "READY"


def test_the_address_in_the_environment_gives_way(replicas):
    good = replicas[0]
    done = run("load", "m", "--servers", url_of(good), env={"NEREID_URL": "http://127.0.0.1:1"})
    assert done.returncode == SUCCESS, done.stderr
    assert [line[:2] for line in lines_of(done.stdout)] == [(url_of(good), "done")]


def test_keys_and_certificates_are_for_all_servers(tmp_path, start_server):
    authority = certificates.make(tmp_path, "authority")
    certificate = certificates.make(tmp_path, "server", authority)
    # The command makes the keys' file, and prints the key that goes with it.
    keys = tmp_path / "keys.json"
    made = run("keys", "add", "operator", "--scope", "model-control", "--scope", "metadata", "--file", keys)
    assert made.returncode == SUCCESS, made.stderr
    key = made.stdout.split()[-1]
    args = ["--http-use-ssl=true", f"--http-server-cert={certificate.cert}",
            f"--http-server-key={certificate.key}", f"--api-keys={keys}"]  # fmt: skip
    both = [replica(tmp_path, start_server, name, args=args, wait=False) for name in "ab"]
    urls = [f"https://localhost:{server.http_port}" for server in both]
    for url in urls:
        done = run("health", "--wait=30s", "--url", url, "--ca", authority.cert)
        assert done.returncode == SUCCESS, done.stderr
    command = ["load", "m", "--servers", ",".join(urls), "--ca", authority.cert]
    done = run(*command)
    assert done.returncode == FAILURE
    assert [line[1] for line in lines_of(done.stdout)] == ["failed", "failed"]
    done = run(*command, env={"NEREID_API_KEY": key})
    assert done.returncode == SUCCESS, done.stdout
    assert [line[1] for line in lines_of(done.stdout)] == ["done", "done"]
    assert [line[1] for line in lines_of(run(*command[:-2]).stdout)] == ["unreachable"] * 2
