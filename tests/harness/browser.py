# SPDX-License-Identifier: Apache-2.0
"""A real browser: scripts of tests/console, run by Node.js (tools/setup --console-tests installs both)."""

import os
import pathlib
import shutil
import subprocess

import pytest

from harness import server as servers

SCRIPTS = servers.ROOT / "tests" / "console"
CONSOLE = pathlib.Path(os.environ.get("NEREID_CONSOLE", servers.ROOT / ".deps/console")).resolve()
NODE = CONSOLE / "node/bin/node"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def require_tools():
    if not (NODE.exists() and (CONSOLE / "work/node_modules/playwright-core").exists()):
        pytest.skip("what these tests need is not installed: tools/setup --console-tests")


def require():
    require_tools()
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: tools/setup --console-tests")
    if servers.sanitizers():
        pytest.skip("a sanitizer tells of the server, and not of the page")


def run(script, url, **env):
    """Runs a script against the address; what it expects has to happen."""
    done = subprocess.run(
        [NODE, SCRIPTS / script],
        env={**os.environ, "NEREID_CONSOLE": str(CONSOLE), "NEREID_URL": url, "NEREID_CHROMIUM": CHROMIUM, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
