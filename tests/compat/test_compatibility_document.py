# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md says what is served; the server is asked whether that is so."""

import json
import pathlib
import re

import grpc
import pytest
from harness import server as servers
from harness import wire

from compat import protocol

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "compatibility.md").read_text()

pytestmark = pytest.mark.skipif(servers.REFERENCE, reason="a document about this server")


def rows(title):
    """The cells of the table under a title, without its head."""
    section = DOCUMENT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_flags(require_server):
    usage = servers.run_to_end(["--help"]).stdout
    assert {flag for flag, *_ in rows("Flags")} == set(re.findall(r"^ *(--[a-z0-9-]+)", usage, re.M))


def endpoints():
    """Every (method, path), with and without the part in brackets."""
    for method, path, *_ in rows("HTTP endpoints"):
        yield from {(method, re.sub(r"\[(.*?)\]", part, path)) for part in ("", r"\1")}


# Its answer ends with the server.
ENDLESS = ("GET", "/ui/api/live")


@pytest.mark.parametrize(("method", "path"), sorted(set(endpoints()) - {ENDLESS}))
def test_endpoints(server, method, path):
    filled = path.format(model="id_FP32", version="1", region="r", repository="models", trace="1")
    reply = wire.request(server, method, filled, b"{}" if method == "POST" else b"")
    assert reply.error not in ("Not Found", "Method Not Allowed"), reply
    assert "is not supported by this server" not in (reply.error or ""), reply


def test_endpoints_are_those_of_the_openapi_document():
    paths = json.loads((ROOT / "src/frontends/http/openapi.json").read_text())["paths"]
    operations = {(name.upper(), path) for path, names in paths.items() for name in names if name != "parameters"}
    assert set(endpoints()) == operations


def test_rpcs(server):
    assert {rpc for rpc, _ in rows("gRPC")} == {method.name for method in protocol.SERVICE.methods}


@pytest.mark.parametrize("rpc", [row[0] for row in rows("gRPC")])
def test_each_rpc(server, rpc):
    given, answer = protocol.classes(rpc)
    path = f"/inference.GRPCInferenceService/{rpc}"
    with grpc.insecure_channel(server.grpc) as channel:
        try:
            if rpc == "ModelStreamInfer":
                list(channel.stream_stream(path, given.SerializeToString, answer.FromString)(iter([])))
            else:
                channel.unary_unary(path, given.SerializeToString, answer.FromString)(given())
        except grpc.RpcError as error:
            # Only a method that does not exist is refused without a word.
            assert error.details(), f"{rpc} is not served"


def test_metrics(server):
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    given, headers = protocol.encode({"json": body})
    assert wire.request(server, "POST", "/v2/models/id_FP32/infer", given, headers).status == 200
    names = {name for name, _ in server.scrape()}
    # A histogram's family stands on the page under three names.
    histograms = {name.removesuffix("_bucket") for name in names if name.endswith("_bucket")}
    parts = {f"{family}_{part}" for family in histograms for part in ("bucket", "sum", "count")}
    on_page = (names - parts) | histograms
    families = dict(rows("Metrics"))
    assert not {name for name, state in families.items() if state in ("works", "ours")} - on_page
    # Backends show metrics of their own under any name.
    assert not {name for name in on_page if name.startswith(("nv_", "nereid_"))} - set(families)
