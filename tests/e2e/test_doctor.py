# SPDX-License-Identifier: Apache-2.0
"""nereid doctor: what it prints, its JSON, its exit status, and what it finds on machines with something wrong."""

import json
import os
import resource
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
from harness import models
from harness import server as servers

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]

AREAS = {"ports", "limits", "processor", "gpu", "backends", "caches", "repoagents", "folders", "clocks", "kernel"}


def choose_ports():
    ports = servers.free_ports(3)
    return [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports)]


@pytest.fixture(scope="module")
def some_backends(tmp_path_factory):
    """Backends that open quickly: large frameworks take seconds on a busy machine."""
    folder = tmp_path_factory.mktemp("plugins") / "backends"
    folder.mkdir()
    for name in ("identity", "onnxruntime", "python"):
        if (servers.build_folder() / "backends" / name).exists():
            (folder / name).symlink_to(servers.build_folder() / "backends" / name)
    return folder


@pytest.fixture
def free_ports(some_backends):
    """Options for a quick examination on which other programs have no influence."""
    return [*choose_ports(), f"--backend-directory={some_backends}"]


def run(*arguments, prefix=(), **options):
    command = [*prefix, servers.binary(), "doctor", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300 * servers.SLOWNESS, **options)


def report(*arguments, **options):
    done = run(*arguments, "--json", **options)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert done.returncode == (1 if told["problems"] else 0)
    found = {one["id"]: one for one in told["findings"]}
    assert len(found) == len(told["findings"]), "an id stands for one finding"
    return found | {"": told}


def in_namespace(script):
    """A prefix that prepares a mount namespace; skips where there are none."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("this machine does not permit namespaces")
    return ["unshare", "--mount", "sh", "-ec", f'mount --make-rprivate /; {script}; exec "$@"', "sh"]


@pytest.fixture(scope="module")
def whole():
    """A report on this machine as it is."""
    return report(*choose_ports())


def test_every_area_is_examined(whole):
    assert {name.split(".")[0] for name in whole if name} == AREAS
    assert {one["level"] for name, one in whole.items() if name} <= {"ok", "note", "problem"}
    for name, one in whole.items():
        if name:
            assert bool(one["advice"]) == (one["level"] != "ok"), one


def test_backends_are_really_opened_and_tell_their_frameworks(whole, onnx):
    assert whole["backends.identity"] | {"text": ""} == {"id": "backends.identity", "level": "ok", "text": "", "advice": ""}
    assert whole["backends.onnxruntime"]["level"] == "ok"
    assert "ONNX Runtime 1." in whole["backends.onnxruntime"]["text"]
    versions = {one["name"]: one["version"] for one in whole[""]["versions"]}
    assert {"Nereid", "System", "Kernel", "Processor", "glibc", "OpenSSL", "ONNX Runtime"} <= set(versions)
    assert "libonnxruntime.so" in versions["ONNX Runtime"]


def test_the_text_has_every_finding_and_the_versions(free_ports):
    done = run(*free_ports)
    lines = done.stdout.splitlines()
    assert AREAS | {"versions"} == {line for line in lines if not line.startswith(" ")} - {lines[-1]}
    assert any(line.startswith("  Nereid: ") for line in lines)
    assert f"  ok       port {free_ports[0].split('=')[1]} (HTTP) is free" in lines
    assert " ok" in lines[-1] and "problem" in lines[-1] and "note" in lines[-1]
    brief = run(*free_ports, "--brief").stdout.splitlines()
    assert len(brief) < len(lines) and brief[-1] == lines[-1]
    assert not any(line.startswith("  ok") for line in brief)


def test_a_taken_port_is_a_problem_and_its_process_is_named(free_ports):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        found = report(*free_ports[1:], "--host=127.0.0.1", f"--http-port={port}")
        finding = found["ports.http"]
    assert finding["level"] == "problem"
    assert f"port {port} (HTTP) is taken by" in finding["text"]
    assert f"(process {os.getpid()})" in finding["text"]
    assert "--http-port" in finding["advice"]
    assert found["ports.grpc"]["level"] == "ok"


@pytest.mark.parametrize("port", ["0", "65536", "-1"])
def test_a_number_that_is_no_port_is_refused(port):
    done = run("--http-port", port)
    assert done.returncode == 2
    assert "expected a port from 1 to 65535" in done.stderr


def test_few_descriptors_are_a_problem(free_ports):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    finding = report(*free_ports, preexec_fn=limit)["limits.files"]
    assert finding["level"] == "problem"
    assert finding["text"] == "100 open files (at most 100)"
    assert "ulimit -n" in finding["advice"]


def plugin_folder(tmp_path, name):
    """The backends of the build, of which one is ours to break."""
    folder = tmp_path / "backends"
    (folder / name).mkdir(parents=True)
    return folder, folder / name / f"libtriton_{name}.so"


def test_a_broken_plug_in_is_a_problem(tmp_path):
    folder, library = plugin_folder(tmp_path, "mine")
    library.write_text("this is no library")
    finding = report(*choose_ports(), f"--backend-directory={folder}")["backends.mine"]
    assert finding["level"] == "problem"
    assert str(library) in finding["text"] + finding["advice"]


def test_a_library_that_is_no_plug_in_is_a_problem(tmp_path):
    folder, library = plugin_folder(tmp_path, "mine")
    shutil.copy(next(servers.build_folder().glob("caches/local/*.so")), library)
    finding = report(*choose_ports(), f"--backend-directory={folder}")["backends.mine"]
    assert finding["level"] == "problem"
    assert "TRITONBACKEND_ModelInstanceExecute" in finding["text"]


CRASHES = """
#include <stdlib.h>
__attribute__((constructor)) static void crash(void) { abort(); }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_plug_in_that_crashes_is_a_problem_and_the_others_are_examined(tmp_path):
    folder, library = plugin_folder(tmp_path, "mine")
    source = tmp_path / "crash.c"
    source.write_text(CRASHES)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    identity = servers.build_folder() / "backends/identity/libtriton_identity.so"
    (folder / "identity").mkdir()
    shutil.copy(identity, folder / "identity")
    found = report(*choose_ports(), f"--backend-directory={folder}")
    assert found["backends.mine"]["level"] == "problem"
    assert "signal 6" in found["backends.mine"]["text"]
    assert found["backends.identity"]["level"] == "ok"


def test_a_framework_that_is_missing_is_a_note_with_the_way_to_get_it(free_ports, tmp_path, onnx):
    environment = os.environ | {"NEREID_ONNXRUNTIME_LIBRARY": str(tmp_path / "libonnxruntime.so.1")}
    finding = report(*free_ports, env=environment)["backends.onnxruntime"]
    assert finding["level"] == "note"
    assert "NEREID_ONNXRUNTIME_LIBRARY" in finding["text"]


def test_a_framework_that_is_damaged_is_a_problem(free_ports, tmp_path, onnx):
    library = tmp_path / "libonnxruntime.so.1"
    library.write_text("this is no library")
    finding = report(*free_ports, env=os.environ | {"NEREID_ONNXRUNTIME_LIBRARY": str(library)})["backends.onnxruntime"]
    assert finding["level"] == "problem"
    assert str(library) in finding["text"]


@pytest.mark.skipif(servers.sanitizers() == "thread", reason="ThreadSanitizer ends a fork that starts threads")
def test_python_is_named_with_its_packages_and_its_absence_is_noted(free_ports, tmp_path):
    environment = os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    with_numpy = report(*free_ports, env=environment)["backends.python"]
    assert with_numpy["level"] == "ok"
    assert f"numpy {np.__version__}" in with_numpy["text"]
    assert f"({os.path.dirname(sys.executable)}/" in with_numpy["text"]
    nothing = report(*free_ports, env=os.environ | {"PATH": str(tmp_path)})["backends.python"]
    assert nothing["level"] == "note"
    assert "no Python interpreter found" in nothing["text"]


def test_a_folder_of_backends_that_is_not_there_is_a_problem(tmp_path):
    finding = report(*choose_ports(), f"--backend-directory={tmp_path}/none")["backends.folder"]
    assert finding["level"] == "problem"
    assert "--backend-directory" in finding["advice"]


def test_a_repository_is_readable_or_a_problem(free_ports, tmp_path):
    models.copy_example(tmp_path, "simple")
    readable = report(*free_ports, "--repository", tmp_path, "-r", "s3://bucket/models")
    assert readable["folders.repository0"]["level"] == "ok"
    assert "not looked at" in readable["folders.repository1"]["text"]
    (tmp_path / "simple/config.pbtxt").unlink()
    (tmp_path / "simple/config.pbtxt").symlink_to("nowhere")
    broken = report(*free_ports, "--repository", tmp_path)["folders.repository0"]
    assert broken["level"] == "problem"
    assert "simple/config.pbtxt" in broken["text"]
    assert report(*free_ports, "-r", tmp_path / "none")["folders.repository0"]["level"] == "problem"


def test_a_repository_of_another_user_is_a_problem(free_ports, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    models.copy_example(tmp_path, "simple")
    # pytest's folders are this user's alone, so the repository is mounted where others can go.
    prefix = in_namespace(f'mount --bind "{tmp_path}" /mnt; chmod 755 /mnt; chmod 700 /mnt/simple')
    prefix += ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    finding = report(*free_ports, "-r", "/mnt", prefix=prefix)["folders.repository0"]
    assert finding["level"] == "problem"
    assert "/mnt/simple" in finding["text"] and "65534" in finding["text"]


def test_a_file_from_the_future_is_noted(free_ports, tmp_path):
    models.copy_example(tmp_path, "simple")
    path = tmp_path / "simple/config.pbtxt"
    os.utime(path, (4e9, 4e9))
    assert str(path) in report(*free_ports, "-r", tmp_path)["folders.repository0_time"]["text"]


def test_a_temporary_folder_that_is_read_only_is_a_problem(free_ports):
    prefix = in_namespace("mount -t tmpfs -o ro none /mnt")
    finding = report(*free_ports, prefix=prefix, env=os.environ | {"TMPDIR": "/mnt"})["folders.temporary"]
    assert finding["level"] == "problem"
    assert "Read-only file system" in finding["text"]


def test_a_temporary_folder_that_is_full_or_not_executable_is_found(free_ports):
    prefix = in_namespace("mount -t tmpfs -o noexec,size=1m none /mnt")
    found = report(*free_ports, prefix=prefix, env=os.environ | {"TMPDIR": "/mnt"})
    assert found["folders.temporary"]["level"] == "note"
    assert found["folders.temporary_space"]["level"] == "problem"


def test_little_shared_memory_is_noted(free_ports):
    prefix = in_namespace("mount -t tmpfs -o size=1m none /dev/shm")
    finding = report(*free_ports, prefix=prefix)["limits.shared_memory"]
    assert finding["level"] == "note"
    assert "--shm-size" in finding["advice"]


def test_nothing_is_sent_and_nothing_is_left(free_ports, tmp_path):
    """Without a network it finds the same, and its temporary files are gone."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], check=False).returncode != 0:
        pytest.skip("this machine does not permit namespaces")
    found = report(*free_ports, prefix=["unshare", "--net"], env=os.environ | {"TMPDIR": str(tmp_path)})
    assert found["backends.identity"]["level"] == "ok"
    assert list(tmp_path.iterdir()) == []
