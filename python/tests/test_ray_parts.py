# SPDX-License-Identifier: Apache-2.0
"""What of nereid.ray can be tried without Ray; tests/ray_serve has the rest."""

import os
import pathlib
import runpy
import subprocess
import sys

import pytest

import nereid

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The package without its __init__, which imports Ray.
WITHOUT_RAY = """
import os, pathlib, sys, types
sys.path.insert(0, {path!r})
import nereid
package = sys.modules["nereid.ray"] = types.ModuleType("nereid.ray")
package.__path__ = [os.path.join(nereid.__path__[0], "ray")]
"""


def run(program):
    program = WITHOUT_RAY.format(path=str(pathlib.Path(nereid.__file__).parents[1])) + program
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_the_error_without_ray_names_the_versions_that_the_wheel_needs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    wanted = runpy.run_path(str(ROOT / "packaging" / "wheel.py"))["EXTRAS"]["ray"]
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "nereid.ray", raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with pytest.raises(ImportError) as raised:
        import nereid.ray  # noqa: F401
    assert f"pip install '{wanted}'" in str(raised.value)
    # Another package of the index has this one's name.
    assert "nereid[" not in str(raised.value)


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer's locks do not survive a fork")
def test_a_forked_process_does_not_remove_the_folder_of_model_files():
    done = run("""
from nereid.ray._files import FileRepository
files = FileRepository()
child = os.fork()
if child == 0:
    files.close()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(os.path.isdir(files.path))
files.close()
print(os.path.exists(files.path))
""")
    assert done.stdout == "True\nFalse\n", done.stderr
