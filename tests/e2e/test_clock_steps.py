# SPDX-License-Identifier: Apache-2.0
"""A time of day that is set while the server runs."""

import numpy as np
import pytest
import tritonclient.http as httpclient
from chaos.world import Clock
from harness import models
from harness import server as servers

pytestmark = pytest.mark.newer


def test_a_server_tells_each_step_and_goes_on(empty_repository, start_server, tmp_path):
    models.write_model(empty_repository, "same", models.identity_config("FP32", [-1]))
    clock = Clock(tmp_path)
    if not clock.can_move:
        pytest.skip("moving the clock needs a C compiler, and no sanitizer")
    server = start_server(empty_repository, env=clock.environment)
    client = httpclient.InferenceServerClient(server.http)
    data = np.arange(100_000, dtype=np.float32)
    tensor = httpclient.InferInput("INPUT0", list(data.shape), "FP32")
    tensor.set_data_from_numpy(data)
    for seconds, step in ((3600, "+3600.0"), (-3600, "-7200.0"), (0, "+3600.0")):
        told = f"the time of day was moved by {step} s"
        before = server.log.count(told)
        clock.move(seconds)
        np.testing.assert_array_equal(client.infer("same", [tensor]).as_numpy("OUTPUT0"), data)
        servers.wait_until(lambda told=told, before=before: server.log.count(told) > before, told)
    # The allocator's threads, which sleep until a time of day, were started anew.
    server.stop()
    assert "could not be started anew" not in server.log
