# SPDX-License-Identifier: Apache-2.0
"""Runs programs under strace in a network of their own, which leads nowhere, and tells which files they wrote and
whom they tried to talk to."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import server as servers

_CHANGES = ("creat mkdir mkdirat rename renameat renameat2 unlink unlinkat link linkat symlink symlinkat mknod mknodat "
            "truncate chmod fchmodat chown lchown fchownat utime utimes utimensat futimesat setxattr lsetxattr").split()
_TALK = ["connect", "sendto", "sendmsg", "sendmmsg", "bind"]
_OPENS = ["open", "openat", "openat2"]
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
# A path as strace writes one: with the folder that it is relative to, or alone.
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<path>[^"]*)"')
# The C library asks this for users' names, if it is there.
_NAME_SERVICE = "/var/run/nscd/socket"

# Signs by which libraries recognise a machine of continuous integration, where some keep silent by themselves, and
# settings that would hide what they do otherwise. A watched program starts without any of them.
_KEPT = ("PATH", "LANG", "LC_ALL", "NEREID_BUILD", "LD_LIBRARY_PATH")


def require():
    """Skips the test where programs cannot be watched."""
    if servers.is_sanitized():
        pytest.skip("LeakSanitizer does not work under strace")
    for program in ("strace", "unshare", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    if subprocess.run(_isolated(["strace", "-f", "-o", "/dev/null", "true"]), capture_output=True).returncode != 0:
        pytest.skip("processes may not be watched, or get no network of their own, here")


def _isolated(command):
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]


@dataclasses.dataclass
class Seen:
    """What a program did."""

    changed: set = dataclasses.field(default_factory=set)  # paths
    addresses: set = dataclasses.field(default_factory=set)  # that it used or tried
    programs: set = dataclasses.field(default_factory=set)  # that it started
    looked_for: set = dataclasses.field(default_factory=set)  # files of the current folder, which may be anybody's


class Watched:
    """A place to run programs: an empty home, an empty current folder, and a folder for temporary files."""

    def __init__(self, folder):
        self.home, self.current, self.temporary, self._trace = (
            folder / name for name in ("home", "current", "temporary", "trace"))
        for path in (self.home, self.current, self.temporary):
            path.mkdir(parents=True)
        self.environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.environment.update(HOME=str(self.home), TMPDIR=str(self.temporary))

    def start(self, command, output, env=None):
        """Starts the command; the process that is returned is its own, not that of strace."""
        calls = ",".join(_CHANGES + _TALK + _OPENS + ["execve", "execveat"])
        watch = ["strace", "-D", "-f", "--seccomp-bpf", "-y", "-qq", "-s", "300", "-e", f"trace={calls}", "-e", "signal=none",
                 "-o", str(self._trace)]
        return subprocess.Popen(
            _isolated([*watch, *map(str, command)]), env={**self.environment, **(env or {})}, cwd=self.current,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def seen(self):
        """What the program did, which has ended."""
        # strace is a process of its own and writes its last lines after the program has ended.
        servers.wait_until(lambda: not _is_traced(self._trace), "the end of strace")
        seen = Seen()
        for line in self._trace.read_text(errors="replace").splitlines():
            match = _CALL.match(line)
            if match is None:
                continue
            call, rest = match[2], match[3]
            if call.startswith("execve"):
                if "= 0" in rest:
                    seen.programs.add(_PATH.search(rest)["path"])
                continue
            if call in _TALK:
                seen.addresses.update(_addresses(rest))
                continue
            if call in _OPENS:
                seen.looked_for.update(path for path in self._paths(rest) if path.startswith(f"{self.current}/"))
            if call in _CHANGES or _WRITES.search(rest):
                paths = list(self._paths(rest))
                # A link's target is only named.
                seen.changed.update(paths[-1:] if call.startswith(("symlink", "link")) else paths)
        return seen

    def _paths(self, rest):
        for match in _PATH.finditer(rest):
            folder = pathlib.Path(match["folder"] or self.current)
            yield os.path.normpath(folder / match["path"])


def _is_traced(trace):
    """Whether a process still has the file of the trace open."""
    for descriptor in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(descriptor) == str(trace):
                return True
        except OSError:
            continue
    return False


def _addresses(rest):
    """The addresses among a call's arguments, as short texts."""
    for unix in re.findall(r'sa_family=AF_UNIX, sun_path=(@?"[^"]*")', rest):
        if unix.strip('"') != _NAME_SERVICE:
            yield f"unix {unix}"
    for port, address in re.findall(r'sin6?_port=htons\((\d+)\).*?inet_(?:addr|pton)\((?:AF_INET6, )?"([^"]*)"', rest):
        yield f"{address}:{port}"
    for family in re.findall(r"sa_family=(AF_\w+)", rest):
        if family not in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_UNSPEC"):
            yield family


def outside(paths, *folders):
    """The paths that are in none of the folders; devices and what a process says of itself do not count."""
    folders = [str(folder) for folder in folders] + ["/dev/null", "/dev/tty", "/proc/self", "/proc/thread-self"]
    return sorted(path for path in paths
                  if not any(path == folder or path.startswith(folder + "/") for folder in folders))
