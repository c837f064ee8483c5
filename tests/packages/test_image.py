# SPDX-License-Identifier: Apache-2.0
"""The images: what is inside, and that they run as nobody on a file system that cannot be written to. With podman
where it can run containers, and else unpacked, with chroot."""

import contextlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

import pytest
from harness import server as servers
from made import PREDECESSOR, only
from predictions import check_digits

REPOSITORY = "--model-repository=/opt/nereid/share/nereid/models"


class Image:
    """An archive of an OCI layout, unpacked."""

    def __init__(self, path, folder):
        self.path = path
        self.blobs = folder / "blobs/sha256"
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        (manifest,) = json.loads((folder / "index.json").read_text())["manifests"]
        self.name = manifest["annotations"]["org.opencontainers.image.ref.name"]
        self.manifest = self.read(manifest)
        self.settings = self.read(self.manifest["config"])["config"]

    def read(self, described):
        return json.loads((self.blobs / described["digest"].removeprefix("sha256:")).read_text())

    def compressed_bytes(self):
        return sum(layer["size"] for layer in self.manifest["layers"])

    def unpack(self, folder):
        for layer in self.manifest["layers"]:
            with tarfile.open(self.blobs / layer["digest"].removeprefix("sha256:")) as archive:
                archive.extractall(folder, filter="fully_trusted")


@pytest.fixture
def image(packages, tmp_path):
    return Image(only(packages, "nereid-onnxruntime-*-image-*.tar"), tmp_path / "layout")


def test_images_are_small(packages, tmp_path):
    alone = Image(only(packages, "nereid-[0-9]*-image-*.tar"), tmp_path / "alone")
    with_onnx = Image(only(packages, "nereid-onnxruntime-*-image-*.tar"), tmp_path / "with")
    assert alone.compressed_bytes() < 60e6
    assert with_onnx.compressed_bytes() < 80e6
    # The server's layer is stored and fetched once for all images.
    assert with_onnx.manifest["layers"][0] == alone.manifest["layers"][0]


def test_there_is_no_shell_and_nothing_that_changes_users(image, tmp_path):
    root = tmp_path / "root"
    image.unpack(root)
    files = [path for path in root.rglob("*") if path.is_file()]
    assert not {path.name for path in files} & {"sh", "bash", "dash", "busybox", "python3", "apt", "dpkg"}
    assert not [path for path in files if path.stat().st_mode & 0o6000]
    assert image.settings["User"] == "65532:65532"


def test_the_program_itself_checks_the_health_of_a_container(image):
    assert image.settings["Healthcheck"]["Test"][1:] == [*image.settings["Entrypoint"], "health"]


def ports():
    numbers = servers.free_ports(3)
    return numbers, [f"--{name}-port={number}" for name, number in zip(("http", "grpc", "metrics"), numbers)]


def inside(image, root, *arguments, temporary=False):
    """The command line of the image's program as its user, in the unpacked image, which it cannot write to but for
    a temporary folder, if that is wanted."""
    (root / "proc").mkdir(exist_ok=True)
    script = 'mount --make-rprivate /; mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"'
    script += '; mount -t tmpfs tmpfs "$0/tmp"' if temporary else ""
    script += '; mount -t proc proc "$0/proc"; exec "$@"'
    user = image.settings["User"].split(":")[0]
    enter = ["/usr/sbin/chroot", f"--userspec={user}:{user}", root, *image.settings["Entrypoint"], *arguments]
    return list(map(str, ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", script, root, *enter]))


@contextlib.contextmanager
def serving(command, numbers, tmp_path, env=None):
    """Runs a command line that makes a server with these ports, for the length of a with block."""
    log_path = tmp_path / "server.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, env=env or {}, stdout=log, stderr=subprocess.STDOUT)
    server = servers.Server(process, log_path, numbers)
    try:
        servers.wait_until(lambda: server.is_ready() or process.poll() is not None, "a server that is ready", 60)
        yield server
    finally:
        server.stop()


def test_unpacked_it_serves_digits_as_nobody_and_read_only(image, tmp_path):
    root = tmp_path / "root"
    image.unpack(root)
    numbers, flags = ports()
    with serving(inside(image, root, REPOSITORY, *flags), numbers, tmp_path) as server:
        check_digits(server)
        asked = inside(image, root, "health", "--url", f"http://{server.http}")
        assert subprocess.run(asked, env={}, check=False).returncode == 0
    assert subprocess.run(asked, env={}, check=False).returncode != 0


def test_a_file_is_served_read_only_with_a_temporary_folder(image, own_model, tmp_path):
    root = tmp_path / "root"
    image.unpack(root)
    shutil.copy(own_model, root / "own.onnx")
    numbers = servers.free_ports(3)
    options = [f"{option}={number}" for option, number in zip(("--port", "--grpc-port", "--metrics-port"), numbers)]
    command = inside(image, root, "serve", "--host=0.0.0.0", "/own.onnx", *options, temporary=True)
    with serving(command, numbers, tmp_path) as server:
        asked = inside(image, root, "infer", "own", "--zeros", "--json", "--url", f"http://{server.http}")
        told = json.loads(subprocess.run(asked, env={}, check=True, capture_output=True).stdout)
        assert told["outputs"][0]["data"] == [0.25] * 4


def test_an_upgrade_is_another_image_for_the_same_command(predecessors, packages, tmp_path):
    pattern = "nereid-onnxruntime-*-image-*.tar"
    old = Image(only(predecessors, pattern), tmp_path / "old")
    new = Image(only(packages, pattern), tmp_path / "new")
    assert old.name == f"nereid-onnxruntime:{PREDECESSOR}" != new.name
    # What the files of a volume have to allow, and what is called.
    for key in ("User", "Entrypoint", "Cmd", "Healthcheck"):
        assert old.settings[key] == new.settings[key]
    numbers, flags = ports()
    for image in (old, new):
        root = tmp_path / image.name.replace(":", "-")
        image.unpack(root)
        shutil.copytree(servers.ROOT / "examples/models/digits", root / "models/digits")
        with serving(inside(image, root, *image.settings["Cmd"], *flags), numbers, tmp_path) as server:
            check_digits(server)


@pytest.fixture
def podman(tmp_path):
    """The command line of a podman of our own, in which nothing of the user's is seen."""
    if shutil.which("podman") is None:
        pytest.skip("there is no podman")
    # podman takes no long path for this one.
    state = tempfile.mkdtemp(prefix="podman-")
    podman = ["podman", "--root", tmp_path / "storage", "--runroot", state, "--storage-driver", "vfs"]
    podman += ["--cgroup-manager", "cgroupfs", "--events-backend", "file"]
    # A system with both versions of cgroups, of which crun takes only one.
    script = "mount --make-rprivate /; umount /sys/fs/cgroup/unified 2>/dev/null || true; exec \"$@\""
    yield ["unshare", "--mount", "sh", "-c", script, "sh", *map(str, podman)]
    for folder in (tmp_path / "storage", state):
        shutil.rmtree(folder, ignore_errors=True)


def test_podman_runs_it_read_only(image, podman, tmp_path):
    load = [*podman, "load", "--quiet", "--input", image.path]
    loaded = subprocess.run(load, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    limits = ["--cgroups=disabled", "--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]
    run = ["run", "--rm", "--network=host", "--read-only", *limits]
    probe = subprocess.run([*podman, *run, f"localhost/{image.name}", "--version"], capture_output=True, text=True)
    if probe.returncode != 0 and "nereid" not in probe.stdout:
        pytest.skip(f"podman cannot run containers here: {probe.stderr.strip()[-200:]}")
    numbers, flags = ports()
    command = [*podman, *run, "--name=nereid-test", f"localhost/{image.name}", REPOSITORY, *flags]
    # podman passes the signal on that ends it.
    with serving(command, numbers, tmp_path, dict(os.environ)) as server:
        check_digits(server)
