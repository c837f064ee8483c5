# SPDX-License-Identifier: Apache-2.0
"""Debian's HAProxy and nginx, and Envoy, run on the files of deploy/proxies with the addresses of a test and shorter
intervals."""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import urllib.request

from harness import server as servers

PROXIES = servers.ROOT / "deploy" / "proxies"
FOLDER = pathlib.Path(os.environ.get("NEREID_PROXIES", servers.ROOT / ".deps" / "proxies"))
FILES = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf", "envoy": "envoy.yaml"}
KINDS = tuple(FILES)
# What the files say, and what is said in tests in its place.
SHORTER = {
    "haproxy": [("inter 1s", "inter 200ms")],
    "nginx": [("fail_timeout=5s", "fail_timeout=1s")],
    "envoy": [("interval: 1s", "interval: 0.2s")],
}


def program(kind):
    """The path of a balancer's program, or None."""
    unpacked = FOLDER / "usr" / "sbin" / kind
    return str(unpacked) if unpacked.exists() else shutil.which(kind)


@functools.cache
def missing(kind):
    """What is not here, in words; an empty text if nothing is."""
    if program(kind) is None:
        return f"no {kind} here; tools/setup --proxies gets it"
    version = "--version" if kind == "envoy" else "-v"
    done = subprocess.run([program(kind), version], capture_output=True, text=True, timeout=60, env=environment())
    # Other releases of the system may have it need other libraries.
    return "" if done.returncode == 0 else f"{kind} does not run here: {done.stderr.strip()}"


def environment():
    """With the libraries that were unpacked beside the programs."""
    libraries = ":".join(str(folder) for folder in FOLDER.glob("usr/lib/*-linux-gnu"))
    return {**os.environ, "LD_LIBRARY_PATH": libraries}


def shipped(kind):
    return (PROXIES / FILES[kind]).read_text()


def placed(kind, text, folder):
    """The configuration with the files that the program writes in this folder."""
    if kind == "haproxy":
        return text.replace("/run/haproxy/admin.sock", str(folder / "admin.sock"))
    if kind == "nginx":
        bodies = "".join(
            f"    {part}_temp_path {folder / part};\n" for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = text.replace("/run/nginx.pid", str(folder / "nginx.pid"))
        return text.replace("error_log stderr", f"error_log {folder / 'error.log'}").replace("\nhttp {\n", "\nhttp {\n" + bodies)
    return text


def configuration(kind, folder, replicas, ports):
    """`replicas` are pairs of ports, HTTP and gRPC; `ports` those of the balancer: HTTP, gRPC and one for itself."""
    text = placed(kind, shipped(kind), folder)
    for before, after in SHORTER[kind]:
        assert before in text
        text = text.replace(before, after)
    for number, (http, grpc) in enumerate(replicas, 1):
        # HAProxy asks for the health of gRPC's ports elsewhere.
        text = re.sub(rf"(10\.0\.0\.{number}:8001 .* port) 8000\b", rf"\g<1> {http}", text)
        for before, after in ((8000, http), (8001, grpc)):
            text = text.replace(f"10.0.0.{number}:{before}", f"127.0.0.1:{after}")
            text = text.replace(f"address: 10.0.0.{number}, port_value: {before}", f"address: 127.0.0.1, port_value: {after}")
    assert "10.0.0." not in text
    for before, after in ((8000, ports[0]), (8001, ports[1])):
        text = re.sub(rf"(bind |listen ):?{before}\b", rf"\g<1>127.0.0.1:{after}", text)
        text = text.replace(f"address: 0.0.0.0, port_value: {before}", f"address: 127.0.0.1, port_value: {after}")
    return text.replace("port_value: 9901", f"port_value: {ports[2]}")


def check(kind, folder, text):
    """What the program says of a configuration: (whether it takes it, its words)."""
    path = folder / FILES[kind]
    path.write_text(text)
    line = {
        "haproxy": ["-c", "-f", str(path)],
        "nginx": ["-t", "-p", str(folder), "-c", str(path)],
        "envoy": ["--mode", "validate", "--disable-hot-restart", "-c", str(path)],
    }[kind]
    done = subprocess.run([program(kind), *line], capture_output=True, text=True, timeout=60, env=environment())
    return done.returncode == 0, done.stdout + done.stderr


class Balancer:
    """A balancer that runs until stop()."""

    def __init__(self, kind, folder, replicas):
        self.kind = kind
        self.http_port, self.grpc_port, self.admin_port = ports = servers.free_ports(3)
        self.http, self.grpc = f"127.0.0.1:{self.http_port}", f"127.0.0.1:{self.grpc_port}"
        path = folder / FILES[kind]
        path.write_text(configuration(kind, folder, replicas, ports))
        self.log_path = folder / f"{kind}.log"
        line = {
            "haproxy": ["-db", "-f", str(path)],
            # Without processes of its own, it ends with its own process.
            "nginx": ["-p", str(folder), "-c", str(path), "-g", "daemon off;"],
            "envoy": ["--disable-hot-restart", "--concurrency", "2", "-l", "warning", "-c", str(path)],
        }[kind]
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                [program(kind), *line], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment(), start_new_session=True)  # fmt: skip
        servers.wait_until(lambda: all(map(self._listens, ports[:2])), f"{kind} to listen")

    def _listens(self, port):
        assert self._process.poll() is None, self.log
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
        return False

    def wait_until_it_passes(self):
        """Until it passes requests on, which it begins to once it has asked for health."""

        def passes():
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{self.http}/v2/health/ready", timeout=10):
                return True
            return False

        servers.wait_until(passes, f"{self.kind} to pass requests on")

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:]

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def require(kind):
    """For commands: ends the program if the balancer is not here."""
    if reason := missing(kind):
        sys.exit(reason)
