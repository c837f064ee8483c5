# SPDX-License-Identifier: Apache-2.0
"""What HTTP/2 demands of a server when a client breaks a rule (RFC 9113 and 7541, by section).

Each case is bytes after the settings, and the error that must come: of the connection (GOAWAY) or of the
stream (RST_STREAM). A server may always choose the connection's.
"""

import struct

import pytest
from harness import h2

pytestmark = pytest.mark.newer

PRIORITY, PUSH_PROMISE, PING, CONTINUATION, UNKNOWN = 2, 5, 6, 9, 0x42
PADDED = 8
PROTOCOL, FLOW_CONTROL, STREAM_CLOSED, FRAME_SIZE, COMPRESSION = 1, 3, 5, 6, 9

FIELDS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/inference.GRPCInferenceService/ServerLive"),
    (":authority", "localhost"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]


def head(*more, without=()):
    fields = [field for field in FIELDS if field[0] not in without] + list(more)
    return b"".join(h2.header(*field) for field in fields)


def request(block, stream=1, flags=h2.END_HEADERS):
    return h2.frame(h2.HEADERS, flags, stream, block)


def settings(identifier, value):
    return h2.frame(h2.SETTINGS, 0, 0, struct.pack(">HI", identifier, value))


def window(increment, stream=0):
    return h2.frame(h2.WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


OPEN = request(head())  # a stream whose client has more to send
ENDED = request(head(), flags=h2.END_HEADERS | h2.END_STREAM)

BROKEN_RULES = {
    "4.1 a DATA frame on stream 0": (h2.frame(h2.DATA, 0, 0, b"x"), PROTOCOL),
    # Its beginning: the connection may be closed before there is more.
    "4.2 a frame larger than allowed": (h2.frame(h2.DATA, 0, 1, b"x" * ((1 << 20) + 1))[:64], FRAME_SIZE),
    "4.3 a header block that does not decode": (request(b"\xff\xff\xff\xff\xff\xff"), COMPRESSION),
    "5.1 DATA on an idle stream": (h2.frame(h2.DATA, 0, 1, b"x"), PROTOCOL),
    "5.1 RST_STREAM on an idle stream": (h2.frame(h2.RST_STREAM, 0, 1, b"\0\0\0\x08"), PROTOCOL),
    "5.1 WINDOW_UPDATE on an idle stream": (window(1, stream=1), PROTOCOL),
    "5.1 CONTINUATION on an idle stream": (h2.frame(CONTINUATION, 4, 1, head()), PROTOCOL),
    "5.1.1 a stream with an even number": (request(head(), stream=2), PROTOCOL),
    "5.3.1 a stream that depends on itself": (
        OPEN + h2.frame(PRIORITY, 0, 1, struct.pack(">IB", 1, 10)),
        PROTOCOL,
    ),
    "6.1 padding longer than the frame": (OPEN + h2.frame(h2.DATA, PADDED, 1, b"\x09x"), PROTOCOL),
    "6.2 HEADERS on stream 0": (request(head(), stream=0), PROTOCOL),
    "6.2 another frame within a header block": (
        request(head(), flags=0) + h2.frame(PING, 0, 0, b"12345678"),
        PROTOCOL,
    ),
    "6.2 a block continued on another stream": (
        request(head(), flags=0) + h2.frame(CONTINUATION, h2.END_HEADERS, 3, b""),
        PROTOCOL,
    ),
    "6.3 PRIORITY of a wrong length": (OPEN + h2.frame(PRIORITY, 0, 1, b"1234"), FRAME_SIZE),
    "6.4 RST_STREAM on stream 0": (h2.frame(h2.RST_STREAM, 0, 0, b"\0\0\0\x08"), PROTOCOL),
    "6.4 RST_STREAM of a wrong length": (OPEN + h2.frame(h2.RST_STREAM, 0, 1, b"123"), FRAME_SIZE),
    "6.5 SETTINGS on a stream": (h2.frame(h2.SETTINGS, 0, 1, b""), PROTOCOL),
    "6.5 SETTINGS of a wrong length": (h2.frame(h2.SETTINGS, 0, 0, b"123"), FRAME_SIZE),
    "6.5 an acknowledgement with content": (h2.frame(h2.SETTINGS, h2.ACK, 0, b"\0" * 6), FRAME_SIZE),
    "6.5.2 ENABLE_PUSH that is no flag": (settings(2, 2), PROTOCOL),
    "6.5.2 a window beyond 2^31-1": (settings(4, 2**31), FLOW_CONTROL),
    "6.5.2 a frame size below 2^14": (settings(5, 16383), PROTOCOL),
    "6.5.2 a frame size above 2^24-1": (settings(5, 2**24), PROTOCOL),
    "6.6 PUSH_PROMISE of a client": (OPEN + h2.frame(PUSH_PROMISE, 4, 1, b"\0\0\0\x02"), PROTOCOL),
    "6.7 PING on a stream": (h2.frame(PING, 0, 1, b"12345678"), PROTOCOL),
    "6.7 PING of a wrong length": (h2.frame(PING, 0, 0, b"1234"), FRAME_SIZE),
    "6.8 GOAWAY on a stream": (h2.frame(h2.GOAWAY, 0, 1, b"\0" * 8), PROTOCOL),
    "6.9 no room given to the connection": (window(0), PROTOCOL),
    "6.9 no room given to a stream": (OPEN + window(0, stream=1), PROTOCOL),
    "6.9 WINDOW_UPDATE of a wrong length": (h2.frame(h2.WINDOW_UPDATE, 0, 0, b"123"), FRAME_SIZE),
    "6.9.1 too much room for the connection": (window(2**31 - 1), FLOW_CONTROL),
    "6.9.1 too much room for a stream": (OPEN + window(2**31 - 1, stream=1), FLOW_CONTROL),
    "6.10 CONTINUATION after the end of a block": (OPEN + h2.frame(CONTINUATION, 4, 1, b""), PROTOCOL),
    "8.1 a second block that does not end the stream": (OPEN + request(head()), PROTOCOL),
    "8.1.1 less data than content-length": (
        request(head(("content-length", "9"))) + h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")),
        PROTOCOL,
    ),
    "8.2.1 a name in capitals": (request(head(("X-Test", "1"))), PROTOCOL),
    "8.2.2 a field of the connection": (request(head(("connection", "keep-alive"))), PROTOCOL),
    "8.2.2 te that is not trailers": (request(head(("te", "gzip"), without=["te"])), PROTOCOL),
    "8.3 an unknown pseudo-field": (request(h2.header(":test", "1") + head()), PROTOCOL),
    "8.3 a pseudo-field behind others": (request(head((":path", "/"), without=[":path"])), PROTOCOL),
    "8.3 a pseudo-field of responses": (request(h2.header(":status", "200") + head()), PROTOCOL),
    "8.3.1 no method": (request(head(without=[":method"])), PROTOCOL),
    "8.3.1 no scheme": (request(head(without=[":scheme"])), PROTOCOL),
    "8.3.1 no path": (request(head(without=[":path"])), PROTOCOL),
    "8.3.1 an empty path": (request(h2.header(":path", "") + head(without=[":path"])), PROTOCOL),
    "8.3.1 two methods": (request(h2.header(":method", "POST") + head()), PROTOCOL),
    "HPACK 2.3.3 an index beyond the tables": (request(head() + b"\xc6"), COMPRESSION),
    "HPACK 4.2 a table larger than allowed": (request(b"\x3f\xe1\xff\x03" + head()), COMPRESSION),
    "HPACK 6.1 index 0": (request(head() + b"\x80"), COMPRESSION),
}


@pytest.mark.parametrize("rule", BROKEN_RULES)
def test_a_broken_rule_is_answered_by_its_error(server, rule):
    data, error = BROKEN_RULES[rule]
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(data)
        assert next_error(connection) == error


AFTER_A_LIKE_ONE = {
    "8.2.2 a field of the connection": head(("connection", "keep-alive")),
    "8.3 a pseudo-field behind others": head(without=["content-type"]) + h2.header(":authority", "localhost"),
    "8.3 a pseudo-field behind a timeout": h2.header(":method", "POST")
    + h2.header("grpc-timeout", "9S")
    + head(without=[":method"]),
    "8.3.1 no path": head(without=[":path"]),
    "8.3.1 fields missing at the end": head(without=[":authority", "te", "content-type"]),
    "8.3.1 two methods": head((":method", "POST")),
}


@pytest.mark.parametrize("late", [ENDED, request(head())], ids=["ending it again", "leaving it open"])
def test_5_1_headers_for_a_stream_that_is_over_are_refused(server, late):
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(ENDED)
        while connection.next_frame()[:3] != (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1):
            pass
        connection.socket.sendall(late)
        assert next_error(connection) == STREAM_CLOSED


def test_5_1_1_stream_numbers_grow(server):
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(request(head(), stream=9) + request(head(), stream=3))
        assert next_error(connection) == PROTOCOL


def test_5_1_frames_that_cross_a_reset_are_put_up_with(server):
    """The client cannot know yet that its stream is over."""
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(request(head(("connection", "close"))))
        assert next_error(connection) == PROTOCOL
        connection.socket.sendall(h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")) + request(head(), stream=3))
        connection.socket.sendall(h2.frame(PING, 0, 0, b"12345678"))
        while True:
            kind = connection.next_frame()[0]
            assert kind != h2.GOAWAY
            if kind == PING:
                return


@pytest.mark.parametrize("rule", AFTER_A_LIKE_ONE)
def test_a_rule_is_kept_after_a_request_that_began_in_the_same_way(server, rule):
    """Only what differs from the request before is looked at closely."""
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(request(head(), stream=1) + request(head(("grpc-timeout", "9S")), stream=3))
        connection.socket.sendall(request(AFTER_A_LIKE_ONE[rule], stream=5))
        assert next_error(connection) == PROTOCOL


def next_error(connection):
    """The code of the next GOAWAY or RST_STREAM."""
    while True:
        kind, _, _, payload = connection.next_frame()
        if kind == h2.GOAWAY:
            return struct.unpack_from(">I", payload, 4)[0]
        if kind == h2.RST_STREAM:
            return struct.unpack(">I", payload)[0]


def test_5_1_data_behind_the_end_of_a_stream_is_refused(server):
    """The stream is still open on the server's side: its answer waits for room."""
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(settings(4, 0))  # no room for data
        connection.socket.sendall(
            request(head()) + h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")) + h2.frame(h2.DATA, 0, 1, b"x")
        )
        assert next_error(connection) == STREAM_CLOSED


@pytest.mark.parametrize(
    "harmless",
    [
        h2.frame(UNKNOWN, 0xFF, 0, b"anything"),
        h2.frame(UNKNOWN, 0xFF, 7, b"anything"),
        settings(0x99, 12),
        h2.frame(PRIORITY, 0, 5, struct.pack(">IB", 0, 10)),
        h2.frame(PING, h2.ACK, 0, b"12345678"),
        window(1),
    ],
    ids=["unknown frame", "unknown frame on a stream", "unknown setting", "priority", "pong", "room"],
)
def test_what_a_server_must_put_up_with(server, harmless):
    connection = h2.Connection(server.grpc_port, room=False)
    with connection.socket:
        connection.socket.sendall(harmless)
        assert connection.call("ServerLive", h2.message(b"")) == [b"\x08\x01"]


def test_6_7_a_ping_comes_back(server):
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        connection.socket.sendall(h2.frame(PING, 0, 0, b"abcdefgh"))
        while (frame := connection.next_frame())[0] != PING:
            pass
        assert frame[1:] == (h2.ACK, 0, b"abcdefgh")


def test_6_1_padded_frames_and_blocks_in_pieces_are_read(server):
    connection = h2.Connection(server.grpc_port)
    with connection.socket:
        block = head()
        connection.socket.sendall(
            h2.frame(h2.HEADERS, 0, 1, block[:7])
            + h2.frame(CONTINUATION, 0, 1, block[7:50])
            + h2.frame(CONTINUATION, h2.END_HEADERS, 1, block[50:])
            + h2.frame(h2.DATA, PADDED, 1, b"\x03" + h2.message(b"")[:2] + b"\0\0\0")
            + h2.frame(h2.DATA, PADDED | h2.END_STREAM, 1, b"\x00" + h2.message(b"")[2:])
        )
        assert bytes(connection.await_ends(1)[1]) == h2.message(b"\x08\x01")
