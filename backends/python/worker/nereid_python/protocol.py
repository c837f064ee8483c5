# SPDX-License-Identifier: Apache-2.0
"""The layout of the memory shared with the server; ../../protocol.h says what it means."""

import struct

VERSION = 2

COMPLETE, INITIALIZE, EXECUTE, FINALIZE, ASK_READY = range(1, 6)

OK, ERROR = 0, 1

(
    LOG,
    SEND,
    CLOSE,
    IS_CANCELLED,
    METRIC_FAMILY_NEW,
    METRIC_FAMILY_DELETE,
    METRIC_NEW,
    METRIC_DELETE,
    METRIC_INCREMENT,
    METRIC_SET,
    METRIC_OBSERVE,
    METRIC_VALUE,
    LOAD_MODEL,
    UNLOAD_MODEL,
    IS_MODEL_READY,
    INFER,
    STREAM_NEXT,
    STREAM_CANCEL,
    STREAM_CLOSE,
) = range(1, 20)

# Mailboxes: a word that changes, a flag of who sleeps on it, then MAIL.
WORK, DONE, QUESTION, REPLY = 64, 128, 192, 256
MAIL = struct.Struct("<IIQQ")  # kind, answers, offset, size
RING_HEAD, RING_BELL, RING_SLEEPING = 320, 324, 328
RING_TAIL, RING_WAITING = 384, 388
RING, RING_CAPACITY = 4096, 1024
AREA_OWNERS, AREAS = 12288, 64

HEADER_SIZE = 64
# state, sleeping, kind, outcome, size, reply offset, reply size
HEADER = struct.Struct("<IIIIQQQ")
REPLY_PART = struct.Struct("<QQ")
REPLY_AT = 24

BATCH = struct.Struct("<II")
# handle, correlation id, timeout, data, block; form, its size, flags, whether the correlation id is a text,
# then offsets and sizes of the id, the correlation text, the parameters and the trace's context
REQUEST = struct.Struct("<QQQQQIIIIIIIIIIII")
FORM = struct.Struct("<II")
TENSOR_HEAD = struct.Struct("<IIII")  # datatype, dimensions, size of the name, 0
TENSOR_DATA = struct.Struct("<QQ")
TENSOR = struct.Struct("<IIIIQQ")
NONE, TENSORS, FAILURE = 0, 1, 2
RESPONSE = struct.Struct("<IIII")  # kind, release flags, tensors or code, size of the text
REPLY_RESPONSE = struct.Struct("<IIII")  # kind, whether it is the last, tensors or code, size of the text
U32 = struct.Struct("<I")
U64 = struct.Struct("<Q")
F64 = struct.Struct("<d")


def padded(text):
    """Bytes and zeros up to a multiple of eight."""
    return text + bytes(-len(text) % 8)


def sized(text):
    """A text or bytes as the server reads them after their length."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogateescape")
    return U64.pack(len(text)) + padded(text)
