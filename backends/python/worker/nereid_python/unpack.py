# SPDX-License-Identifier: Apache-2.0
"""Unpacks the archive of an execution environment: python3 -I unpack.py ARCHIVE FOLDER.

Nothing is written outside the folder, whatever the archive says: each name is resolved from the
folder, one part after the other, without following links. Errors are written to descriptor 3."""

import importlib
import os
import shutil
import socket
import stat
import sys
import tarfile

_MOST_MEMBERS = 2000000
# Programs and libraries shrink to about a third.
_MOST_EXPANSION = 100
_ALWAYS_ALLOWED = 256 << 20

# What the libraries of compressions raise for damaged data. An interpreter may lack some of them.
_DAMAGED = ()
for _module, _name in (("zlib", "error"), ("lzma", "LZMAError"), ("compression.zstd", "ZstdError")):
    try:
        _DAMAGED += (getattr(importlib.import_module(_module), _name),)
    except ImportError:
        pass


class Refused(Exception):
    pass


def _parts(name):
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise Refused("the archive has a member '%s' that leads outside" % name)
    return parts


def _open_folder(root, parts):
    """Returns the folder of these parts below `root`, and makes it if missing; never through a link."""
    current = os.dup(root)
    try:
        for part in parts:
            try:
                os.mkdir(part, 0o755, dir_fd=current)
            except FileExistsError:
                pass
            following = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = following
        return current
    except OSError as error:
        os.close(current)
        raise Refused("the archive writes through '%s': %s" % ("/".join(parts), error.strerror))


class Unpacker:
    def __init__(self, archive, folder):
        self.root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.left = max(os.path.getsize(archive) * _MOST_EXPANSION, _ALWAYS_ALLOWED)
        space = shutil.disk_usage(folder)
        self.left = min(self.left, int(space.free * 0.9))

    def add(self, archive, member):
        parts = _parts(member.name)
        if not parts:
            return
        if member.isdir():
            os.close(_open_folder(self.root, parts))
            return
        folder = _open_folder(self.root, parts[:-1])
        try:
            self.add_to(folder, parts[-1], archive, member)
        finally:
            os.close(folder)

    def add_to(self, folder, name, archive, member):
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        if member.issym():
            os.symlink(member.linkname, name, dir_fd=folder)
        elif member.islnk():
            self.link(folder, name, member.linkname)
        elif member.isreg() and not member.issparse():
            self.write(folder, name, archive, member)
        else:
            raise Refused("the archive has a member '%s' of an unusual kind" % member.name)

    def link(self, folder, name, target):
        parts = _parts(target)
        if not parts:
            raise Refused("the archive has a link to nothing")
        source = _open_folder(self.root, parts[:-1])
        try:
            if not stat.S_ISREG(os.stat(parts[-1], dir_fd=source, follow_symlinks=False).st_mode):
                raise Refused("the archive has a hard link to '%s', which is not a file" % target)
            os.link(parts[-1], name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise Refused("the archive has a hard link to '%s': %s" % (target, error.strerror))
        finally:
            os.close(source)

    def write(self, folder, name, archive, member):
        if member.size < 0:
            # Readers of old versions of Python go back by so much, and read the same member without end.
            raise Refused("the archive has a member '%s' of less than no bytes" % member.name)
        self.left -= member.size
        if self.left < 0:
            raise Refused("the archive is far larger than it looks, or than there is room for")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        mode = (member.mode & 0o777) | 0o600
        with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as to:
            shutil.copyfileobj(archive.extractfile(member), to, 1 << 20)

    def finish(self, stream):
        """Reads what follows the last member: the checksum of all that came before it is at the end."""
        while True:
            piece = stream.read(1 << 20)
            if not piece:
                return
            self.left -= len(piece)
            if self.left < 0:
                raise Refused("the archive has far more behind its last member than it looks")


def main():
    channel = socket.socket(fileno=3)
    try:
        unpacker = Unpacker(sys.argv[1], sys.argv[2])
        with tarfile.open(sys.argv[1], "r:*") as archive:
            for count, member in enumerate(archive):
                if count > _MOST_MEMBERS:
                    raise Refused("the archive has too many members")
                unpacker.add(archive, member)
            unpacker.finish(archive.fileobj)
    except _DAMAGED + (Refused, OSError, EOFError, tarfile.TarError, ValueError) as error:
        channel.sendall(str(error).encode("utf-8", "replace"))
        sys.exit(1)


if __name__ == "__main__":
    main()
