# SPDX-License-Identifier: Apache-2.0
"""A program of a user of pytriton: functions as models, asked by pytriton's own clients. Its last line says, as JSON,
what they were answered. In the environment of tools/setup --pytriton; test_pytriton_api.py runs it."""

import json
import sys

import numpy as np
from pytriton.client import DecoupledModelClient, FuturesModelClient, ModelClient
from pytriton.client.exceptions import PyTritonClientInferenceServerError
from pytriton.decorators import batch, sample
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


@batch
def add_sub(a, b):
    return {"sum": a + b, "difference": a - b}


@sample
def shout(text):
    return [np.char.encode(np.char.upper(np.char.decode(text.astype("bytes"), "utf-8")), "utf-8")]


@batch
def fail(x):
    raise ValueError(f"no answer for {int(x[0, 0])}")


def count(requests):
    """A response for each number up to that of the request."""
    for number in range(int(requests[0].data["n"][0, 0])):
        yield [{"number": np.array([[number]], np.int32)}]


def scale(requests):
    """By what parameters and a header say."""
    return [
        {"y": request.data["x"] * request.parameters["factor"] + int(request.parameters.get("offset", 0))}
        for request in requests
    ]


def bind(triton):
    numbers = [Tensor(name=name, dtype=np.float32, shape=(-1,)) for name in ("a", "b", "sum", "difference")]
    eager = ModelConfig(max_batch_size=16, batcher=DynamicBatcher(max_queue_delay_microseconds=1000))
    # Each function in the list is an instance.
    triton.bind("add_sub", [add_sub, add_sub], numbers[:2], numbers[2:], config=eager)
    strings = [Tensor(name=name, dtype=bytes, shape=(-1,)) for name in ("text", "loud")]
    triton.bind("shout", shout, strings[:1], strings[1:], config=ModelConfig(batching=False))
    x, y = (Tensor(name=name, dtype=np.float32, shape=(1,)) for name in "xy")
    triton.bind("fail", fail, [x], [y])
    triton.bind("scale", scale, [x], [y])
    n, number = (Tensor(name=name, dtype=np.int32, shape=(1,)) for name in ("n", "number"))
    triton.bind("count", count, [n], [number], config=ModelConfig(decoupled=True))


def error_of(client, value):
    try:
        client.infer_sample(np.array([value], np.float32))
    except PyTritonClientInferenceServerError as error:
        return str(error)
    return None


def ask(url):
    """What each model answers over one protocol."""
    a, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((3, 2), np.float32)
    words = np.array(["Nereid".encode(), "größe".encode()])
    answers = {}
    with ModelClient(url, "add_sub") as client:
        answers["batch"] = {name: value.tolist() for name, value in client.infer_batch(a, b).items()}
        answers["sample"] = client.infer_sample(a=a[1], b=b[1])["sum"].tolist()
        config = client.model_config
        answers["config"] = [config.model_name, config.max_batch_size, sum(config.instance_group.values())]
    with ModelClient(url, "shout") as client:
        answers["strings"] = [word.decode() for word in client.infer_sample(words)["loud"]]
    with ModelClient(url, "fail") as client:
        answers["error"] = error_of(client, 7)
    with ModelClient(url, "scale") as client:
        given = {"parameters": {"factor": 3}, "headers": {"offset": "100"}}
        answers["scaled"] = client.infer_sample(np.array([2], np.float32), **given)["y"].tolist()
    return answers


def ask_many(url):
    """A hundred requests at once. Of this client's protocols only HTTP works: it forgets which one it was given."""
    with FuturesModelClient(url, "add_sub", max_workers=8) as client:
        futures = [client.infer_sample(np.array([n], np.float32), np.array([1], np.float32)) for n in range(100)]
        return [float(future.result()["sum"][0]) for future in futures]


def main(http, grpc, metrics):
    config = TritonConfig(
        http_port=http, grpc_port=grpc, metrics_port=metrics, http_address="127.0.0.1", grpc_address="127.0.0.1",
        http_header_forward_pattern="offset", grpc_header_forward_pattern="offset")  # fmt: skip
    with Triton(config=config) as triton:
        bind(triton)
        triton.run()
        answers = {"http": ask(f"http://127.0.0.1:{http}"), "grpc": ask(f"grpc://127.0.0.1:{grpc}")}
        answers["many"] = ask_many(f"http://127.0.0.1:{http}")
        with DecoupledModelClient(f"grpc://127.0.0.1:{grpc}", "count") as client:
            answers["counted"] = [int(r["number"][0]) for r in client.infer_sample(np.array([4], np.int32))]
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
