# SPDX-License-Identifier: Apache-2.0
"""The ways in which clients reach a server's ports: plain TCP, TLS, and Unix sockets."""

import pathlib
import shutil
import socket
import tempfile

import grpc

from harness import certificates


class Tcp:
    name = "tcp"
    args = ()

    def connect(self, server, service, timeout):
        """A connected socket for `service`, http or grpc."""
        port = server.http_port if service == "http" else server.grpc_port
        made = socket.create_connection(("127.0.0.1", port), timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def channel(self, server, options=()):
        return grpc.insecure_channel(server.grpc, options=options)

    def connect_bare(self, server, service, timeout=30):
        """A connected socket on which nothing was said yet."""
        return self.connect(server, service, timeout)

    def close(self):
        pass


class Tls(Tcp):
    name = "tls"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="nereid-tls-")
        authority = certificates.make(self.folder, "authority")
        made = certificates.make(self.folder, "server", authority)
        self.context = certificates.client_context(authority)
        self.roots = pathlib.Path(authority.cert).read_bytes()
        self.args = [
            flag
            for protocol in ("http", "grpc")
            for flag in (
                f"--{protocol}-use-ssl=true",
                f"--{protocol}-server-cert={made.cert}",
                f"--{protocol}-server-key={made.key}",
            )
        ]

    def connect(self, server, service, timeout):
        self.context.set_alpn_protocols(["http/1.1" if service == "http" else "h2"])
        plain = self.connect_bare(server, service, timeout)
        return self.context.wrap_socket(plain, server_hostname="localhost")

    def channel(self, server, options=()):
        return grpc.secure_channel(
            f"localhost:{server.grpc_port}", grpc.ssl_channel_credentials(self.roots), options=options
        )

    def connect_bare(self, server, service, timeout=30):
        return super().connect(server, service, timeout)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Unix(Tcp):
    name = "unix"

    def __init__(self):
        # Paths of sockets are limited to 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="n-")
        self.args = [f"--{s}-address=unix:{self.folder}/{s}" for s in ("http", "grpc")]

    def connect(self, server, service, timeout):
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(timeout)
        made.connect(f"{self.folder}/{service}")
        return made

    def channel(self, server, options=()):
        return grpc.insecure_channel(f"unix:{self.folder}/grpc", options=options)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


KINDS = {kind.name: kind for kind in (Tcp, Tls, Unix)}
