# SPDX-License-Identifier: Apache-2.0
"""gRPC by hand over a socket: calls whose bytes are made once, and answers whose frames are walked.

Costs the client a fraction of what grpcio costs, and sends exactly what it is told.
"""

import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME = 16384
ROOM = 2**31 - 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name, value):
    """A field as a literal that enters no table."""
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def prefix(size):
    """What gRPC puts before a message of so many bytes."""
    return struct.pack(">BI", 0, size)


def message(data):
    """A message with the prefix gRPC gives it."""
    return prefix(len(data)) + data


class Connection:
    def __init__(self, server, timeout=30, room=True):
        """To a server over its transport, or to a port. With `room` the server may send without end."""
        if isinstance(server, int):
            self.socket = socket.create_connection(("127.0.0.1", server), timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = server.connect("grpc", timeout)
        self.buffer = bytearray()
        self.next_stream = 1
        self.received = 0  # bytes of data that the server was not given room for again
        settings = struct.pack(">HI", 4, ROOM)  # every stream may send so much
        opening = PREFACE + frame(SETTINGS, 0, 0, settings if room else b"")
        self.socket.sendall(opening + (self._room(ROOM - 65535) if room else b""))
        # What the server allows holds once it knows that it was heard.
        while self.next_frame()[0] != SETTINGS:
            pass

    def _room(self, size):
        return frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", size))

    def close(self):
        self.socket.close()

    def next_frame(self):
        """The next frame: (type, flags, stream, payload)."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the server closed the connection")
            self.buffer += data
        size = int.from_bytes(self.buffer[:3], "big")
        kind, flags, stream = struct.unpack_from(">BBI", self.buffer, 3)
        payload = bytes(self.buffer[9 : 9 + size])
        del self.buffer[: 9 + size]
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        return kind, flags, stream, payload

    def _give_room(self, size):
        self.received += size
        if self.received > ROOM // 2:
            self.socket.sendall(self._room(self.received))
            self.received = 0

    @staticmethod
    def head_of(method):
        fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", f"/inference.GRPCInferenceService/{method}"),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
        return b"".join(header(*field) for field in fields)

    def begin_call(self, method, body):
        """Sends a call that does not end; returns its stream. What the server does not read is not sent."""
        stream = self.next_stream
        self.next_stream += 2
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, self.head_of(method)))
        try:
            for at in range(0, len(body), FRAME):
                self.socket.sendall(frame(DATA, 0, stream, body[at : at + FRAME]))
        except OSError:
            pass
        return stream

    def is_refused(self, timeout):
        """Whether a call ends in time."""
        self.socket.settimeout(timeout)
        try:
            while True:
                kind, flags, _, _ = self.next_frame()
                if kind == HEADERS and flags & END_STREAM:
                    return True
        except (EOFError, OSError):
            return False

    def goaway_code(self):
        """The reason for which the server ends the connection."""
        while True:
            kind, _, _, payload = self.next_frame()
            if kind == GOAWAY:
                return int.from_bytes(payload[4:8], "big")

    def send_calls(self, method, body, count):
        """Sends `count` calls with this body in one piece."""
        head = self.head_of(method)
        out = bytearray()
        for _ in range(count):
            out += frame(HEADERS, END_HEADERS, self.next_stream, head)
            for at in range(0, len(body), FRAME):
                last = END_STREAM if at + FRAME >= len(body) else 0
                out += frame(DATA, last, self.next_stream, body[at : at + FRAME])
            self.next_stream += 2
        self.socket.sendall(out)

    def await_ends(self, count):
        """Reads until so many streams have ended; what came as data, by stream."""
        data = {}
        while count > 0:
            kind, flags, stream, payload = self.next_frame()
            assert kind not in (RST_STREAM, GOAWAY), (kind, payload)
            if kind == DATA:
                self._give_room(len(payload))
                data.setdefault(stream, bytearray()).extend(payload)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                count -= 1
        return data

    def call(self, method, body):
        """The messages that answer one call."""
        self.send_calls(method, body, 1)
        (data,) = self.await_ends(1).values()
        messages = []
        while data:
            size = struct.unpack_from(">I", data, 1)[0]
            messages.append(bytes(data[5 : 5 + size]))
            del data[: 5 + size]
        return messages
