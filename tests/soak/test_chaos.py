# SPDX-License-Identifier: Apache-2.0
"""A short run of tests/soak/chaos.py, which says what it does; the long one is started by hand."""

import importlib.util
import pathlib

import pytest

_SPEC = importlib.util.spec_from_file_location("chaos", pathlib.Path(__file__).with_name("chaos.py"))
chaos = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(chaos)


@pytest.mark.newer
@pytest.mark.slow
def test_unloads_and_killed_workers_lose_and_cross_no_response(require_server, onnx, tmp_path):
    seen, problems = chaos.run(tmp_path, seed=16, disturbances=25)
    assert problems == []
    assert seen["right responses"] > 0, seen
