# SPDX-License-Identifier: Apache-2.0
"""Programs that import the Python package `nereid` of the build under test."""

import os
import subprocess

import pytest
from harness import server as servers


def environment():
    """What such a program needs: a sanitizer's library has to be there before the interpreter's own code."""
    variables = {**os.environ, "NEREID_BUILD": str(servers.build_folder())}
    if servers.is_sanitized():
        if servers.sanitizers() == "thread":
            pytest.skip("ThreadSanitizer does not know the interpreter's locks")
        # The second, so that the first finds how C++ throws.
        libraries = [
            subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
            for name in ("libasan.so", "libstdc++.so")
        ]
        variables["LD_PRELOAD"] = " ".join(libraries)
        # The interpreter leaves much behind on purpose.
        variables["ASAN_OPTIONS"] = "detect_leaks=0"
    return variables
