# SPDX-License-Identifier: Apache-2.0
"""Accounts, keys and tokens for model repositories in clouds: where they are found, that they are renewed before
they expire, what is told when they are refused, and that no secret is."""

import json

import pytest
from harness import object_stores, s3, token_servers
from harness import server as servers
from harness.remote_models import POLL, infer_identity, is_ready, start_failing, write_identity

pytestmark = pytest.mark.skipif(
    servers.REFERENCE, reason="the reference server's release is built without clouds"
)


@pytest.fixture
def tokens(tmp_path):
    server = token_servers.TokenServer(tmp_path)
    server.start()
    yield server
    server.stop()


def running(fake, tmp_path):
    fake.start()
    object_stores.put_folder(fake, write_identity(tmp_path / "made", "m"), "m/")
    return fake


@pytest.fixture
def google(tokens, tmp_path):
    """A bucket that is read with a token only."""
    fake = running(object_stores.FakeGoogle(), tmp_path)
    fake.tokens = tokens
    yield fake
    fake.stop()


@pytest.fixture
def azure(tmp_path):
    """A container that is read with the key of its account, or a token once `tokens` is set."""
    fake = running(object_stores.FakeAzure(), tmp_path)
    yield fake
    fake.stop()


@pytest.fixture
def bucket(tmp_path):
    """A bucket of an S3 server."""
    write_identity(tmp_path / "s3" / "bucket", "m")
    with s3.running(tmp_path / "s3", tmp_path / "s3.log") as server:
        yield server


# --- Google -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["service_account", "authorized_user"])
def test_a_file_of_google_gives_tokens(start_server, google, tokens, tmp_path, kind):
    credentials = getattr(tokens, kind)()
    environment = google.environment(tmp_path / "cache", tmp_path, GOOGLE_APPLICATION_CREDENTIALS=credentials)
    infer_identity(start_server(google.url("bucket"), env=environment), "m")
    # One token for the list and all downloads.
    assert tokens.requests == [{"service_account": "assertion", "authorized_user": "refresh token"}[kind]]


def test_the_entry_with_the_longest_name_is_used_for_google(start_server, google, tokens, tmp_path):
    credentials = tmp_path / "cloud.json"
    entries = {"": "/nonexistent", "gs://bucket": tokens.authorized_user(), "gs://bucket/x": "/nonexistent"}
    credentials.write_text(json.dumps({"gs": entries}))
    environment = google.environment(
        tmp_path / "cache", tmp_path, TRITON_CLOUD_CREDENTIAL_PATH=str(credentials)
    )
    infer_identity(start_server(google.url("bucket"), env=environment), "m")
    assert tokens.requests == ["refresh token"]
    credentials.write_text(json.dumps({"gs": {"gs://elsewhere": "x"}}))
    log = start_failing(start_server, google.url("bucket"), env=environment)
    assert "Cannot match credential for path  gs://bucket" in log


def test_a_refused_request_to_google_names_the_bucket_and_no_secret(start_server, google, tokens, tmp_path):
    # Without an account.
    log = start_failing(
        start_server, google.url("bucket"), env=google.environment(tmp_path / "cache", tmp_path)
    )
    assert "Unable to create GCS client. Check account credentials." in log
    assert "Anonymous caller does not have storage.objects.list access (HTTP status 401)" in log
    assert f"bucket 'bucket' at http://127.0.0.1:{google.port}" in log
    # With an account that the token server does not know.
    tokens.refuses = True
    environment = google.environment(
        tmp_path / "cache", tmp_path, GOOGLE_APPLICATION_CREDENTIALS=tokens.authorized_user()
    )
    log = start_failing(start_server, google.url("bucket"), env=environment)
    assert "invalid_client: Not you." in log and "bucket 'bucket'" in log
    assert token_servers.SECRET not in log and "refresh_token" not in log
    # With a token that the bucket does not accept.
    tokens.refuses = False
    tokens.is_good = lambda token: False
    log = start_failing(start_server, google.url("bucket"), env=environment)
    assert "Invalid Credentials (HTTP status 401)" in log
    assert "token-" not in log


def test_a_file_that_is_no_key_is_told_without_its_content(start_server, google, tmp_path):
    key = tmp_path / "key.json"
    key.write_text('{"type": "service_account", "client_email": "me", "private_key": "my-secret"}')
    environment = google.environment(tmp_path / "cache", tmp_path, GOOGLE_APPLICATION_CREDENTIALS=str(key))
    log = start_failing(start_server, google.url("bucket"), env=environment)
    assert "service account 'me': the private key is not an RSA key" in log
    assert "my-secret" not in log
    environment["GOOGLE_APPLICATION_CREDENTIALS"] = str(tmp_path / "missing.json")
    log = start_failing(start_server, google.url("bucket"), env=environment)
    assert "missing.json" in log


# --- Azure ------------------------------------------------------------------------------------


def test_a_wrong_key_of_azure_is_told_with_the_container(start_server, azure, tmp_path):
    environment = azure.environment(tmp_path / "cache", tmp_path, key=object_stores.OTHER_KEY)
    log = start_failing(start_server, azure.url("bucket"), env=environment)
    assert "Unable to create Azure filesystem client. Check account credentials." in log
    assert "AuthenticationFailed: Server failed to authenticate the request. (HTTP status 403)" in log
    assert f"container 'bucket' at http://127.0.0.1:{azure.port}" in log
    assert object_stores.OTHER_KEY not in log
    log = start_failing(start_server, azure.url("bucket"), env={**environment, "AZURE_STORAGE_KEY": "my key"})
    assert "the key of the storage account is not base64" in log and "my key" not in log


@pytest.mark.parametrize("scheme", ["as", "azure"])
def test_the_entry_with_the_longest_name_is_used_for_azure(start_server, azure, tmp_path, scheme):
    """Entries are spelled as for Triton, whichever way the repository is."""
    endpoint = f"http://127.0.0.1:{azure.port}/{object_stores.ACCOUNT}"
    account = {"account_str": object_stores.ACCOUNT, "endpoint": endpoint}
    entries = {
        "": account | {"account_key": object_stores.OTHER_KEY},
        azure.url("bucket"): account | {"account_key": object_stores.ACCOUNT_KEY},
    }
    credentials = tmp_path / "cloud.json"
    credentials.write_text(json.dumps({"as": entries}))
    environment = azure.environment(
        tmp_path / "cache", tmp_path, TRITON_CLOUD_CREDENTIAL_PATH=str(credentials)
    )
    repository = azure.url("bucket").replace("as://", f"{scheme}://")
    infer_identity(start_server(repository, env=environment), "m")


def test_a_connection_string_is_enough(start_server, azure, tmp_path):
    environment = azure.environment(tmp_path / "cache", tmp_path)
    for name in ("AZURE_STORAGE_SERVICE_ENDPOINT", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"):
        environment[name] = ""
    environment["AZURE_STORAGE_CONNECTION_STRING"] = (
        f"DefaultEndpointsProtocol=http;AccountName={object_stores.ACCOUNT};"
        f"AccountKey={object_stores.ACCOUNT_KEY};"
        f"BlobEndpoint=http://127.0.0.1:{azure.port}/{object_stores.ACCOUNT};"
    )
    infer_identity(start_server(azure.url("bucket"), env=environment), "m")


def test_a_shared_access_signature_is_enough_and_is_not_told(start_server, azure, tmp_path):
    environment = azure.environment(tmp_path / "cache", tmp_path, key="")
    environment["AZURE_STORAGE_SAS_TOKEN"] = "?" + object_stores.SIGNATURE
    server = start_server(azure.url("bucket"), args=["--log-verbose=2"], env=environment)
    infer_identity(server, "m")
    assert "signature" not in server.log
    log = start_failing(start_server, azure.url("elsewhere"), env=environment)
    assert "ContainerNotFound" in log and "sig=" not in log


AZURE_ACCESS = {
    "secret": {"AZURE_CLIENT_SECRET": token_servers.SECRET},
    "workload": {"AZURE_FEDERATED_TOKEN_FILE": "federated"},
    "azure machine": {"AZURE_STORAGE_AUTH_TYPE": "default"},
    "azure machine mine": {"AZURE_STORAGE_AUTH_TYPE": "managed_identity", "AZURE_STORAGE_CLIENT_ID": "mine"},
}


@pytest.mark.parametrize("kind", AZURE_ACCESS)
def test_an_identity_of_azure_gives_tokens(start_server, azure, tokens, tmp_path, kind):
    azure.tokens = tokens
    environment = azure.environment(tmp_path / "cache", tmp_path, key="", **AZURE_ACCESS[kind])
    environment |= {"AZURE_AUTHORITY_HOST": tokens.url, "AZURE_POD_IDENTITY_AUTHORITY_HOST": tokens.url}
    if kind in ("secret", "workload"):
        environment |= {"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "application"}
    if kind == "workload":
        (tmp_path / "federated").write_text("federated\n")
        environment["AZURE_FEDERATED_TOKEN_FILE"] = str(tmp_path / "federated")
    infer_identity(start_server(azure.url("bucket"), env=environment), "m")
    assert tokens.requests == [kind]
    tokens.refuses = True
    log = start_failing(start_server, azure.url("bucket"), env=environment)
    assert "gives no token: HTTP status 401: invalid_client: Not you." in log
    assert "container 'bucket'" in log
    assert token_servers.SECRET not in log and "token-" not in log and "Sent was" not in log


# --- Amazon -----------------------------------------------------------------------------------

AMAZON_SOURCES = {
    "web identity": {"AWS_ROLE_ARN": token_servers.ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "{file}"},
    "container": {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/container/keys",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "{file}",
    },
    "amazon machine": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "{url}"},
}


def amazon_environment(kind, tokens, tmp_path):
    (tmp_path / "federated").write_text("federated\n")
    tokens.keys = (s3.KEY, s3.SECRET)
    environment = s3.environment(tmp_path / "cache", tmp_path, AWS_ENDPOINT_URL_STS=tokens.url)
    environment |= {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    for name, value in AMAZON_SOURCES[kind].items():
        environment[name] = value.format(url=tokens.url, file=tmp_path / "federated")
    return environment


@pytest.mark.parametrize("kind", AMAZON_SOURCES)
def test_temporary_keys_of_amazon_are_found_and_renewed(start_server, bucket, tokens, tmp_path, kind):
    tokens.lifetime = 8
    environment = amazon_environment(kind, tokens, tmp_path)
    server = start_server(bucket.url("bucket"), args=POLL, env=environment)
    infer_identity(server, "m")
    servers.wait_until(lambda: tokens.requests.count(kind) >= 3, "the keys are renewed", timeout=60)
    write_identity(tmp_path / "s3" / "bucket", "later")
    servers.wait_until(lambda: is_ready(server, "later"), "a model that is fetched with them")
    assert set(tokens.requests) == {kind}


def test_the_profile_may_name_a_web_identity(start_server, bucket, tokens, tmp_path):
    environment = amazon_environment("web identity", tokens, tmp_path)
    environment |= {"AWS_ROLE_ARN": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_PROFILE": "models"}
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        f"[profile models]\nrole_arn = {token_servers.ROLE}\n"
        f"web_identity_token_file = {tmp_path / 'federated'}\n"
    )
    infer_identity(start_server(bucket.url("bucket"), env=environment), "m")
    assert tokens.requests == ["web identity"]


@pytest.mark.parametrize("kind", ["web identity", "container"])
def test_a_refused_identity_of_amazon_is_told_without_its_token(start_server, bucket, tokens, tmp_path, kind):
    environment = amazon_environment(kind, tokens, tmp_path)
    tokens.refuses = True
    log = start_failing(start_server, bucket.url("bucket"), env=environment)
    assert "Unable to create S3 filesystem client. Check account credentials." in log
    assert "HTTP status 401" in log and "bucket 'bucket'" in log
    assert "federated" not in log.replace(str(tmp_path / "federated"), "")


def test_a_machine_without_keys_is_told(start_server, bucket, azure, tokens, tmp_path):
    environment = amazon_environment("amazon machine", tokens, tmp_path) | {"AWS_EC2_METADATA_DISABLED": "true"}
    log = start_failing(start_server, bucket.url("bucket"), env=environment)
    assert f"bucket 'bucket' at http://127.0.0.1:{bucket.port}; no keys were found" in log
    assert tokens.requests == []
    environment = azure.environment(tmp_path / "cache", tmp_path, key="")
    log = start_failing(start_server, azure.url("bucket"), env=environment)
    assert "; no keys were found" in log


# --- Renewal ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", ["gs", "as"])
def test_tokens_are_renewed_before_they_expire(start_server, tokens, tmp_path, cloud):
    fake = running({"gs": object_stores.FakeGoogle, "as": object_stores.FakeAzure}[cloud](), tmp_path)
    fake.tokens = tokens
    tokens.lifetime = 8
    environment = fake.environment(tmp_path / "cache", tmp_path)
    if cloud == "gs":
        environment["GOOGLE_APPLICATION_CREDENTIALS"] = tokens.authorized_user()
    else:
        environment |= {"AZURE_STORAGE_KEY": "", "AZURE_STORAGE_AUTH_TYPE": "managed_identity"}
        environment["AZURE_POD_IDENTITY_AUTHORITY_HOST"] = tokens.url
    server = start_server(fake.url("bucket"), args=POLL, env=environment)
    servers.wait_until(lambda: len(tokens.requests) >= 3, "the token is renewed", timeout=60)
    object_stores.put_folder(fake, write_identity(tmp_path / "made", "later"), "later/")
    servers.wait_until(lambda: is_ready(server, "later"), "a model that is fetched with it")
    assert "failed to poll" not in server.log
    # Many downloads at once still need one token only.
    assert len(tokens.requests) < 12
    fake.stop()


def test_a_token_that_was_withdrawn_is_replaced(start_server, google, tokens, tmp_path):
    environment = google.environment(
        tmp_path / "cache", tmp_path, GOOGLE_APPLICATION_CREDENTIALS=tokens.authorized_user()
    )
    server = start_server(google.url("bucket"), args=POLL, env=environment)
    tokens.issued.clear()
    # A new token is not doubted before ten seconds have passed.
    servers.wait_until(lambda: len(tokens.requests) == 2, "another token", timeout=40)
    object_stores.put_folder(google, write_identity(tmp_path / "made", "later"), "later/")
    servers.wait_until(lambda: is_ready(server, "later"), "a model that is fetched with it", timeout=40)
