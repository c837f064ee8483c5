# SPDX-License-Identifier: Apache-2.0
"""The service under systemd itself, with all that confines it: a minimal Debian that boots in namespaces of its own,
with the network of this machine."""

import re
import subprocess

import pytest
from harness import server as servers
from made import only
from predictions import check_digits

# Makes the file systems that systemd expects, and becomes it.
BOOT = """
mount --make-rprivate /
mount --rbind "$0" "$0"
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sysfs "$0/sys"
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$0/$folder"; done
chmod 1777 "$0/tmp"
for device in null zero full random urandom tty; do
  touch "$0/dev/$device"; mount --bind "/dev/$device" "$0/dev/$device"
done
mkdir "$0/dev/shm"; mount -t tmpfs tmpfs "$0/dev/shm"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
else
  mount -t tmpfs tmpfs "$0/sys/fs/cgroup"
  mkdir "$0/sys/fs/cgroup/systemd"; mount -t cgroup -o none,name=systemd systemd "$0/sys/fs/cgroup/systemd"
fi
cd "$0"; pivot_root . mnt; umount -l /mnt
exec /usr/bin/env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/sbin/chroot . \
  /lib/systemd/systemd --unit=test.target --log-target=console
"""

TARGET = "[Unit]\nWants=nereid.service\n"

# What an administrator does, in turn, each time that the test says go; the answers are in /answers.
COMMANDS = """#!/bin/sh
mkfifo /go
for what in "$@"; do
  # There is no line where the test has not yet closed the pipe after the one before.
  until read -r line </go; do :; done
  { $what; } >"/answers/$line.part" 2>&1
  echo "status $?" >>"/answers/$line.part"
  mv "/answers/$line.part" "/answers/$line"
done
"""
SHOWN = "ActiveState,StatusText,User,NRestarts,Result,WatchdogTimestampMonotonic,ExecMainPID"


class Machine:
    """A booted system."""

    def __init__(self, root, ports, log_path, steps):
        self.root = root
        units = root.folder / "etc/systemd/system"
        (units / "test.target").write_text(TARGET + "Wants=administrator.service\n")
        words = " ".join(f'"{step}"' for step in steps)
        (units / "administrator.service").write_text(f"[Service]\nExecStart=/administrator {words}\n")
        (root.folder / "administrator").write_text(COMMANDS)
        (root.folder / "administrator").chmod(0o755)
        (root.folder / "answers").mkdir()
        (root.folder / "etc/machine-id").write_text("")
        configuration = root.folder / "etc/nereid/nereid.conf"
        flags = " ".join(f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports))
        configuration.write_text(configuration.read_text().replace("--exit-on-error=false", f"--exit-on-error=false {flags}"))
        namespaces = ["--mount", "--pid", "--fork", "--kill-child=KILL", "--cgroup", "--ipc", "--uts"]
        command = ["unshare", *namespaces, "sh", "-ec", BOOT, str(root.folder)]
        with log_path.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.server = servers.Server(self.process, log_path, ports)
        self.asked = 0

    def next(self):
        """What the next step says."""
        self.asked += 1
        fifo = self.root.folder / "go"
        servers.wait_until(fifo.is_fifo, "the administrator", 60)
        fifo.write_text(f"{self.asked}\n")
        answer = self.root.folder / "answers" / str(self.asked)
        servers.wait_until(answer.exists, "an answer", 60)
        return answer.read_text()

    def show(self):
        return dict(re.findall(r"(?m)^(\w+)=(.*)$", self.next()))

    def end(self):
        self.process.kill()
        self.process.wait()


SHOW = f"systemctl show nereid -p {SHOWN}"
STEPS = (SHOW, "systemctl reload nereid", SHOW, "systemctl stop nereid", SHOW)


@pytest.fixture
def machine(clean, packages, tmp_path):
    names = ("nereid", "nereid-backend-onnxruntime")
    paths = [clean.put(only(packages, f"{name}_*.deb")) for name in names]
    clean.run("apt-get", "install", "-y", "--no-install-recommends", "systemd", *paths)
    booted = Machine(clean, servers.free_ports(3), tmp_path / "boot.log", STEPS)
    try:
        servers.wait_until(lambda: booted.server.is_ready() or booted.process.poll() is not None, "the service", 60)
        if booted.process.poll() is not None:
            pytest.skip(f"systemd cannot be booted here: {booted.server.tail(5)}")
        yield booted
    finally:
        booted.end()


def test_the_confined_service_serves_reloads_and_stops(machine):
    check_digits(machine.server)
    shown = machine.show()
    assert (shown["ActiveState"], shown["StatusText"]) == ("active", "Serving")
    # The user exists only while the service runs.
    assert shown["User"] == "nereid"
    assert "nereid:" not in (machine.root.folder / "etc/passwd").read_text()
    assert machine.next().endswith("status 0\n")
    shown = machine.show()
    assert (shown["ActiveState"], shown["NRestarts"]) == ("active", "0")
    check_digits(machine.server)
    assert machine.next().endswith("status 0\n")
    shown = machine.show()
    assert (shown["ActiveState"], shown["Result"]) == ("inactive", "success")
