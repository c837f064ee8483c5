# SPDX-License-Identifier: Apache-2.0
"""Making packages of the build under test."""

import os
import subprocess
import sys

from harness import server as servers

# The version of packages that are upgraded.
PREDECESSOR = "0.0.9"


def make(out, kinds, parts, version=None, umask=-1, **environment):
    """Makes packages; returns the folder."""
    command = [sys.executable, servers.ROOT / "packaging/make.py", *kinds, "--parts", parts, "--out", out]
    command += ["--build", servers.build_folder(), *(["--version", version] if version else [])]
    environment = {"SOURCE_DATE_EPOCH": "1700000000", **environment}
    done = subprocess.run(command, env=os.environ | environment, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def only(folder, pattern):
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]
