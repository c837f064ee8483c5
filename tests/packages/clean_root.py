# SPDX-License-Identifier: Apache-2.0
"""Clean systems to try packages in: a minimal Debian without a compiler, unpacked into a folder, entered with
chroot in namespaces of its own. The network is that of this machine, so that the clients of the tests reach the
servers inside."""

import os
import pathlib
import shutil
import subprocess

from harness import server as servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What packaging/setup made.
TOOLS = pathlib.Path(os.environ.get("NEREID_PACKAGING", ROOT / ".deps/packaging"))
TAR = TOOLS / "clean-root.tar"

# Runs in a mount namespace of its own, which ends with what it starts.
ENTER = """
mount --make-rprivate /
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec /usr/sbin/chroot "$0" "$@"
"""


def missing():
    """Why packages cannot be tried here, or nothing."""
    if os.geteuid() != 0:
        return "clean systems are entered with chroot, which needs root"
    if not TAR.exists():
        return f"there is no {TAR}: run tools/setup --packaging-tests"
    for program in ("unshare", "patchelf", "dpkg-shlibdeps"):
        if shutil.which(program) is None:
            return f"there is no {program}: run tools/setup --packaging-tests"
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        return "this machine does not permit namespaces"
    return None


class CleanRoot:
    """A system in a folder."""

    ENVIRONMENT = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
    }

    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def unpack(cls, folder):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", TAR, "-C", folder, "--exclude=./dev/*"], check=True)
        return cls(folder)

    def command(self, *command):
        """The command line, on this machine, of a command in there, which becomes the same process."""
        enter = ["unshare", "--mount", "sh", "-ec", ENTER, self.folder]
        return [str(word) for word in (*enter, *command)]

    def run(self, *command, check=True, **environment):
        done = subprocess.run(
            self.command(*command),
            env=self.ENVIRONMENT | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def serve(self, command, log_dir, options=("--http-port", "--grpc-port", "--metrics-port"), **environment):
        """Starts a server in there; clients of this machine reach it. `command` has no flags for ports."""
        ports = servers.free_ports(3)
        line = [*command, *(f"{option}={port}" for option, port in zip(options, ports))]
        return self.start(line, ports, log_dir, **environment)

    def start(self, line, ports, log_dir, **environment):
        """Runs a command line that makes a server with these ports."""
        log_path = log_dir / "server.log"
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                self.command(*line),
                env=self.ENVIRONMENT | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        server = servers.Server(process, log_path, ports)
        try:
            servers.wait_until(lambda: server.is_ready() or process.poll() is not None, "a server that is ready", 60)
            assert process.poll() is None, f"the server ended with {process.returncode}:\n{server.tail()}"
        except AssertionError:
            process.kill()
            process.wait()
            raise
        return server

    def put(self, path, to="/root"):
        target = self.folder / to.lstrip("/") / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        return f"{to}/{path.name}"

    def files(self):
        """All paths in there but those that programs such as apt write as they like."""
        ignored = ("proc/", "sys/", "dev/", "run/", "tmp/", "root/", "var/lib/apt/", "var/cache/", "var/log/")
        found = set()
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if not f"{name}/".startswith(ignored) and not path.is_dir():
                found.add(name)
        return found
