# SPDX-License-Identifier: Apache-2.0
"""The tarball on a system that has nothing: unpack anywhere, run."""

import subprocess

from made import only
from predictions import check_digits


def unpack(root, packages, to):
    folder = root.folder / to
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-xzf", only(packages, "nereid-*-linux-*.tar.gz"), "-C", folder], check=True)
    return f"/{to}/{only(folder, 'nereid-*').name}"


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
