# SPDX-License-Identifier: Apache-2.0
"""What is held for how long."""

import gc
import os
import sys
import threading
import time
import weakref

import numpy as np
import psutil
import pytest

import nereid


class Owner(np.ndarray):
    """An array that can be watched going."""


def watched(values):
    return np.array(values, dtype=np.int32).view(Owner)


def resident_mib():
    return psutil.Process().memory_info().rss / 1024 / 1024


def test_inputs_are_let_go_with_the_last_response(server):
    value = watched([1, 2])
    gone = weakref.ref(value)
    responses = server.model("identity_int32").infer(inputs={"INPUT0": value})
    del value
    list(responses)
    while gone() is not None:  # the request may be released a moment after its response
        time.sleep(0)


def test_inputs_are_held_while_the_model_runs_though_nobody_waits(server):
    value = watched([3])
    gone = weakref.ref(value)
    running = server.model("slow").infer(inputs={"INPUT0": np.array([0], dtype=np.int32)})
    server.model("slow").infer(inputs={"INPUT0": value})
    del value
    gc.collect()
    assert gone() is not None
    list(running)
    # The one that nobody waits for ends; requests look after what it has left.
    while gone() is not None:
        list(server.model("identity_int32").infer(inputs={"INPUT0": np.array([0], dtype=np.int32)}))


def test_a_refused_request_holds_nothing(server):
    value = watched([1])
    count = sys.getrefcount(value)
    for _ in range(3):
        with pytest.raises(nereid.TritonError):
            server.model("identity_int32").infer(inputs={"INPUT0": value, "wrong": value})
        with pytest.raises(nereid.TritonError):
            server.model("identity_int32").infer(inputs={"INPUT0": value, "odd": object()})
    gc.collect()
    assert sys.getrefcount(value) == count


def test_outputs_outlive_everything(repository):
    server = nereid.Server(model_repository=str(repository)).start()
    (response,) = server.model("identity_int32").infer(inputs={"INPUT0": np.arange(1000, dtype=np.int32)})
    unread = server.model("identity_int32").infer(inputs={"INPUT0": np.arange(9, dtype=np.int32)})
    array = np.from_dlpack(response.outputs["OUTPUT0"])
    server.stop()
    del response, server
    gc.collect()
    np.testing.assert_array_equal(array, np.arange(1000))
    (response,) = unread
    assert response.outputs["OUTPUT0"].to_list() == list(range(9))


def test_a_server_that_nobody_knows_any_more_ends(repository):
    threads = threading.active_count()
    for _ in range(3):
        responses = (
            nereid.Server(model_repository=str(repository))
            .start()
            .model("slow")
            .infer(inputs={"INPUT0": np.array([1], dtype=np.int32)})
        )
        assert len(list(responses)) == 1
        del responses
    assert threading.active_count() == threads


def test_a_hundred_thousand_requests_leave_nothing(server):
    model = server.model("identity_int32")
    value = watched(range(256))
    count = sys.getrefcount(value)

    def send(requests):
        for _ in range(requests):
            for response in model.infer(inputs={"INPUT0": value}, request_id="x", parameters={"a": 1}):
                np.from_dlpack(response.outputs["OUTPUT0"])
        gc.collect()

    send(5_000)
    objects, memory = len(gc.get_objects()), resident_mib()
    send(100_000)
    assert len(gc.get_objects()) - objects < 100
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps freed memory for a while
        assert resident_mib() - memory < 8
    assert sys.getrefcount(value) == count
