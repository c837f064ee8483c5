#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills in what is expected in cases that do not say it yet, from what a server answers. To be read and
corrected by hand afterwards: what a server answers is not always right.

    cd tests && python -m compat.record compat/cases/http_x.json
"""

import json
import pathlib
import sys
import tempfile

import grpc
from harness import repository, wire
from harness import server as servers

from compat import protocol
from compat.kinds import Pool


def record_http(server, request):
    body, headers = protocol.encode(request)
    reply = wire.request(server, request["method"], request["path"], body, headers)
    if reply.error is not None:
        return {"status": reply.status, "error": reply.error}
    try:
        text, binary = wire.split_reply(reply)
    except ValueError:
        return {"status": reply.status, "text": reply.body.decode(errors="backslashreplace")}
    return {"status": reply.status, "json": text} | ({"binary": binary.hex()} if binary else {})


def record_grpc(server, request):
    given, answer = protocol.classes(request["rpc"])
    with grpc.insecure_channel(server.grpc) as channel:
        path = f"/inference.GRPCInferenceService/{request['rpc']}"
        metadata = list(request.get("metadata", {}).items())
        try:
            if "messages" in request:
                call = channel.stream_stream(path, given.SerializeToString, answer.FromString)
                stream = call(iter([protocol.to_message(given, m) for m in request["messages"]]), metadata=metadata)
                return {"code": "OK", "messages": [protocol.to_json(reply) for reply in stream]}
            call = channel.unary_unary(path, given.SerializeToString, answer.FromString)
            reply = call(protocol.to_message(given, request.get("message", {})), metadata=metadata)
            return {"code": "OK", "message": protocol.to_json(reply)}
        except grpc.RpcError as error:
            return {"code": error.code().name, "error": error.details()}


def record_command(request):
    process = servers.run_to_end(request["command"])
    return {"exit": process.returncode, "output_contains": process.stdout.splitlines()[-1:]}


def fill(step, get_server):
    if "expect" in step:
        return
    request = step["request"]
    if "command" in request:
        step["expect"] = record_command(request)
    elif "rpc" in request:
        step["expect"] = record_grpc(get_server(), request)
    else:
        step["expect"] = record_http(get_server(), request)


def write(path, content):
    """One case in one line."""
    head = {name: value for name, value in content.items() if name != "cases"}
    lines = ",\n".join("    " + json.dumps(case, ensure_ascii=False) for case in content["cases"])
    text = json.dumps(head, indent=2, ensure_ascii=False)
    path.write_text(text[: -len("\n}")] + ',\n  "cases": [\n' + lines + "\n  ]\n}\n")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        repository.write(folder / "shared", with_onnx=servers.has_backend("onnxruntime"))
        pool = Pool(lambda _kind: pathlib.Path(tempfile.mkdtemp(dir=folder)), folder / "shared")
        for path in map(pathlib.Path, sys.argv[1:]):
            content = json.loads(path.read_text())
            for case in content["cases"]:
                for step in protocol.steps(case):
                    try:
                        fill(step, lambda: pool.get(content.get("server", "shared")))
                    except (OSError, EOFError) as error:
                        print(f"{path.name}: {case['name']}: {error!r}")
            write(path, content)
        pool.stop()


if __name__ == "__main__":
    main()
