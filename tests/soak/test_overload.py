# SPDX-License-Identifier: Apache-2.0
"""Short runs of tests/soak/overload.py and tenants.py, without their bounds on times; the long ones are started by
hand."""

import importlib.util
import pathlib
import sys

import pytest
from harness import server as servers

_SPEC = importlib.util.spec_from_file_location("overload", pathlib.Path(__file__).with_name("overload.py"))
overload = importlib.util.module_from_spec(_SPEC)
# The processes that it starts import it by this name.
sys.modules["overload"] = overload
sys.path.append(str(pathlib.Path(__file__).parent))
_SPEC.loader.exec_module(overload)


@pytest.mark.newer
@pytest.mark.parametrize("adaptive", [False, True], ids=["deadlines", "adaptive"])
def test_a_model_that_gets_ten_times_its_load_answers_everybody(require_server, tmp_path, adaptive):
    figures = overload.run(tmp_path, seconds=2, times=10, deadline_ms=250, adaptive=adaptive)
    answers = figures["answers by status"]
    assert set(answers) <= {200, 503, 504}, figures
    assert answers[200] > 0 and answers[503] > 0, figures
    assert figures["lost"] == 0, figures
    assert figures["refused without Retry-After"] == 0, figures
    assert figures["counted refusals"] == answers[503] + answers.get(504, 0), figures
    assert all(count > 0 for count in figures["health and metrics"].values()), figures


@pytest.mark.newer
def test_a_busy_caller_takes_no_answer_from_the_others(require_server, tmp_path):
    import tenants

    if "--api-keys" not in servers.run_to_end(["--help"]).stdout:
        pytest.skip("this server does not know callers")
    figures = tenants.run(tmp_path, seconds=2, times=50, deadline_ms=3000)
    assert figures["answers to the others beside the busy one"] > 0, figures
    assert figures["refusals to the others"] == 0, figures
    assert figures["refusals to the busy one"] > 0, figures
