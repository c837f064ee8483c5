# SPDX-License-Identifier: Apache-2.0
"""Streams over gRPC whose client does not read."""

import queue
import threading

import numpy as np
import tritonclient.grpc as grpc
from tritonclient.utils import np_to_triton_dtype


class Stream:
    """One request of a decoupled model, with one number as its input: an element of numpy's."""

    def __init__(self, address, model, input_name, number, reads=True, request_id=""):
        self._answers = queue.Queue()
        self._may_read = threading.Event()
        if reads:
            self._may_read.set()
        self._client = grpc.InferenceServerClient(address)
        self._client.start_stream(callback=self._take)
        tensor = grpc.InferInput(input_name, [1], np_to_triton_dtype(number.dtype))
        tensor.set_data_from_numpy(np.array([number]))
        self._client.async_stream_infer(
            model, [tensor], request_id=request_id, enable_empty_final_response=True
        )

    def _take(self, result, error):
        self._answers.put((result, error))
        self._may_read.wait()  # gRPC reads no further meanwhile

    def read(self):
        """From now on the client reads."""
        self._may_read.set()

    def outputs(self, name):
        """The outputs of all responses."""
        found = []
        while True:
            result, error = self._answers.get(timeout=40)
            assert error is None, error
            array = result.as_numpy(name)
            if array is not None:
                found.append(array)
            if result.get_response().parameters["triton_final_response"].bool_param:
                return found

    def close(self):
        self.read()
        self._client.stop_stream(cancel_requests=True)
        self._client.close()


def assert_holds_up_no_other(address, model, input_name, output_name, count):
    """A client asks `model` for `count` responses, in all far more than the server keeps for one client, and does not
    read. Others are answered meanwhile, and all arrives in order once it reads. Each response is an array of 1 MiB of
    INT64: its number, and how many the model has sent so far to those who asked for more than one."""
    slow = Stream(address, model, input_name, np.int64(count), reads=False)
    try:
        sent = []
        while len(sent) < 5 or sent[-1] == 0 or len(set(sent[-5:])) > 1:
            other = Stream(address, model, input_name, np.int64(1))
            [array] = other.outputs(output_name)
            other.close()
            sent.append(int(array[1]))
        assert sent[-1] < count, "the model runs ahead of the client without a limit"
        slow.read()
        assert [int(array[0]) for array in slow.outputs(output_name)] == list(range(count))
    finally:
        slow.close()
