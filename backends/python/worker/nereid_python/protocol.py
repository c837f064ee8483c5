# SPDX-License-Identifier: Apache-2.0
"""The layout of the memory shared with the server, from ../../layout.def by way of the extension
module; ../../protocol.h describes its use."""

import struct

from .native import (  # noqa: F401
    AREAS,
    ASK_READY,
    AWAIT_SENT,
    BLOCK_FREE,
    BLOCK_IN_USE,
    BLOCK_REPLIED,
    CLOSE,
    COMPLETE,
    ERROR,
    EXECUTE,
    FAILURE,
    FINALIZE,
    INFER,
    INITIALIZE,
    IS_CANCELLED,
    IS_MODEL_READY,
    LAYOUT,
    LOAD_MODEL,
    LOG,
    METRIC_DELETE,
    METRIC_FAMILY_DELETE,
    METRIC_FAMILY_NEW,
    METRIC_INCREMENT,
    METRIC_NEW,
    METRIC_OBSERVE,
    METRIC_SET,
    METRIC_VALUE,
    MOST_BYTES_AHEAD,
    MOST_RESPONSES_AHEAD,
    NONE,
    OK,
    SEND,
    STREAM_CANCEL,
    STREAM_CLOSE,
    STREAM_NEXT,
    TENSORS,
    UNLOAD_MODEL,
    VERSION,
)


def place(record, field):
    """Returns the offset of a field in a record."""
    return LAYOUT[record][1][field][0]


def packed(record, *names):
    """Returns a Struct for these consecutive fields of a record; for all fields if none is named."""
    fields = LAYOUT[record][1]
    names = names or tuple(fields)
    end = fields[names[0]][0]
    form = "<"
    for name in names:
        offset, size, code = fields[name]
        if offset != end or not code:
            raise ValueError("%s.%s is no number that follows the field before it" % (record, name))
        form += code
        end = offset + size
    return struct.Struct(form)


# Mailboxes: a word that changes, a flag that says whether a thread sleeps on it, then MAIL.
WORK, DONE = place("Control", "work"), place("Control", "done")
QUESTION, REPLY = place("Control", "question"), place("Control", "reply")
SLEEPING_AT = place("Mailbox", "sleeping")
MAIL_AT = place("Mailbox", "kind")
MAIL = packed("Mailbox", "kind", "ticket", "offset", "size")
RING_TAIL, RING_WAITING = place("Control", "ring_tail"), place("Control", "ring_waiting")
AREA_OWNERS = place("Control", "area_owners")

# Blocks.
HEADER_SIZE = LAYOUT["BlockHeader"][0]
HEADER = packed("BlockHeader")
BLOCK_SLEEPING_AT = place("BlockHeader", "sleeping")
OUTCOME_AT = place("BlockHeader", "outcome")
REPLY_AT = place("BlockHeader", "reply_offset")
IS_RELEASED_AT = place("BlockHeader", "is_released")
REPLY_PART = packed("BlockHeader", "reply_offset", "reply_size")

# Messages.
FORM = packed("FormHeader")
TENSOR = packed("TensorRecord")
TENSOR_HEAD = packed("TensorRecord", "datatype", "dims", "name_size", "reserved")
TENSOR_DATA = packed("TensorRecord", "data", "byte_size")
RESPONSE = packed("ResponseRecord")
SEND_HEAD = packed("SendRecord")
INFER_HEAD = packed("InferRecord")
REPLY_HEAD = packed("ReplyRecord")

U64 = struct.Struct("<Q")
F64 = struct.Struct("<d")


def padded(text):
    """Returns the bytes padded with zeros to a multiple of eight."""
    return text + bytes(-len(text) % 8)


def for_people(text):
    """Encodes a text for people, whatever is in it: a lone surrogate becomes its escape sequence. Such texts
    come out of JSON that clients write."""
    return text.encode("utf-8", "backslashreplace")


def sized(text):
    """Encodes a text or bytes after their length."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogateescape")
    return U64.pack(len(text)) + padded(text)
