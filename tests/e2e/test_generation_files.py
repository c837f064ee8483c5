# SPDX-License-Identifier: Apache-2.0
"""`nereid load` and `nereid unload` with --repository: all servers of a repository follow its generation file."""

import concurrent.futures
import json
import os
import pathlib
import subprocess

import pytest
from harness import models, object_stores, s3, wire
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SUCCESS, FAILURE, USAGE = range(3)
EXPLICIT = ["--model-control-mode=explicit"]
# Polls that no test waits for: what is noticed, is noticed by the file.
SELDOM = ["--model-control-mode=poll", "--repository-poll-secs=3600"]
# Where each look is a request, only who asks for them gets them.
LOOKS = ["--generation-poll-ms=500"]
FILE = ".nereid-generation"
IDENTITY = models.identity_config("FP32", [-1])


def run(*args, env=None):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}
    return subprocess.run(
        [str(servers.binary()), *map(str, args)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * servers.SLOWNESS,
        env={**kept, **(env or {})},
    )  # fmt: skip


def ask(verb, model, repository, env=None):
    done = run(verb, model, "--repository", repository, env=env)
    assert done.returncode == SUCCESS, done.stderr + done.stdout
    return done.stdout


def states(server):
    return {e["name"]: e.get("state", "") for e in wire.request(server, "POST", "/v2/repository/index").json()}


def serves(server, model):
    return wire.request(server, "GET", f"/v2/models/{model}/ready").status == 200


def wait_until_all(fleet, condition, what):
    for server in fleet:
        servers.wait_until(lambda server=server: condition(server), what)


def start_fleet(start_server, tmp_path, repository, args, count=3, **options):
    fleet = []
    for i in range(count):
        log_dir = tmp_path / f"log{i}"
        log_dir.mkdir(exist_ok=True)
        fleet.append(start_server(repository, args=args, log_dir=log_dir, **options))
    return fleet


@pytest.fixture
def repository(empty_repository):
    for model in ("a", "b"):
        models.write_model(empty_repository, model, IDENTITY)
    return empty_repository


def test_one_command_reaches_three_servers_and_one_that_starts_later(repository, start_server, tmp_path):
    fleet = start_fleet(start_server, tmp_path, repository, EXPLICIT)
    assert not any(serves(server, "a") for server in fleet)
    assert ask("load", "a", repository) == f"generation 1 of {repository}: load a\n"
    wait_until_all(fleet, lambda server: serves(server, "a"), "a is loaded")

    (tmp_path / "late").mkdir()
    late = start_server(repository, args=EXPLICIT, log_dir=tmp_path / "late")
    assert serves(late, "a")  # at once: it was ready only with the model
    assert not serves(late, "b")

    assert ask("unload", "a", repository) == f"generation 2 of {repository}: unload a\n"
    wait_until_all([*fleet, late], lambda server: not serves(server, "a"), "a is unloaded")
    ask("load", "b", repository)
    wait_until_all([*fleet, late], lambda server: serves(server, "b"), "b is loaded")


def test_asking_again_loads_files_that_have_changed(repository, start_server, tmp_path):
    fleet = start_fleet(start_server, tmp_path, repository, EXPLICIT, count=2)
    ask("load", "a", repository)
    wait_until_all(fleet, lambda server: serves(server, "a"), "a is loaded")
    models.write_model(repository, "a", models.identity_config("INT32", [-1]))
    ask("load", "a", repository)

    def has_new_type(server):
        return wire.request(server, "GET", "/v2/models/a").json()["inputs"][0]["datatype"] == "INT32"

    wait_until_all(fleet, has_new_type, "a is loaded again")


def test_servers_that_poll_do_so_at_once_and_leave_out_what_is_unwanted(repository, start_server, tmp_path):
    fleet = start_fleet(start_server, tmp_path, repository, SELDOM)
    assert all(serves(server, model) for server in fleet for model in ("a", "b"))
    ask("unload", "a", repository)
    wait_until_all(fleet, lambda server: not serves(server, "a"), "a is unloaded")
    models.write_model(repository, "c", IDENTITY)
    ask("load", "c", repository)
    wait_until_all(fleet, lambda server: serves(server, "c"), "the new model is loaded")
    assert not any(serves(server, "a") for server in fleet)  # another poll does not bring it back
    assert all(serves(server, "b") for server in fleet)

    (tmp_path / "late").mkdir()
    late = start_server(repository, args=SELDOM, log_dir=tmp_path / "late")
    assert not serves(late, "a") and serves(late, "b") and serves(late, "c")

    (repository / FILE).unlink()  # which asks for nothing any more
    wait_until_all([*fleet, late], lambda server: serves(server, "a"), "a is back")


def test_a_torn_file_changes_nothing_and_is_told_once(repository, start_server, tmp_path):
    (server,) = start_fleet(start_server, tmp_path, repository, EXPLICIT, count=1)
    ask("load", "a", repository)
    wait_until_all([server], lambda server: serves(server, "a"), "a is loaded")
    whole = (repository / FILE).read_text()
    temporary = repository / "new"
    temporary.write_text(whole.replace("generation 1\nload 1 a\nend\n", "generation 2\nunload 2 a\n"))
    temporary.rename(repository / FILE)
    told = "the last line is not 'end'"
    servers.wait_until(lambda: told in server.log, "the file is refused")
    done = run("load", "b", "--repository", repository)
    assert done.returncode == FAILURE and told in done.stderr
    temporary.write_text(whole.replace("end\n", "load 2 b\nend\n"))
    temporary.rename(repository / FILE)
    wait_until_all([server], lambda server: serves(server, "b"), "b is loaded")
    assert serves(server, "a")
    assert server.log.count(told) == 1


def test_a_failure_is_in_the_index_and_keeps_nothing_else(repository, start_server, tmp_path):
    (server,) = start_fleet(start_server, tmp_path, repository, EXPLICIT, count=1)
    models.write_model(repository, "bad", IDENTITY.replace('backend: "identity"', 'backend: "nowhere"'))
    ask("load", "bad", repository)
    servers.wait_until(lambda: "asks to load model 'bad', which failed" in server.log, "the failure is told")
    ask("load", "a", repository)
    wait_until_all([server], lambda server: serves(server, "a"), "a is loaded")
    index = wire.request(server, "POST", "/v2/repository/index").json()
    (bad,) = [entry for entry in index if entry["name"] == "bad"]
    assert bad.get("state") != "READY"


def test_several_repositories_have_a_file_each(start_server, tmp_path):
    repositories = [tmp_path / "one", tmp_path / "two"]
    for path, model in zip(repositories, "ab", strict=True):
        path.mkdir()
        models.write_model(path, model, IDENTITY)
    server = start_server(*repositories, args=EXPLICIT)
    ask("load", "a", repositories[0])
    ask("load", "b", repositories[1])
    servers.wait_until(lambda: serves(server, "a") and serves(server, "b"), "both are loaded")
    ask("unload", "b", repositories[1])
    servers.wait_until(lambda: not serves(server, "b"), "b is unloaded")
    assert serves(server, "a")


def test_commands_at_the_same_time_lose_nothing(repository, start_server, tmp_path):
    names = [f"m{i}" for i in range(8)]
    for name in names:
        models.write_model(repository, name, IDENTITY)
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: ask("load", name, repository), names))
    (server,) = start_fleet(start_server, tmp_path, repository, EXPLICIT, count=1)
    assert all(serves(server, name) for name in names)
    assert (repository / FILE).read_text().startswith("generation 8\n")


def test_nothing_is_followed_that_was_not_asked_for(repository, start_server, tmp_path):
    ask("load", "a", repository)
    off, none = (tmp_path / name for name in ("off", "none"))
    off.mkdir()
    none.mkdir()
    quiet = start_server(repository, args=[*EXPLICIT, "--generation-poll-ms=0"], log_dir=off)
    assert not serves(quiet, "a")
    ask("unload", "a", repository)
    plain = start_server(repository, log_dir=none)
    assert serves(plain, "a")  # the mode "none" serves what is there


def test_usage(repository, tmp_path):
    missing = run("load", "nowhere", "--repository", repository)
    assert missing.returncode == FAILURE and "there is no model 'nowhere'" in missing.stderr
    assert run("load", "a", "--repository", tmp_path / "nowhere").returncode == FAILURE
    assert not (repository / FILE).exists()
    config = tmp_path / "config"
    config.write_text("{}")
    for more in (["--config", config], ["--servers", "http://localhost:1"], ["--url", "http://localhost:1"]):
        done = run("load", "a", "--repository", repository, *more)
        assert done.returncode == USAGE, more
        assert more[0] in done.stderr and "--repository" in done.stderr
    assert run("unload", "a", "--repository", repository, "--dependents").returncode == USAGE
    done = run("load", "a", "--repository", repository, "--json")
    assert json.loads(done.stdout) == {
        "model": "a", "repository": str(repository), "wish": "load", "generation": 1,
    }  # fmt: skip


# --- Object stores ----------------------------------------------------------------------------


class S3Bucket:
    """An S3 server with a bucket, like the fakes of object_stores."""

    def __init__(self, tmp_path):
        (tmp_path / "s3" / "bucket").mkdir(parents=True)
        self.folder = tmp_path / "s3" / "bucket"
        self.server = s3.S3Server(tmp_path / "s3", tmp_path / "s3.log")
        self.start, self.stop, self.url = self.server.start, self.server.stop, self.server.url

    def put(self, key, data):
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    @staticmethod
    def environment(cache, home):
        return s3.environment(cache, home)


@pytest.fixture(params=["s3", "gs", "as", "azurite"])
def store(request, tmp_path):
    if request.param == "azurite" and not object_stores.Azurite.program().exists():
        pytest.skip("Azurite is not installed (tools/setup --emulators)")
    made = {
        "s3": lambda: S3Bucket(tmp_path),
        "gs": object_stores.FakeGoogle,
        "as": object_stores.FakeAzure,
        "azurite": lambda: object_stores.Azurite(tmp_path / "emulator"),
    }[request.param]()
    made.start()
    yield made
    made.stop()


@pytest.mark.skipif(servers.REFERENCE, reason="the reference server's release is built without clouds")
def test_one_command_reaches_all_servers_of_a_bucket(store, start_server, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for model in ("a", "b"):
        # A store has no empty folders.
        models.write_model(source, model, IDENTITY, {"1": {"file": b"x"}})
    object_stores.put_folder(store, source, "models/")
    env = store.environment(tmp_path / "cache", tmp_path)
    repository = store.url("bucket/models")
    fleet = start_fleet(start_server, tmp_path, repository, [*EXPLICIT, *LOOKS], env=env)
    ask("load", "a", repository, env)
    wait_until_all(fleet, lambda server: serves(server, "a"), "a is loaded")
    ask("load", "b", repository, env)
    ask("unload", "a", repository, env)
    wait_until_all(fleet, lambda server: not serves(server, "a") and serves(server, "b"), "b is there, a is not")

    poller = tmp_path / "poller"
    poller.mkdir()
    polling = start_server(repository, args=[*SELDOM, *LOOKS], env=env, log_dir=poller)
    assert not serves(polling, "a") and serves(polling, "b")
    ask("load", "a", repository, env)
    wait_until_all([*fleet, polling], lambda server: serves(server, "a"), "a is back")


@pytest.mark.skipif(servers.REFERENCE, reason="the reference server's release is built without clouds")
@pytest.mark.parametrize("kind", [object_stores.FakeGoogle, object_stores.FakeAzure])
def test_commands_at_the_same_time_lose_nothing_in_a_bucket(kind, tmp_path):
    store = kind()
    store.start()
    try:
        names = [f"m{i}" for i in range(8)]
        for name in names:
            models.write_model(tmp_path / "source", name, IDENTITY)
        object_stores.put_folder(store, tmp_path / "source", "models/")
        env = store.environment(tmp_path / "cache", tmp_path)
        repository = store.url("bucket/models")
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda name: ask("load", name, repository, env), names))
        text = store.objects[f"models/{FILE}"].data.decode()
        assert text.startswith("generation 8\n")
        assert all(f" {name}\n" in text for name in names)
    finally:
        store.stop()


def test_a_bucket_is_not_asked_for_what_nobody_wants(start_server, tmp_path):
    store = object_stores.FakeGoogle()
    store.start()
    try:
        models.write_model(tmp_path / "source", "a", IDENTITY)
        object_stores.put_folder(store, tmp_path / "source", "models/")
        env = store.environment(tmp_path / "cache", tmp_path)
        repository = store.url("bucket/models")
        ask("load", "a", repository, env)
        server = start_server(repository, args=EXPLICIT, env=env)
        # A look comes before the server is ready, so that what is wanted is loaded then.
        assert not serves(server, "a")
    finally:
        store.stop()


def test_a_server_ends_at_once_while_its_bucket_is_silent(start_server, tmp_path):
    store = object_stores.FakeGoogle()
    store.start()
    try:
        models.write_model(tmp_path / "source", "a", IDENTITY)
        object_stores.put_folder(store, tmp_path / "source", "models/")
        env = store.environment(tmp_path / "cache", tmp_path)
        server = start_server(store.url("bucket/models"), args=[*EXPLICIT, *LOOKS, "--exit-timeout-secs=30"], env=env)
        blocked = concurrent.futures.Future()
        release = concurrent.futures.Future()

        def hang(_):
            if not blocked.done():
                blocked.set_result(None)
            release.result()

        store.on_read = hang
        blocked.result(60 * servers.SLOWNESS)
        try:
            server.process.terminate()
            # The request is cancelled; that no work is left over is the exit status.
            assert server.process.wait(60 * servers.SLOWNESS) == 0
        finally:
            release.set_result(None)
    finally:
        store.stop()


def test_the_file_is_no_model_and_no_mistake(repository):
    ask("load", "a", repository)
    assert (pathlib.Path(repository) / FILE).exists()
    done = run("check", repository)
    assert done.returncode == SUCCESS, done.stdout
    assert FILE not in done.stdout
