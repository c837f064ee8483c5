# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document against the server that serves it: schemathesis makes requests from the
document and checks that every answer is one that the document names."""

import json
import re

import hypothesis
import pytest
import requests
import schemathesis
from schemathesis.specs.openapi import checks

from harness import cloud, models
from harness import server as servers
from harness.routes import CONSOLE_ROUTES, ROUTES

pytestmark = pytest.mark.newer  # ours

# Not "no status 500": Triton's clients know 500 for JSON that does not parse, and 501.
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    """A server of its own: settings may be changed, and are."""
    repository = tmp_path_factory.mktemp("openapi")
    cloud.write_models(repository, "pair")
    config = models.identity_config("BYTES", [1, -1])
    models.write_model(repository, "texts", config)
    args = ["--allow-client-shm=true"]
    with servers.running(repository, args=args, log_dir=tmp_path_factory.mktemp("log")) as running:
        yield running


@pytest.fixture(scope="module")
def document(server):
    reply = requests.get(f"http://{server.http}/openapi.json", timeout=30)
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "application/json"
    return reply.json()


# The models that there are, among the names that schemathesis makes up.
@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and "model" in path_parameters:
        name = path_parameters["model"]
        if len(name) % 3 != 1:
            path_parameters["model"] = ["texts", "pair"][len(name) % 2]
        if "version" in path_parameters and len(name) % 2:
            path_parameters["version"] = "1"
    return path_parameters


@pytest.fixture(scope="module")
def schema(server, document):
    return schemathesis.openapi.from_url(f"http://{server.http}/openapi.json")


DOCUMENT = json.loads((servers.ROOT / "src/frontends/http/openapi.json").read_text())
OPERATIONS = [
    (path, method) for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"
]
# Its answer ends with the server.
ENDLESS = ("/ui/api/live", "get")


def test_the_document_is_the_one_beside_the_code(document):
    assert document == DOCUMENT


def test_tests_of_restrictions_know_every_operation():
    known = {route for routes in ROUTES.values() for route in routes}
    known |= {(method, path) for method, path, _ in CONSOLE_ROUTES}

    def is_known(path, method):
        pattern = re.sub(r"\{\w+\}", "[^/]+", path)
        return any(name == method.upper() and re.fullmatch(pattern, route) for name, route in known)

    assert [operation for operation in OPERATIONS if not is_known(*operation)] == []


@pytest.mark.parametrize("path, method", [operation for operation in OPERATIONS if operation != ENDLESS])
def test_every_answer_is_one_that_the_document_names(schema, path, method):
    @hypothesis.given(case=schema[path][method].as_strategy())
    @hypothesis.settings(max_examples=10, derandomize=True, deadline=None, database=None)
    def ask(case):
        case.call_and_validate(checks=CHECKS, timeout=30)

    ask()


def test_real_requests_fit_the_document(server, document):
    """What the generated requests seldom hit: answers of status 200 from models."""
    api = schemathesis.openapi.from_dict(document)
    url = f"http://{server.http}/v2/models/pair"
    for path, method, reply in [
        ("/v2/models/{model}/infer", "POST", requests.post(url + "/infer", cloud.json_body(), timeout=30)),
        ("/v2/models/{model}/generate", "POST", generate(server)),
        ("/v2/models/{model}/config", "GET", requests.get(url + "/config", timeout=30)),
        ("/v2/models/{model}/stats", "GET", requests.get(url + "/stats", timeout=30)),
    ]:
        assert reply.status_code == 200
        api[path][method].validate_response(reply)


def test_answers_that_generated_requests_hardly_hit(server, document):
    api = schemathesis.openapi.from_dict(document)
    url = f"http://{server.http}/v2"
    # The time is over when the request has been read.
    late = {"timeout": 30, "headers": {"Request-Timeout": "1us"}}
    text = {"INPUT0": ["a", "b"]}
    for path, method, status, reply in [
        ("/v2/models/{model}/infer", "POST", 504, requests.post(f"{url}/models/pair/infer", cloud.json_body(), **late)),
        ("/v2/models/{model}/generate", "POST", 504, requests.post(f"{url}/models/texts/generate", json=text, **late)),
        ("/v2/models/{model}/generate_stream", "POST", 504, requests.post(f"{url}/models/texts/generate_stream", json=text, **late)),
        ("/v2/models/{model}/ready", "GET", 200, requests.get(f"{url}/models/pair/ready?verbose", timeout=30)),
        ("/v2/repository/{repository}/models/{model}/load", "POST", 501, requests.post(f"{url}/repository/r/models/pair/load", timeout=30)),
    ]:
        assert reply.status_code == status, (path, reply.text)
        assert str(status) in document["paths"][path][method.lower()]["responses"], path
        api[path][method].validate_response(reply)


def test_what_a_server_answers_that_has_too_many_connections(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert method == "parameters" or "503" in operation["responses"], (method, path)


def generate(server):
    url = f"http://{server.http}/v2/models/texts/generate"
    return requests.post(url, json={"INPUT0": ["a", "b"]}, timeout=30)


def test_methods_that_a_path_does_not_have(server, document):
    for path, item in document["paths"].items():
        url = f"http://{server.http}" + path.format(model="m", version="1", repository="r", region="x", trace="1")
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            if method.lower() in item:
                continue
            reply = requests.request(method, url, timeout=30)
            assert reply.status_code == 405, (method, path)
            assert set(reply.headers["Allow"].split(", ")) - {"HEAD"} == {
                m.upper() for m in item if m != "parameters"
            }
