# SPDX-License-Identifier: Apache-2.0
"""Asks a server all cases of a framework, and notes what it says."""

import pathlib
import re

import numpy as np
import tritonclient.grpc
import tritonclient.utils
from harness import models, wire
from harness import server as servers

from compat.frameworks import openvino_cases, pytorch_cases

FRAMEWORKS = {"pytorch": pytorch_cases, "openvino": openvino_cases}
ENDED = {"status": "the server ended"}


def cases(framework):
    return list(FRAMEWORKS[framework].cases())


def write(path, framework):
    """The models of all cases."""
    repository = FRAMEWORKS[framework].Repository(path)
    for case in cases(framework):
        if case.files is not None:
            models.write_model(path, case.name, case.config, {"1": case.files})
        elif case.made is not None:
            repository.add(case.name, *case.made, case.config, file_name=case.file_name or "model.xml")
        else:
            file_name = case.file_name or "model.pt"
            repository.add(case.name, case.code, case.config, case.weights, file_name=file_name)
    repository.write()


def to_bytes(datatype, array):
    if datatype != "BYTES":
        return array.tobytes()
    made = tritonclient.utils.serialize_byte_tensor(array)
    return made.item() if made.size else b""


def to_list(datatype, content):
    """The elements in their order; texts in Latin-1, which has all bytes."""
    if datatype == "BYTES":
        return [text.decode("latin-1") for text in tritonclient.utils.deserialize_bytes_tensor(content)]
    return np.frombuffer(content, models.TYPES[datatype][1]).astype(np.float64).tolist()


def of_http(server, model, request):
    tensors = [(n, t, a.shape, to_bytes(t, a)) for n, t, a in request.tensors]
    outputs = request.outputs and [{"name": name, "parameters": {"binary_data": True}} for name in request.outputs]
    parameters = {**request.options, "binary_data_output": True}
    body, headers = wire.infer_body(tensors, outputs, parameters=parameters)
    reply = wire.request(server, "POST", f"/v2/models/{model}/infer", body, headers)
    if reply.error is not None:
        return {"status": reply.status, "error": reply.error}
    head, binary = wire.split_reply(reply)
    made = []
    for output in head["outputs"]:
        size = output["parameters"]["binary_data_size"]
        content, binary = binary[:size], binary[size:]
        data = to_list(output["datatype"], content)
        made.append([output["name"], output["datatype"], output["shape"], data])
    return {"status": reply.status, "outputs": made}


def of_grpc(client, model, request):
    tensors = []
    for name, datatype, array in request.tensors:
        tensors.append(tritonclient.grpc.InferInput(name, list(array.shape), datatype))
        tensors[-1].set_data_from_numpy(array)
    outputs = request.outputs and [tritonclient.grpc.InferRequestedOutput(name) for name in request.outputs]
    try:
        result = client.infer(model, tensors, outputs=outputs, **request.options).get_response()
    except tritonclient.utils.InferenceServerException as error:
        return {"code": error.status().removeprefix("StatusCode."), "error": error.message()}
    made = []
    for output, content in zip(result.outputs, result.raw_output_contents):
        made.append([output.name, output.datatype, list(output.shape), to_list(output.datatype, content)])
    return {"code": "OK", "outputs": made}


def of_request(server, client, model, request):
    """What both protocols say; what is the same over gRPC is noted once."""
    noted, other = of_http(server, model, request), of_grpc(client, model, request)
    noted["code"] = other.pop("code")
    for key, value in other.items():
        if noted.get(key) != value:
            noted[f"grpc_{key}"] = value
    return noted


def of_load(server, model):
    reply = wire.request(server, "POST", f"/v2/repository/models/{model}/load")
    return {"status": reply.status} | ({"error": reply.error} if reply.error is not None else {})


def of_metadata(server, model):
    made = wire.request(server, "GET", f"/v2/models/{model}").json()
    return {member: made[member] for member in ("platform", "inputs", "outputs")}


def of_config(server, model):
    made = wire.request(server, "GET", f"/v2/models/{model}/config").json()
    noted = {member: made[member] for member in ("platform", "backend", "max_batch_size")}
    for member in ("input", "output"):
        noted[member] = [[t["name"], t["data_type"], t["dims"], t.get("reshape")] for t in made[member]]
    return noted


def of_case(server, case):
    noted = {"load": of_load(server, case.name)}
    if noted["load"]["status"] == 200:
        noted["metadata"] = of_metadata(server, case.name)
        noted["config"] = of_config(server, case.name)
        with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
            for request in case.requests:
                noted[request.name] = of_request(server, client, case.name, request)
        wire.request(server, "POST", f"/v2/repository/models/{case.name}/unload")
    return noted


def cleaned(value, path):
    """Without what is another one each time: the folder of the repository, and addresses in PyTorch's texts."""
    if isinstance(value, dict):
        return {key: cleaned(one, path) for key, one in value.items()}
    if isinstance(value, str):
        return re.sub(r"\nException raised from .*", "", value.replace(str(path), "<repository>"), flags=re.DOTALL)
    return value


def ask(framework, folder):
    """{model: {load, metadata, config and each request: what the server says}} of the server under test."""
    path = pathlib.Path(folder) / "models"
    path.mkdir()
    write(path, framework)
    args = ["--model-control-mode=explicit"]
    server, noted = None, {}
    try:
        for case in cases(framework):
            if server is None or server.process.poll() is not None:
                server = servers.start(path, args=args, log_dir=folder)
            try:
                noted[case.name] = cleaned(of_case(server, case), path)
            except (OSError, EOFError):
                noted[case.name] = {"load": ENDED}
    finally:
        server.stop(check=False)
    return noted
