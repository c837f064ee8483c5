# SPDX-License-Identifier: Apache-2.0
"""Archives that come out the same, byte for byte, whenever and wherever they are made of the same files:
sorted, with one time for all files, of nobody in particular."""

import gzip
import hashlib
import os
import shutil
import subprocess
import tarfile
import time
import zipfile

from parts import ROOT


def epoch():
    """The time that all files of packages have: SOURCE_DATE_EPOCH, or else that of the last commit."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 315532800  # 1980, which zip archives begin with


def mode_of(path):
    """Permissions that do not depend on the umask of whoever builds."""
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def walk(folder):
    return sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def set_modes_and_times(folder):
    for path in [folder, *walk(folder)]:
        if not path.is_symlink():
            path.chmod(mode_of(path))
        os.utime(path, (epoch(), epoch()), follow_symlinks=False)


def write_tar(file, folder, inside="", modes=()):
    """An uncompressed tar archive of all in `folder`, below the folder `inside`. `modes`: pairs of a path and its
    permissions where these are special."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in walk(folder):
            entry = archive.gettarinfo(path, arcname=inside + path.relative_to(folder).as_posix())
            # Files with the same contents may be links of one another here, and are files there.
            if entry.islnk():
                entry.type, entry.size = tarfile.REGTYPE, path.stat().st_size
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch()
            entry.mode = 0o777 if path.is_symlink() else dict(modes).get(entry.name, mode_of(path))
            if entry.isreg():
                with path.open("rb") as source:
                    archive.addfile(entry, source)
            else:
                archive.addfile(entry)


def write_tar_gz(target, folder, inside="", level=6):
    with target.open("wb") as raw, gzip.GzipFile("", "wb", level, raw, mtime=epoch()) as file:
        write_tar(file, folder, inside)


def write_layer(blobs, folder, modes=()):
    """A layer of an image. Returns its file and the SHA-256 of it before compression."""
    plain = blobs / "layer.tar"
    with plain.open("wb") as file:
        write_tar(file, folder, modes=modes)
    packed = blobs / "layer.tar.gz"
    with plain.open("rb") as source, packed.open("wb") as raw:
        with gzip.GzipFile("", "wb", 9, raw, mtime=epoch()) as file:
            shutil.copyfileobj(source, file, 1 << 20)
    digest = sha256(plain)
    plain.unlink()
    return packed, digest


def write_zip(target, folder, names):
    """A zip archive of these files of `folder`, in this order."""
    stamp = time.gmtime(max(epoch(), 315532800))[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            path = folder / name
            entry = zipfile.ZipInfo(name, stamp)
            entry.external_attr = (0o100000 | mode_of(path)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def sha256(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
