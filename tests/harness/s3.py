# SPDX-License-Identifier: Apache-2.0
"""An S3 server on a folder: `rclone serve s3`, which checks signatures. Buckets are its folders."""

import contextlib
import pathlib
import socket
import subprocess
import sys
import threading

from harness import server as servers

KEY, SECRET = "test-key", "test/secret+key"


class S3Server:
    """A running server. Whoever writes into `folder` changes the objects."""

    def __init__(self, folder, log_path, certificate=None):
        self.folder, self.log_path, self.certificate = folder, log_path, certificate
        self.port = servers.free_ports(1)[0]
        self.process = None

    def start(self):
        program = pathlib.Path(sys.executable).parent / "rclone"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program, "serve", "s3", f"--addr=127.0.0.1:{self.port}", f"--auth-key={KEY},{SECRET}"]
                + ["--config=/dev/null", "--dir-cache-time=0", "--poll-interval=0"]
                + self._tls()
                + [self.folder],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        servers.wait_until(self._listens, "the S3 server listens")

    def _tls(self):
        if self.certificate is None:
            return []
        return [f"--cert={self.certificate.cert}", f"--key={self.certificate.key}"]

    def _listens(self):
        assert self.process.poll() is None, self.log_path.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def url(self, path, port=None):
        scheme = "https" if self.certificate else "http"
        return f"s3://{scheme}://127.0.0.1:{port or self.port}/{path}"


@contextlib.contextmanager
def running(folder, log_path, certificate=None):
    server = S3Server(folder, log_path, certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def environment(cache, home, **more):
    """The environment of a server under test: keys, and nothing of whoever runs the tests."""
    cache.mkdir(exist_ok=True)
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "TRITON_AWS_MOUNT_DIRECTORY": str(cache),
        "HOME": str(home),
        "no_proxy": "127.0.0.1",
        **more,
    }


class Proxy:
    """Stands between the server under test and S3: counts requests by their first line, and breaks
    connections off after a number of bytes of answers."""

    def __init__(self, port):
        self.target = port
        self.requests = []
        self.bytes_left = None  # until it breaks off; None: never
        self.is_away = False  # hangs up on everybody
        self.bytes_passed = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def count(self, text):
        with self._lock:
            return sum(text in line for line in self.requests)

    def clear(self):
        with self._lock:
            self.requests.clear()
            self.bytes_passed = 0

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_away:
                client.close()
                continue
            try:
                upstream = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for body, arguments in ((self._ask, (client, upstream)), (self._answer, (upstream, client))):
                threading.Thread(target=body, args=arguments, daemon=True).start()

    def _ask(self, client, upstream):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if data.startswith(b"GET "):
                    with self._lock:
                        self.requests.append(data.split(b"\r\n", 1)[0].decode())
                upstream.sendall(data)
        self._end(client, upstream)

    def _answer(self, upstream, client):
        with contextlib.suppress(OSError):
            while data := upstream.recv(65536):
                with self._lock:
                    if self.bytes_left is not None:
                        data = data[: self.bytes_left]
                        self.bytes_left -= len(data)
                    self.bytes_passed += len(data)
                    is_over = self.bytes_left == 0
                client.sendall(data)
                if is_over:
                    break
        self._end(client, upstream)

    @staticmethod
    def _end(*sockets):
        for end in sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
