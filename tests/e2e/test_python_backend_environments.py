# SPDX-License-Identifier: Apache-2.0
"""EXECUTION_ENV_PATH: models that bring their own interpreter, as a folder or as an archive."""

import gzip
import io
import pathlib
import sys
import tarfile

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import python_models

# Tells whether it runs where its packages are.
TELLS = """
import marker
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.array(
            [marker.VALUE, sys.prefix != sys.base_prefix], np.float32))]) for r in requests]
"""


def environment(folder, value):
    """A virtual environment as `python -m venv` would make it, with numpy by reference."""
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    base = pathlib.Path(sys.base_prefix) / "bin" / "python3"
    (folder / "bin" / "python3").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    (site / "marker.py").write_text(f"VALUE = {value}\n")
    (site / "numpy.pth").write_text(f"{pathlib.Path(np.__file__).parents[1]}\n")
    # Would be run if somebody did.
    (folder / "bin" / "activate").write_text(f"touch {folder}-was-activated; exit 1\n")
    return folder


def archive(path, folder):
    with tarfile.open(path, "w:gz") as tar:
        for item in sorted(folder.iterdir()):
            tar.add(item, item.name)
    return path


def parameter(path):
    return f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}\n'


def index(server):
    with httpclient.InferenceServerClient(server.http) as client:
        return {entry["name"]: entry for entry in client.get_model_repository_index()}


def infer(server, model):
    with httpclient.InferenceServerClient(server.http) as client:
        tensor = httpclient.InferInput("INPUT0", [1], "FP32")
        tensor.set_data_from_numpy(np.ones(1, np.float32))
        return list(client.infer(model, [tensor]).as_numpy("OUTPUT0"))


def test_environments_are_used_as_folders_and_as_archives(start_server, tmp_path):
    repository = tmp_path / "m"
    folder = environment(tmp_path / "env", 5)
    packed = archive(tmp_path / "env.tar.gz", environment(tmp_path / "other", 6))
    python_models.write(repository, "folder", TELLS, extra=parameter(folder))
    python_models.write(repository, "packed", TELLS, extra=parameter(packed))
    python_models.write(repository, "again", TELLS, extra=parameter(packed))
    model = python_models.write(repository, "inside", TELLS,
                                extra=parameter("$$TRITON_MODEL_DIRECTORY/env.tar.gz"))
    archive(model / "env.tar.gz", environment(tmp_path / "third", 7))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    server = start_server(repository, env={**python_models.ENVIRONMENT, "TMPDIR": str(temporary)})
    assert infer(server, "folder") == [5, 1]
    assert infer(server, "packed") == [6, 1]
    assert infer(server, "again") == [6, 1]
    assert infer(server, "inside") == [7, 1]
    assert len(list(temporary.iterdir())) == 2  # one for both that name the same archive
    server.stop()
    assert list(temporary.iterdir()) == []
    assert list(tmp_path.glob("*-was-activated")) == []


def member(name, kind=tarfile.REGTYPE, content=b"x", **more):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


# S03: whatever an archive says, nothing is written outside the folder it is unpacked to.
@pytest.mark.parametrize("name, members", [
    ("parent", [member("../escaped")]),
    ("inner", [member("a/../../escaped")]),
    ("absolute", [member("{outside}/escaped")]),
    ("through_link", [member("link", tarfile.SYMTYPE, linkname="{outside}"), member("link/escaped")]),
    ("over_link", [member("link", tarfile.SYMTYPE, linkname="{outside}/escaped"),
                   member("link"), member("x/../y")]),
    ("hard_link", [member("link", tarfile.LNKTYPE, linkname="../../outside/kept")]),
    ("device", [member("device", tarfile.CHRTYPE, devmajor=1, devminor=3)]),
    ("fifo", [member("fifo", tarfile.FIFOTYPE)]),
])
def test_archives_that_reach_outside_are_refused(start_server, tmp_path, name, members):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("as it was")
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for info, content in members:
            info.name = info.name.replace("{outside}", str(outside))
            info.linkname = info.linkname.replace("{outside}", str(outside))
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    check_refused(start_server, tmp_path, path)
    assert sorted(outside.iterdir()) == [outside / "kept"]
    assert (outside / "kept").read_text() == "as it was"


def check_refused(start_server, tmp_path, path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    python_models.write(tmp_path / "m", "bad", TELLS, extra=parameter(path))
    server = start_server(tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"],
                          env={**python_models.ENVIRONMENT, "TMPDIR": str(temporary)})
    entry = index(server)["bad"]
    assert entry["state"] == "UNAVAILABLE"
    assert "failed to unpack the Python environment" in entry["reason"]
    assert list(temporary.iterdir()) == []
    return entry["reason"]


class Zeros(io.RawIOBase):
    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = bytes(len(buffer))
        return len(buffer)


def test_archives_that_grow_without_measure_are_refused(start_server, tmp_path):
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo("zeros")
        info.size = 300 << 20
        tar.addfile(info, io.BufferedReader(Zeros(), 1 << 20))
    check_refused(start_server, tmp_path, path)


def header(name, kind, **fields):
    """The header of a member, with fields of the format GNU: (offset in the header, value)."""
    info, _ = member(name, kind, content=b"")
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    for offset, value in fields.values():
        head[offset:offset + 12] = tarfile.itn(value, 12, tarfile.GNU_FORMAT)
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


HUGE = 10 << 30
SIZE, SPARSE_OFFSET, SPARSE_SIZE, REAL_SIZE = 124, 386, 398, 483


@pytest.mark.parametrize("name, content", [
    # One block at the end of ten gigabytes of holes.
    ("sparse", header("zeros", tarfile.GNUTYPE_SPARSE, size=(SIZE, 512), at=(SPARSE_OFFSET, HUGE - 512),
                      bytes=(SPARSE_SIZE, 512), real=(REAL_SIZE, HUGE)) + bytes(512)),
    ("announced", header("zeros", tarfile.REGTYPE, size=(SIZE, HUGE)) + bytes(1 << 20)),
    ("negative", header("zeros", tarfile.REGTYPE, size=(SIZE, -HUGE))),
    ("back", header("zeros", tarfile.REGTYPE, size=(SIZE, -512))),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_archives_whose_members_have_odd_sizes_are_refused(start_server, tmp_path, name, content):
    path = tmp_path / "bad.tar.gz"
    path.write_bytes(gzip.compress(content + bytes(1024)))
    check_refused(start_server, tmp_path, path)


def test_archives_that_are_ten_gigabytes_of_zeros_are_refused(start_server, tmp_path):
    path, piece = tmp_path / "bad.tar.gz", gzip.compress(bytes(64 << 20))
    # Streams of gzip in a row are one.
    path.write_bytes(gzip.compress(header("zeros", tarfile.REGTYPE, size=(SIZE, HUGE))) + piece * (HUGE >> 26))
    assert path.stat().st_size < 32 << 20
    check_refused(start_server, tmp_path, path)


def behind(data):
    """The archive, and much behind the end that tar sees."""
    return data + gzip.compress(bytes(64 << 20)) * 8


def flipped(at):
    """Changes one byte: at a part of the length or, if negative, so many bytes from the end."""

    def change(data):
        place = at if at < 0 else int(len(data) * at)
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        return bytes(damaged)

    return change


@pytest.mark.parametrize("kind, change, reason", [
    ("gz", flipped(-6), "CRC check failed"),
    ("gz", flipped(-3), "Incorrect length of data"),
    ("gz", lambda data: data[:-5], "ended before the end-of-stream marker"),
    ("gz", flipped(0.5), "rror"),
    ("gz", behind, "far more behind its last member"),
    ("xz", flipped(0.5), "orrupt"),
    ("xz", flipped(-8), "orrupt"),
    ("xz", lambda data: data[:-5], "ended before the end-of-stream marker"),
    ("bz2", flipped(0.5), "could not be opened"),
    ("bz2", lambda data: data[:-5], "ended before the end-of-stream marker"),
], ids=["sum", "length", "cut", "middle", "behind", "xz middle", "xz end", "xz cut", "bz2 middle", "bz2 cut"])  # fmt: skip
def test_archives_that_are_damaged_are_refused_with_the_reason(start_server, tmp_path, kind, change, reason):
    path = tmp_path / f"bad.tar.{kind}"
    content = np.random.default_rng(1).bytes(1 << 16)
    with tarfile.open(path, f"w:{kind}") as tar:
        for i in range(8):
            info, _ = member(f"file{i}", content=content)
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(change(path.read_bytes()))
    assert reason in check_refused(start_server, tmp_path, path)


# S02: what is to lie in the model's folder lies there.
def test_environments_do_not_leave_the_models_folder(start_server, tmp_path):
    environment(tmp_path / "m_env", 5)
    for name, path in (("up", "$$TRITON_MODEL_DIRECTORY/../../m_env"),
                       ("missing", "$$TRITON_MODEL_DIRECTORY/nothing")):
        python_models.write(tmp_path / "m", name, TELLS, extra=parameter(path))
    server = start_server(tmp_path / "m", args=["--exit-on-error=false", "--strict-readiness=false"],
                          env=python_models.ENVIRONMENT)
    entries = index(server)
    assert "leads outside the model directory" in entries["up"]["reason"]
    assert "Failed to get the canonical path for" in entries["missing"]["reason"]


@pytest.mark.parametrize("setting, expected", [
    ("stub-timeout-seconds=0", "stub-timeout-seconds can't be smaller than or equal to zero."),
    ("shm-default-byte-size=5", "shm-default-byte-size can't be smaller than 4 MiBs"),
    ("shm-growth-byte-size=many", "shm-growth-byte-size must be a number"),
    ("python-runtime=/no/such/python", "python-runtime '/no/such/python' is not a program"),
])
def test_settings_are_checked(start_server, tmp_path, setting, expected):
    python_models.write(tmp_path / "m", "id", python_models.IDENTITY)
    server = start_server(tmp_path / "m", env=python_models.ENVIRONMENT,
                          args=["--exit-on-error=false", "--strict-readiness=false",
                                f"--backend-config=python,{setting}"])
    assert expected in index(server)["id"]["reason"]


def test_settings_of_shared_memory_are_accepted(start_server, tmp_path):
    python_models.write(tmp_path / "m", "id", python_models.IDENTITY)
    settings = ("shm-default-byte-size=16777216", "shm-growth-byte-size=1048576",
                "shm-region-prefix-name=mine", f"python-runtime={sys.executable}")
    server = start_server(tmp_path / "m", args=[f"--backend-config=python,{s}" for s in settings])
    assert infer(server, "id") == [1]
    server.wait_for_log("these settings have no effect: shm-growth-byte-size, shm-default-byte-size, shm-region-prefix-name")
