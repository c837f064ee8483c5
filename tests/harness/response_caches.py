# SPDX-License-Identifier: Apache-2.0
"""What servers keep responses in: flags for the caches of the build, and a Redis of the test's own."""

import shutil
import signal
import subprocess

from harness import server as servers


def cache_args(*settings):
    return [
        f"--cache-directory={servers.backends().parent / 'caches'}",
        *(f"--cache-config={setting}" for setting in settings),
    ]


class Redis:
    """A redis-server of the test's own, which keeps nothing on disk and cannot fill the machine's memory."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.options = options
        self.port = servers.free_ports(1)[0]
        self.process = None
        self.start()

    def start(self):
        binary = shutil.which("redis-server")
        assert binary, "there is no redis-server; tools/setup installs it"
        self.process = subprocess.Popen(
            [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
            # In a run of hours nearly every request has an entry of its own.
            + ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]
            + ["--dir", str(self.folder), *self.options],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        servers.wait_until(lambda: "PONG" in self.cli("PING", check=False), "redis-server")

    def cli(self, *words, check=True):
        password = [self.options[self.options.index("--requirepass") + 1]] if "--requirepass" in self.options else []
        auth = ["-a", *password, "--no-auth-warning"] if password else []
        run = subprocess.run(
            ["redis-cli", "-p", str(self.port), *auth, *words], capture_output=True, text=True, timeout=30
        )
        assert run.returncode == 0 or not check, run.stderr
        return run.stdout.strip()

    def keys(self):
        return self.cli("KEYS", "*").split()

    def args(self, *settings):
        """The flags of a server that keeps its responses there, and waits for them on a busy machine as well."""
        names = [setting.split("=")[0] for setting in settings]
        patience = ("connect_timeout", "socket_timeout", "wait_timeout")
        settings = [*(f"{name}=20000" for name in patience if name not in names), *settings]
        address = ["redis,host=127.0.0.1", f"redis,port={self.port}"]
        return cache_args(*address, *(f"redis,{setting}" for setting in settings))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
