# SPDX-License-Identifier: Apache-2.0
"""The Debian packages on a minimal Debian: apt installs, upgrades and purges them; the service's command serves."""

import re
import shlex
import shutil
import subprocess

import pytest
from harness import server as servers
from harness.notify import NotifySocket
from made import PREDECESSOR, only
from predictions import check_digits

UNIT = "lib/systemd/system/nereid.service"


def install(root, folder, *names, again=False):
    paths = [root.put(only(folder, f"{name}_*.deb")) for name in names]
    root.run("apt-get", "install", "-y", "--no-install-recommends", *["--reinstall"] * again, *paths)


def installed_version(root):
    return root.run("dpkg-query", "-W", "-f", "${Version}", "nereid")


def service_command(root):
    """The unit's command with the flags of /etc/nereid, as systemd would run it."""
    unit = (root.folder / UNIT).read_text()
    start = re.search(r"(?m)^ExecStart=(.*)$", unit)[1]
    environment = re.search(r"(?m)^EnvironmentFile=(.*)$", unit)[1]
    settings = (root.folder / environment.lstrip("/")).read_text()
    flags = re.search(r'(?m)^NEREID_FLAGS="((?:[^"\\]|\\\n)*)"', settings)[1].replace("\\\n", "")
    return shlex.split(start.replace("$NEREID_FLAGS", flags))


def as_nobody(command):
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", *command]


@pytest.fixture
def installed(clean, packages):
    install(clean, packages, "nereid", "nereid-backend-onnxruntime")
    return clean


def test_the_service_serves_digits_after_the_installation_as_nobody(installed, tmp_path):
    socket = NotifySocket(installed.folder / "notify")
    environment = {"NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "300000"}
    server = installed.serve(as_nobody(service_command(installed)), tmp_path, **environment)
    check_digits(server)
    assert socket.receive().startswith("READY=1")
    assert socket.receive() == "WATCHDOG=1"
    server.stop()
    assert "STOPPING=1" in "\n".join(socket.waiting())


def test_an_upgrade_keeps_the_configuration(clean, predecessors, packages, tmp_path):
    install(clean, predecessors, "nereid", "nereid-backend-onnxruntime")
    assert installed_version(clean) == PREDECESSOR
    configuration = clean.folder / "etc/nereid/nereid.conf"
    changed = configuration.read_text().replace("--exit-on-error=false", "--exit-on-error=false --id=mine")
    configuration.write_text(changed)
    install(clean, packages, "nereid", "nereid-backend-onnxruntime")
    assert installed_version(clean) != PREDECESSOR
    assert configuration.read_text() == changed
    server = clean.serve(service_command(clean), tmp_path)
    check_digits(server)
    server.stop()


# Stands for the service manager: it knows the state of one service, and writes down what it was told to do with it, and what
# was there then.
SYSTEMCTL = """#!/bin/sh
for action in "$@"; do case $action in -*) ;; *) break ;; esac; done
case $action in
  is-active | is-enabled) cat "/systemd/$action"; grep -qx 'active\\|enabled' "/systemd/$action"; exit ;;
  start | restart | try-restart) ;;
  *) exit 0 ;;
esac
waits=waits
case " $* " in *" --no-block "*) waits=at-once ;; esac
backends=$(cd /usr/lib/nereid/backends && ls -d onnxruntime python 2>/dev/null)
numpy=$(python3 -c 'import numpy' 2>/dev/null && echo numpy)
echo $action $waits $backends $numpy >>/systemd/calls
"""
BACKENDS = ("nereid-backend-onnxruntime", "nereid-backend-python")


class Systemd:
    """A system that was booted with systemd, as far as the scripts of packages can tell."""

    def __init__(self, root):
        self.folder = root.folder / "systemd"
        (root.folder / "run/systemd/system").mkdir(parents=True)
        self.folder.mkdir()
        program = root.folder / "usr/bin/systemctl"
        program.write_text(SYSTEMCTL)
        program.chmod(0o755)
        self.is_now("inactive", "disabled")

    def is_now(self, activity, enabled="enabled"):
        (self.folder / "is-active").write_text(f"{activity}\n")
        (self.folder / "is-enabled").write_text(f"{enabled}\n")
        (self.folder / "calls").write_text("")

    def calls(self):
        """What it was told to do with the service since is_now."""
        return (self.folder / "calls").read_text().splitlines()


def test_an_installation_starts_the_service_and_an_upgrade_restarts_it_once(clean, predecessors, packages):
    systemd = Systemd(clean)
    systemd.is_now("inactive")
    install(clean, predecessors, "nereid", *BACKENDS)
    # When all is there that its models need, and without a wait for these.
    assert systemd.calls() == ["start at-once onnxruntime python numpy"]
    systemd.is_now("active")
    install(clean, packages, "nereid", *BACKENDS)
    assert systemd.calls() == ["restart at-once onnxruntime python numpy"]


def test_a_backend_that_comes_or_goes_restarts_the_service(clean, packages):
    systemd = Systemd(clean)
    systemd.is_now("inactive")
    install(clean, packages, "nereid", "nereid-backend-python")
    assert systemd.calls() == ["start at-once python numpy"]
    # It still loads its models.
    systemd.is_now("activating")
    install(clean, packages, "nereid-backend-onnxruntime")
    assert systemd.calls() == ["restart at-once onnxruntime python numpy"]
    systemd.is_now("active")
    clean.run("apt-get", "remove", "-y", "nereid-backend-onnxruntime")
    assert systemd.calls() == ["restart at-once python numpy"]
    # One that somebody has stopped stays so.
    systemd.is_now("inactive")
    install(clean, packages, "nereid-backend-onnxruntime")
    assert systemd.calls() == []
    clean.run("apt-get", "remove", "-y", "nereid", *BACKENDS)
    assert systemd.calls() == []


def test_the_service_is_started_only_where_that_is_wanted(clean, packages):
    systemd = Systemd(clean)
    # It is disabled.
    install(clean, packages, "nereid")
    assert systemd.calls() == []
    # A service that has failed is started by another version, but not where nothing may be.
    systemd.is_now("failed")
    policy = clean.folder / "usr/sbin/policy-rc.d"
    policy.write_text('#!/bin/sh\necho "$@" >/systemd/asked\nexit 101\n')
    policy.chmod(0o755)
    install(clean, packages, "nereid", again=True)
    assert systemd.calls() == []
    assert (systemd.folder / "asked").read_text() == "nereid.service restart\n"
    policy.unlink()
    install(clean, packages, "nereid", again=True)
    assert systemd.calls() == ["restart at-once"]


def test_purging_leaves_nothing(clean, packages):
    # What our packages depend on stays; it comes first.
    install(clean, packages, "nereid")
    clean.run("apt-get", "purge", "-y", "nereid")
    before = clean.files()
    install(clean, packages, "nereid", "nereid-backend-onnxruntime")
    assert "usr/bin/nereid" in clean.files()
    clean.run("apt-get", "purge", "-y", "nereid", "nereid-backend-onnxruntime")
    assert clean.files() == before


def test_the_program_has_a_manual_page(packages, tmp_path):
    subprocess.run(["dpkg-deb", "-x", only(packages, "nereid_*.deb"), tmp_path], check=True)
    page = subprocess.run(["gzip", "-dc", tmp_path / "usr/share/man/man1/nereid.1.gz"], check=True, capture_output=True)
    assert b"\\-\\-model\\-repository" in page.stdout
    if shutil.which("man"):
        command = ["man", "--warnings", "-l", tmp_path / "usr/share/man/man1/nereid.1.gz"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True, env={"MANWIDTH": "100", "LANG": "C.UTF-8"})
        assert shown.stderr == ""
        assert "--model-repository <string>" in shown.stdout


def test_the_service_keeps_copies_of_models_in_its_cache():
    unit = (servers.ROOT / "packaging/nereid.service").read_text()
    environment = dict(one.split("=") for line in re.findall(r"(?m)^Environment=(.*)$", unit) for one in line.split())
    sources = "".join(path.read_text() for path in (servers.ROOT / "src").glob("*/*_store.cc"))
    stores = set(re.findall(r"TRITON_\w+_MOUNT_DIRECTORY", sources))
    assert len(stores) == 3
    assert {name: environment.get(name) for name in stores} == dict.fromkeys(stores, "%C/nereid")
    assert re.search(r"(?m)^CacheDirectory=nereid$", unit)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_the_service_is_confined(tmp_path):
    unit = servers.ROOT / "packaging/nereid.service"
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", unit]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", shown)[1])
    assert exposure <= 2.0
