# SPDX-License-Identifier: Apache-2.0
"""The ways in which clients reach a server's ports: plain TCP, TLS, and Unix sockets, each without API keys and
with one."""

import collections
import hashlib
import json
import pathlib
import shutil
import socket
import tempfile

import grpc

from harness import certificates


class Tcp:
    name = "tcp"
    has_ports = True
    args = ()
    credentials = {}  # header fields that each request of a client carries

    def connect(self, server, service, timeout):
        """A connected socket for `service`, http or grpc."""
        port = server.http_port if service == "http" else server.grpc_port
        made = socket.create_connection(("127.0.0.1", port), timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def channel(self, server, options=()):
        return grpc.insecure_channel(server.grpc, options=options)

    def channel_of_a_stranger(self, server, options=()):
        """A channel without credentials."""
        return self.channel(server, options)

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
    has_ports = False

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


# --- API keys ---------------------------------------------------------------------------------

# Any text will do as a key; those that `nereid keys` makes are random.
KEY = "the key of whoever may do everything"
Details = collections.namedtuple(
    "Details", ["method", "timeout", "metadata", "credentials", "wait_for_ready", "compression"]
)


class AddMetadata(
    grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor, grpc.StreamStreamClientInterceptor,
):  # fmt: skip
    """Adds metadata to each call of a channel."""

    def __init__(self, metadata):
        self.metadata = list(metadata)

    def _intercept(self, continuation, details, request):
        fields = {name: getattr(details, name) for name in Details._fields}
        fields["metadata"] = [*(details.metadata or ()), *self.metadata]
        return continuation(Details(**fields), request)

    intercept_unary_unary = intercept_unary_stream = _intercept
    intercept_stream_unary = intercept_stream_stream = _intercept


class Keyed:
    """To a server that asks for API keys; clients have one that permits everything."""

    credentials = {"Authorization": f"Bearer {KEY}"}

    def __init__(self):
        super().__init__()
        self.keys = tempfile.mkdtemp(prefix="nereid-keys-")
        file = pathlib.Path(self.keys) / "keys.json"
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        file.write_text(json.dumps({"keys": [{"id": "all", "sha256": digest, "scopes": ["admin"]}],
                                    "anonymous": {"scopes": ["metrics"]}}))  # fmt: skip
        self.args = [*self.args, f"--api-keys={file}"]

    def channel(self, server, options=()):
        metadata = [(name.lower(), value) for name, value in self.credentials.items()]
        return grpc.intercept_channel(super().channel(server, options), AddMetadata(metadata))

    def channel_of_a_stranger(self, server, options=()):
        return super().channel(server, options)

    def close(self):
        super().close()
        shutil.rmtree(self.keys, ignore_errors=True)


KEYED = {f"{name}-keys": type(f"Keyed{kind.__name__}", (Keyed, kind), {"name": f"{name}-keys"})
         for name, kind in KINDS.items()}  # fmt: skip
ALL = {**KINDS, **KEYED}
