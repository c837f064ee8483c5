# SPDX-License-Identifier: Apache-2.0
"""pytriton with Nereid in place of its binary, as docs/backends-compatibility.md describes it."""

import json
import os
import pathlib
import shutil
import subprocess

import psutil
import pytest
from harness import server as servers

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = pathlib.Path(os.environ.get("NEREID_PYTRITON", servers.ROOT / ".deps" / "pytriton"))

# Notes which process it becomes.
SCRIPT = '#!/bin/sh\necho $$ > "{note}"\nexec "{server}" "$@"\n'

# Of program.py, but for errors and for what it asks over one protocol only.
ANSWERS = {
    "batch": {"sum": [[1, 2], [3, 4], [5, 6]], "difference": [[-1, 0], [1, 2], [3, 4]]},
    "sample": [3, 4],
    "config": ["add_sub", 16, 2],
    "strings": ["NEREID", "GRÖSSE"],
    "scaled": [106],
}


def missing():
    """Why pytriton cannot be tried here, or None."""
    if servers.REFERENCE:
        return "about this server in place of the reference"
    if servers.is_sanitized():
        return "pytriton's library cannot be loaded into a sanitizer's process"
    return None if INSTALLED.exists() else f"there is no {INSTALLED}: tools/setup --pytriton installs it"


@pytest.fixture
def environment(require_server, tmp_path):
    """pytriton's environment with links for its files, so that some can be replaced."""
    if reason := missing():
        pytest.skip(f"pytriton is NOT tested: {reason}")
    (source,) = INSTALLED.glob("lib/python*/site-packages")
    folder = tmp_path / "environment"
    subprocess.run([INSTALLED / "bin/python", "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in ("pytriton", "nvidia_pytriton.libs"):
        shutil.copytree(source / name, site / name, copy_function=os.symlink)
    # Everything else is found where it is installed.
    (site / "installed.pth").write_text(f"{source}\n")
    return folder, site


def replace_server(site, note):
    """As docs/backends-compatibility.md has it."""
    script = site / "pytriton/tritonserver/bin/tritonserver"
    script.unlink()
    script.write_text(SCRIPT.format(note=note, server=servers.binary()))
    script.chmod(0o755)
    (library,) = (site / "nvidia_pytriton.libs").glob("libtritonserver-*.so")
    library.unlink()
    library.symlink_to(servers.build_folder() / "src/app/libtritonserver.so")


def replace_backend(site):
    backend = site / "pytriton/tritonserver/backends/python"
    shutil.rmtree(backend)
    shutil.copytree(servers.backends() / "python", backend)


def run_program(folder, directory):
    """program.py, run to its end: its exit status and what it printed.

    With any server, the model does not load if pytriton's process of the second instance connects to the socket of the
    first between its bind() and its listen(), or after more than a second: only then is the program run again.
    """
    for _ in range(4):
        ports = map(str, servers.free_ports(3))
        done = subprocess.run(
            [folder / "bin/python", HERE / "program.py", *ports], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=120, cwd=directory,
            env={**os.environ, "TMPDIR": str(directory)})  # fmt: skip
        if done.returncode == 0 or "in get_config_from_handshake_server" not in done.stdout:
            break
    return done


@pytest.mark.parametrize("backend", ["its own", "ours"])
def test_functions_are_served_to_its_clients(environment, tmp_path, backend):
    folder, site = environment
    note = tmp_path / "note"
    replace_server(site, note)
    if backend == "ours":
        replace_backend(site)
    done = run_program(folder, tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    for protocol in ("http", "grpc"):
        error = answers[protocol].pop("error")
        assert "ValueError" in error and "no answer for 7" in error
        assert answers[protocol] == ANSWERS, protocol
    assert answers["many"] == [n + 1 for n in range(100)]
    assert answers["counted"] == [0, 1, 2, 3]
    # Ours it was, and it has ended.
    assert not psutil.pid_exists(int(note.read_text()))
