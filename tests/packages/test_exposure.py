# SPDX-License-Identifier: Apache-2.0
"""The rights of the service, as systemd rates them: 0 is closed, 10 is open."""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HIGHEST = 1.5  # docs/security.md says it, too


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_rates_the_exposure_of_the_service_as_low():
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", ROOT / "packaging" / "nereid.service"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unrecognized option" in run.stderr:
        pytest.skip("systemd is older than 250")
    (rated,) = re.findall(r"Overall exposure level for nereid\.service: ([0-9.]+)", run.stdout)
    assert float(rated) <= HIGHEST, run.stdout
    assert rated in (ROOT / "docs" / "install.md").read_text()
