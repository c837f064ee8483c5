# SPDX-License-Identifier: Apache-2.0
"""What is asked of programs and libraries: what they need, where they look, and which symbols they want."""

import functools
import re
import subprocess

# Libraries of glibc and gcc, which every system has that runs programs of others (those of manylinux).
# All others go along.
OF_EVERY_SYSTEM = {
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libanl.so.1",
    "libmvec.so.1",
    "libstdc++.so.6",
    "libgcc_s.so.1",
}


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def dynamic_section(path):
    """Pairs such as ("NEEDED", "libc.so.6")."""
    text = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\((\w+)\)[^\[\n]*\[([^\]]*)\]", text)


def needed(path):
    return [value for tag, value in dynamic_section(path) if tag == "NEEDED"]


def search_path(path):
    for tag, value in dynamic_section(path):
        if tag in ("RPATH", "RUNPATH"):
            return value
    return ""


def newest_symbol_version(path, family):
    """The newest version of `family` ("GLIBC", "GLIBCXX") that the file wants, as a tuple."""
    text = subprocess.run(["readelf", "-VW", path], check=True, capture_output=True, text=True).stdout
    wants = text.partition("Version needs section")[2]
    found = re.findall(rf"Name: {family}_([0-9.]+)", wants)
    return max((tuple(map(int, version.split("."))) for version in found), default=())


@functools.lru_cache
def loader_cache():
    """Where this machine has each library."""
    text = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    found = {}
    for name, path in re.findall(r"^\s+(\S+) \([^)]*(?:x86-64|AArch64)[^)]*\) => (\S+)$", text, re.M):
        found.setdefault(name, path)
    return found
