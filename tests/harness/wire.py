# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 by hand over a socket, for what well-behaved clients never send."""

import json


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The error text of a JSON error object; None when the body is something else."""
        try:
            error = json.loads(self.body).get("error")
            return error["message"] if isinstance(error, dict) else error
        except (ValueError, AttributeError, KeyError):
            return None

    def __repr__(self):
        return f"Reply({self.status}, {self.headers}, {self.body[:300]!r})"


class Connection:
    """One connection. Reads keep what came early, so pipelined replies come out one by one. Requests carry the
    credentials of the server's transport, unless it is a stranger's."""

    credentials = {}

    def __init__(self, server, timeout=30, is_strange=False):
        self.socket = server.connect("http", timeout)
        self.buffer = b""
        if not is_strange:
            self.credentials = server.transport.credentials

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer += data

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(mark, 1)
        return head

    def _exactly(self, count):
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def receive(self):
        head = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        headers = {}
        for line in head[1:]:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        if status == 100:
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                body += self._exactly(size)
                self._exactly(2)
            self._exactly(2)
        else:
            body = self._exactly(int(headers.get("content-length", "0")))
        return Reply(status, headers, body)

    def encode(self, method, path, body=b"", headers=()):
        headers = headers.items() if isinstance(headers, dict) else headers
        return encode(method, path, body, [*self.credentials.items(), *headers])

    def request(self, method, path, body=b"", headers=()):
        self.send(self.encode(method, path, body, headers))
        return self.receive()

    def is_closed_by_server(self):
        """Reads to the end; True when the end comes before the timeout."""
        try:
            while True:
                self._more()
        except EOFError:
            return True
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


def encode(method, path, body=b"", headers=()):
    if isinstance(body, str):
        body = body.encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    headers = list(headers.items()) if isinstance(headers, dict) else list(headers)
    if not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers):
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def request(server, method, path, body=b"", headers=(), is_strange=False):
    """One request on a connection of its own."""
    with Connection(server, is_strange=is_strange) as connection:
        return connection.request(method, path, body, headers)


def infer_body(inputs, outputs=None, **top):
    """A request with binary tensors: (bytes, headers). Inputs: (name, datatype, shape, bytes)."""
    head = dict(top)
    head["inputs"] = [
        {"name": n, "datatype": t, "shape": list(s), "parameters": {"binary_data_size": len(d)}}
        for n, t, s, d in inputs
    ]
    if outputs is not None:
        head["outputs"] = outputs
    text = json.dumps(head).encode()
    return text + b"".join(d for *_, d in inputs), {"Inference-Header-Content-Length": str(len(text))}


def split_reply(reply):
    """(JSON head, binary tail) of an inference reply."""
    length = reply.headers.get("inference-header-content-length")
    if length is None:
        return reply.json(), b""
    return json.loads(reply.body[: int(length)]), reply.body[int(length) :]
