# SPDX-License-Identifier: Apache-2.0
"""Every scenario of docs/scheduling.md, on the server under test.

With NEREID_REFERENCE=1 the same scenarios run on the reference; where it is known to differ, the
difference is reported as an expected failure with its reason.
"""

import pytest
from compat import driver, scenarios

from harness import server as servers


@pytest.fixture(scope="module")
def outcomes(require_server, tmp_path_factory):
    started = []

    def start(folder):
        started.append(servers.start(folder, log_dir=tmp_path_factory.mktemp("server")))
        return started[-1]

    try:
        cases = [s for s in scenarios.ALL if not (servers.REFERENCE and s.hangs_reference)]
        yield driver.run_all(cases, start, tmp_path_factory.mktemp("scenarios"))
    finally:
        for server in started:
            server.stop()


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda s: f"{s.sentence}-{s.name}")
def test_scenario(scenario, outcomes, request):
    if servers.REFERENCE and scenario.differs:
        if scenario.hangs_reference:
            pytest.xfail(scenario.differs)
        request.applymarker(pytest.mark.xfail(reason=scenario.differs, strict=True))
    outcome = outcomes[scenario.model]
    if isinstance(outcome, Exception):
        raise outcome
    answers = {i: text for i, text in outcome.answers.items() if not i.startswith("plug")}
    assert set(answers) == {send.id for send in scenario.sends}
    for send_id, text in answers.items():
        expected = scenario.answers.get(send_id, scenarios.OK)
        assert (expected in text) if expected else (text == ""), f"{send_id}: {text!r}"
    assert outcome.batches == scenario.batches
    if scenario.order:
        assert [i for i in outcome.order if not i.startswith("plug")] == scenario.order
    plug_at = outcome.order.index("plug0")
    assert set(scenario.before_plug) == set(outcome.order[:plug_at]) & set(answers)
