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
    driver.check(scenario, outcomes[scenario.model])
