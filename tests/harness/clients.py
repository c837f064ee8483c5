# SPDX-License-Identifier: Apache-2.0
"""The four published Python clients behind one face, so that a test runs over each of them."""

import asyncio

import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

KINDS = ["http", "http.aio", "grpc", "grpc.aio"]
MODULES = {
    "http": tritonclient.http,
    "http.aio": tritonclient.http.aio,
    "grpc": tritonclient.grpc,
    "grpc.aio": tritonclient.grpc.aio,
}
# The classes for inputs and outputs live in the synchronous modules.
TENSORS = {
    "http": tritonclient.http,
    "http.aio": tritonclient.http,
    "grpc": tritonclient.grpc,
    "grpc.aio": tritonclient.grpc,
}


class Client:
    """A client of one kind. The asynchronous ones run on a loop of their own, call by call."""

    def __init__(self, kind, server):
        self.kind = kind
        self.is_http = kind.startswith("http")
        self.tensors = TENSORS[kind]
        self.url = server.http if self.is_http else server.grpc
        self.loop = asyncio.new_event_loop() if kind.endswith("aio") else None
        self.client = self._run(self._make)

    def _make(self):
        options = {"concurrency": 4} if self.kind == "http" else {}
        return MODULES[self.kind].InferenceServerClient(self.url, **options)

    def _run(self, function, *args, **kwargs):
        if self.loop is None:
            return function(*args, **kwargs)

        async def call():
            result = function(*args, **kwargs)
            return await result if asyncio.iscoroutine(result) else result

        return self.loop.run_until_complete(call())

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *args, **kwargs: self._run(method, *args, **kwargs)

    def close(self):
        self._run(self.client.close)
        if self.loop is not None:
            self.loop.close()

    def input(self, name, tensor, datatype, binary=True):
        made = self.tensors.InferInput(name, list(tensor.shape), datatype)
        if self.is_http:
            made.set_data_from_numpy(tensor, binary_data=binary)
        else:
            made.set_data_from_numpy(tensor)
        return made

    def output(self, name, binary=True, **options):
        if self.is_http:
            return self.tensors.InferRequestedOutput(name, binary_data=binary, **options)
        return self.tensors.InferRequestedOutput(name, **options)

    def as_json(self, call, *args, **kwargs):
        """What a call gives, as plain dictionaries whatever the protocol."""
        if not self.is_http:
            kwargs["as_json"] = True
        return getattr(self, call)(*args, **kwargs)
