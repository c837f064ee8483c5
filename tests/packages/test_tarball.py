# SPDX-License-Identifier: Apache-2.0
"""The tarball on a system that has nothing: unpack anywhere, run."""

import os
import subprocess

from made import only
from predictions import check_digits


def unpack(root, packages, to):
    folder = root.folder / to
    folder.mkdir(parents=True, exist_ok=True)
    path = only(packages, "nereid-*-linux-*.tar.gz")
    subprocess.run(["tar", "-xzf", path, "-C", folder], check=True)
    return f"/{to}/{path.name.split('-linux-')[0]}"


def test_it_serves_digits_from_any_folder(clean, packages, tmp_path):
    home = unpack(clean, packages, "opt/a folder")
    server = clean.serve([f"{home}/bin/nereid", f"--model-repository={home}/share/nereid/models"], tmp_path)
    check_digits(server)
    server.stop()


def test_a_folder_that_was_moved_works_by_triton_s_name_on_the_path(clean, packages, tmp_path):
    home = unpack(clean, packages, "first")
    clean.run("mv", home, "/second")
    environment = {"PATH": "/second/bin:/usr/bin:/bin"}
    server = clean.serve(["tritonserver", "--model-repository=/second/share/nereid/models"], tmp_path, **environment)
    check_digits(server)
    server.stop()


def test_it_writes_nothing_where_it_lies(clean, packages, tmp_path):
    home = unpack(clean, packages, "opt")
    before = clean.files()
    server = clean.serve([f"{home}/bin/nereid", f"--model-repository={home}/share/nereid/models"], tmp_path)
    check_digits(server)
    server.stop()
    assert clean.files() == before


def test_an_upgrade_is_unpacked_beside_its_predecessor(clean, predecessors, packages, tmp_path):
    """As docs/install.md has it: a link names the version in use, and models lie elsewhere."""
    old, new = unpack(clean, predecessors, "opt"), unpack(clean, packages, "opt")
    clean.run("cp", "-r", f"{old}/share/nereid/models", "/srv/models")
    for home in (old, new, old):
        clean.run("ln", "-sfn", home, "/opt/nereid")
        server = clean.serve(["/opt/nereid/bin/nereid", "--model-repository=/srv/models"], tmp_path)
        assert f"{home}/bin/" in os.readlink(f"/proc/{server.pid}/exe")
        check_digits(server)
        server.stop()
