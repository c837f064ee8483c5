# SPDX-License-Identifier: Apache-2.0
"""Model repositories in S3, against a real S3 server on this machine that checks signatures."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from harness import certificates, models, python_package, s3, wire
from harness import server as servers
from harness.clients import Client
from harness.remote_models import (
    POLL,
    add_or_subtract,
    compare_servers,
    get,
    infer_identity,
    start_failing,
    start_while_away,
    write_identity,
    write_models,
)

pytestmark = pytest.mark.skipif(
    servers.REFERENCE, reason="the reference server's release is built without S3"
)


@pytest.fixture
def bucket(tmp_path):
    """A running S3 server with a bucket named "bucket"."""
    (tmp_path / "s3" / "bucket").mkdir(parents=True)
    with s3.running(tmp_path / "s3", tmp_path / "s3.log") as server:
        yield server


@pytest.fixture
def proxy(bucket):
    between = s3.Proxy(bucket.port)
    yield between
    between.close()


@pytest.fixture
def environment(tmp_path):
    return s3.environment(tmp_path / "cache", tmp_path)


# --- The same models --------------------------------------------------------------------------


def test_the_same_models_are_served_as_from_a_folder(start_server, bucket, environment, tmp_path):
    write_models(tmp_path / "s3" / "bucket" / "models")
    local = start_server(tmp_path / "s3" / "bucket" / "models")
    remote = start_server(bucket.url("bucket/models"), env=environment)
    compare_servers(local, remote)


def test_keys_with_odd_characters_are_found(start_server, bucket, environment, tmp_path):
    folder = write_identity(tmp_path / "s3" / "bucket" / "a b+c", "m ~1%2F")
    (folder / "1" / "ünïcode &=+?#.bin").write_bytes(b"x")
    server = start_server(bucket.url("bucket/a b+c"), env=environment)
    client = Client("grpc", server)
    assert client.client.is_model_ready("m ~1%2F")
    client.close()
    cached = [path.name for path in (tmp_path / "cache").rglob("*.bin")]
    assert "ünïcode &=+?#.bin" in cached


def test_a_profile_and_a_credential_file_give_keys(start_server, bucket, environment, tmp_path):
    write_identity(tmp_path / "s3" / "bucket", "m")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        environment[name] = ""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id = no\naws_secret_access_key = no\n"
        f"[models]\naws_access_key_id = {s3.KEY}\naws_secret_access_key = {s3.SECRET}\n"
    )
    server = start_server(bucket.url("bucket"), env={**environment, "AWS_PROFILE": "models"})
    infer_identity(server, "m")
    credentials = tmp_path / "cloud.json"
    credentials.write_text(
        json.dumps(
            {
                "s3": {
                    "": {"key_id": "no", "secret_key": "no"},
                    bucket.url("bucket"): {"key_id": s3.KEY, "secret_key": s3.SECRET},
                }
            }
        )
    )
    server = start_server(
        bucket.url("bucket"), env={**environment, "TRITON_CLOUD_CREDENTIAL_PATH": str(credentials)}
    )
    infer_identity(server, "m")


def test_tls_with_an_authority_of_ones_own(start_server, environment, tmp_path):
    authority = certificates.make(tmp_path, "authority")
    certificate = certificates.make(tmp_path, "s3", authority)
    write_identity(tmp_path / "s3" / "bucket", "m")
    with s3.running(tmp_path / "s3", tmp_path / "s3.log", certificate) as bucket:
        log = start_failing(start_server, bucket.url("bucket"), env=environment)
        assert "curlCode: 60" in log  # nobody vouches for it
        server = start_server(
            bucket.url("bucket"), env={**environment, "AWS_CA_BUNDLE": str(authority.cert)}
        )
        infer_identity(server, "m")


# --- Errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("AWS_SECRET_ACCESS_KEY", "another", "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "nobody", "InvalidAccessKeyId"),
    ],
)
def test_a_wrong_key_is_told_with_the_bucket(
    start_server, bucket, environment, tmp_path, variable, value, code
):
    write_identity(tmp_path / "s3" / "bucket", "m")
    log = start_failing(start_server, bucket.url("bucket"), env={**environment, variable: value})
    assert "Unable to create S3 filesystem client. Check account credentials." in log
    assert code in log
    assert f"bucket 'bucket' at http://127.0.0.1:{bucket.port}" in log
    assert s3.SECRET not in log


def test_a_bucket_or_folder_that_is_not_there_is_told(start_server, bucket, environment):
    log = start_failing(start_server, bucket.url("elsewhere"), env=environment)
    assert "NoSuchBucket" in log and "bucket 'elsewhere'" in log
    log = start_failing(start_server, bucket.url("bucket/nothing"), env=environment)
    assert "repository path is not a valid directory" in log


def test_a_server_that_is_away_is_tried_again_and_told(start_server, bucket, environment):
    bucket.stop()
    log = start_failing(start_server, bucket.url("bucket"), env=environment)
    assert "trying again (5 of 5)" in log
    assert "curlCode: 7" in log and f"http://127.0.0.1:{bucket.port}" in log


def test_a_server_that_comes_back_is_found(start_server, bucket, proxy, environment, tmp_path):
    write_identity(tmp_path / "s3" / "bucket", "m")
    server = start_while_away(
        lambda: start_server(bucket.url("bucket", proxy.port), env=environment, wait=False),
        lambda: setattr(proxy, "is_away", True),
        lambda: setattr(proxy, "is_away", False),
    )
    infer_identity(server, "m")


# --- What is fetched --------------------------------------------------------------------------


def test_an_interrupted_download_goes_on_where_it_ended(
    start_server, bucket, proxy, environment, tmp_path
):
    blob = np.random.default_rng(1).bytes(20 << 20)
    write_identity(tmp_path / "s3" / "bucket", "m", blob)
    proxy.bytes_left = 12 << 20
    log = start_failing(start_server, bucket.url("bucket", proxy.port), env=environment)
    assert "Failed to get object at s3://bucket/m/1/weights.bin" in log
    proxy.bytes_left = None
    proxy.clear()
    server = start_server(bucket.url("bucket", proxy.port), env=environment)
    infer_identity(server, "m")
    # Three connections got 12 MiB together; what they had of their last MiB is fetched again.
    assert proxy.bytes_passed < 12 << 20
    copies = list((tmp_path / "cache").rglob("weights.bin"))
    assert [copy.read_bytes() == blob for copy in copies] == [True]


def test_connections_that_break_are_made_again(start_server, bucket, proxy, environment, tmp_path):
    blob = np.random.default_rng(2).bytes(20 << 20)
    write_identity(tmp_path / "s3" / "bucket", "m", blob)
    server = start_while_away(
        lambda: start_server(bucket.url("bucket", proxy.port), env=environment, wait=False),
        lambda: setattr(proxy, "bytes_left", 3 << 20),
        lambda: setattr(proxy, "bytes_left", None),
    )
    infer_identity(server, "m")
    assert [c.read_bytes() == blob for c in (tmp_path / "cache").rglob("weights.bin")] == [True]


def test_a_restart_fetches_nothing_that_is_unchanged(
    start_server, bucket, proxy, environment, tmp_path
):
    write_identity(tmp_path / "s3" / "bucket", "same")
    write_identity(tmp_path / "s3" / "bucket", "changed", b"first")
    start_server(bucket.url("bucket", proxy.port), env=environment).stop()
    proxy.clear()
    server = start_server(bucket.url("bucket", proxy.port), env=environment)
    infer_identity(server, "same")
    assert proxy.count("prefix=") == len(proxy.requests) > 0
    server.stop()
    # The same length and, perhaps, the same second: only the ETag differs.
    (tmp_path / "s3" / "bucket" / "changed" / "1" / "weights.bin").write_bytes(b"other")
    proxy.clear()
    server = start_server(bucket.url("bucket", proxy.port), env=environment)
    assert proxy.count("GET /bucket/changed/1/weights.bin") == 1
    assert len(proxy.requests) - proxy.count("prefix=") == 1
    found = {c.read_bytes() for c in (tmp_path / "cache").rglob("weights.bin") if "changed" in c.parts}
    assert found == {b"other"}  # the state before is gone, too


def test_a_damaged_copy_is_made_anew(start_server, bucket, environment, tmp_path):
    write_identity(tmp_path / "s3" / "bucket", "m")
    start_server(bucket.url("bucket"), env=environment).stop()
    for copy in (tmp_path / "cache").rglob("weights.bin"):
        os.chmod(copy, 0o600)
        with open(copy, "ab") as file:
            file.write(b"more")
    server = start_server(bucket.url("bucket"), env=environment)
    infer_identity(server, "m")
    copies = list((tmp_path / "cache").rglob("weights.bin"))
    assert [copy.read_bytes() for copy in copies] == [b"weights"]


def test_a_cache_that_others_could_write_to_is_not_used(start_server, bucket, environment, tmp_path):
    write_identity(tmp_path / "s3" / "bucket", "m")
    planted = tmp_path / "cache" / f"nereid-s3-{os.getuid()}"
    planted.mkdir(parents=True)
    os.chmod(planted, 0o777)
    log = start_failing(start_server, bucket.url("bucket"), env=environment)
    assert "is not a folder that only this user can write to" in log


def test_one_broken_model_does_not_stop_the_others(start_server, bucket, environment, tmp_path):
    write_identity(tmp_path / "s3" / "bucket", "good")
    folder = write_identity(tmp_path / "s3" / "bucket", "bad")
    (folder / "config.pbtxt").write_text("max_batch_size: x")
    shutil.copytree(folder, tmp_path / "s3" / "bucket" / "dots..")
    server = start_server(
        bucket.url("bucket"),
        args=["--exit-on-error=false", "--strict-readiness=false"],
        env=environment,
    )
    infer_identity(server, "good")
    servers.wait_until(
        lambda: "max_batch_size: found x, expected a 32-bit integer" in server.log, "the reason"
    )


# --- Polling ----------------------------------------------------------------------------------


def test_polling_fetches_what_changed_and_nothing_else(
    start_server, bucket, proxy, environment, tmp_path
):
    folder = tmp_path / "s3" / "bucket"
    write_identity(folder, "same")
    models.write_model(folder, "calc", versions={"1": {"model.onnx": models.onnx_add_sub("FP32", [4])}})
    server = start_server(bucket.url("bucket", proxy.port), args=POLL, env=environment)
    assert add_or_subtract(server) == 1
    proxy.clear()
    # A poll is one request, whatever the number of files; besides, there are looks at the generation file.
    servers.wait_until(lambda: proxy.count("prefix=") >= 2, "polls")
    assert [line for line in list(proxy.requests) if "prefix=" not in line and "/.nereid-generation" not in line] == []
    changed = models.onnx_add_sub("FP32", [4], swap=True).SerializeToString(deterministic=True)
    (folder / "calc" / "1" / "model.onnx").write_bytes(changed)
    write_identity(folder, "added")
    servers.wait_until(lambda: add_or_subtract(server) == -1, "the changed model")
    servers.wait_until(
        lambda: wire.request(server, "GET", "/v2/models/added/ready").status == 200, "the new model"
    )
    infer_identity(server, "same")
    assert proxy.count("/same/") == 0
    shutil.rmtree(folder / "added")
    servers.wait_until(
        lambda: wire.request(server, "GET", "/v2/models/added/ready").status != 200, "its end"
    )


def test_polling_outlives_an_absence_of_s3(start_server, bucket, environment, tmp_path):
    folder = tmp_path / "s3" / "bucket"
    write_identity(folder, "m")
    server = start_server(bucket.url("bucket"), args=POLL, env=environment)
    bucket.stop()
    servers.wait_until(
        lambda: "failed to poll model repository" in server.log, "the server says so", timeout=40
    )
    assert server.is_live() and server.is_ready()
    infer_identity(server, "m")
    write_identity(folder, "later")
    bucket.start()
    servers.wait_until(
        lambda: wire.request(server, "GET", "/v2/models/later/ready").status == 200,
        "the new model",
        timeout=40,
    )
    infer_identity(server, "m")


def test_models_are_fetched_when_they_are_loaded(
    start_server, bucket, proxy, environment, tmp_path
):
    folder = tmp_path / "s3" / "bucket"
    for name in ("a", "b"):
        write_identity(folder, name)
    server = start_server(
        bucket.url("bucket", proxy.port),
        args=["--model-control-mode=explicit", "--load-model=a"],
        env=environment,
    )
    infer_identity(server, "a")
    assert proxy.count("/b/1/weights.bin") == 0
    index = wire.request(server, "POST", "/v2/repository/index").json()
    assert {entry["name"] for entry in index} == {"a", "b"}
    reply = wire.request(server, "POST", "/v2/repository/models/b/load", b"{}")
    assert reply.status == 200, reply
    infer_identity(server, "b")
    assert wire.request(server, "POST", "/v2/repository/models/b/unload", b"{}").status == 200
    bucket.stop()
    reply = wire.request(server, "POST", "/v2/repository/models/b/load", b"{}")
    assert reply.status == 500
    infer_identity(server, "a")


# --- Together with other features ---------------------------------------------------------------


def test_agents_work_on_the_copy(start_server, bucket, environment, tmp_path):
    folder = write_identity(tmp_path / "s3" / "bucket", "m")
    config = (folder / "config.pbtxt").read_text()
    agent = 'model_repository_agents { agents { name: "checksum" parameters { key: "MD5:1/weights.bin" value: "%s" } } }'
    (folder / "config.pbtxt").write_text(config + agent % "7f8f2d2b6ee1e3bf3dc4da4a0d5ca9ec")
    log = start_failing(start_server, bucket.url("bucket"), env=environment)
    assert "Mismatched MD5 hash for file 1/weights.bin" in log
    found = log.split("got: ")[1].split('"')[0].strip()
    (folder / "config.pbtxt").write_text(config + agent % found)
    infer_identity(start_server(bucket.url("bucket"), env=environment), "m")


def test_labels_are_found_in_the_copy(start_server, bucket, environment, tmp_path):
    models.copy_example(tmp_path / "s3" / "bucket", "digits")
    server = start_server(bucket.url("bucket"), env=environment)
    config = get(server, "/v2/models/digits/config")
    assert config["name"] == "digits"


PROGRAM = """
import sys, nereid, numpy
with nereid.Server(model_repository=sys.argv[1], exit_timeout=10) as server:
    (response,) = server.model("m").infer(inputs={"INPUT0": numpy.ones(3, numpy.int32)})
    print("served", response.final)
"""


def test_a_program_that_embeds_the_server_has_the_same_stores(require_server, bucket, environment, tmp_path):
    write_identity(tmp_path / "s3" / "bucket", "m")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, bucket.url("bucket")],
        env={
            **python_package.environment(),
            **environment,
            "PYTHONPATH": str(servers.build_folder() / "python"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "served True\n", done.stdout + done.stderr
