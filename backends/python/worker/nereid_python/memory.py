# SPDX-License-Identifier: Apache-2.0
"""The memory shared with the server: the worker's blocks, held blocks of the server, and calls."""

import mmap
import os
import signal

import numpy as np

from . import native
from . import protocol as p
from .session import session


class Memory:
    """Thread-safe without a lock, so that destructors and handlers of signals may use it, too."""

    def __init__(self, fd):
        self.size = os.fstat(fd).st_size
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0x4000)
        self.map = mmap.mmap(fd, self.size, flags, mmap.PROT_READ | mmap.PROT_WRITE)
        self.bytes = memoryview(self.map)
        self.words = self.bytes.cast("I")
        self.array = np.frombuffer(self.map, np.uint8)
        self.address = self.array.__array_interface__["data"][0]
        # With one core, polling would delay the thread that is waited for.
        native.open(self.address, self.size, 50000 if len(os.sched_getaffinity(0)) > 1 else 0)
        # Half of the worker's part is for processes that the model forks.
        native.use_blocks(self.size // 2, self.size // 4 * 3)
        if self.words[0] != p.VERSION:
            raise RuntimeError("the worker is not of the server's version")
        os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self):
        """Prepares a process that the model has forked for its own requests, with its own blocks."""
        native.begin_in_child()
        session.generation += 1
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        size = self.size // 4 // p.AREAS
        begin = end = self.size
        for area in range(p.AREAS):
            if native.claim(p.AREA_OWNERS + 4 * area):
                begin = self.size // 4 * 3 + area * size
                end = begin + size
                break
        native.use_blocks(begin, end)

    # --- Work ---

    def first_work(self):
        """Reports that the worker is ready, and waits for the first work."""
        return self.finish(p.OK, 0, 0, 0)

    @staticmethod
    def finish(outcome, ticket, offset, size):
        """Reports how some work ended and waits for the next: returns kind, ticket, offset, size."""
        return native.finish(outcome, ticket, offset, size)

    def end(self, outcome, ticket, offset, size):
        """Reports how the last work ended."""
        p.MAIL.pack_into(self.bytes, p.DONE + p.MAIL_AT, outcome, ticket, offset, size)
        native.signal(p.DONE, p.DONE + p.SLEEPING_AT)

    def next_question(self, ticket):
        word = ticket
        while word == ticket:
            word = native.wait(p.QUESTION, p.QUESTION + p.SLEEPING_AT, ticket, False, -1)
        return p.MAIL.unpack_from(self.bytes, p.QUESTION + p.MAIL_AT)[0], word

    def answer(self, outcome, ticket, offset, size):
        p.MAIL.pack_into(self.bytes, p.REPLY + p.MAIL_AT, outcome, ticket, offset, size)
        native.signal(p.REPLY, p.REPLY + p.SLEEPING_AT)

    # --- Blocks of the server ---

    @staticmethod
    def hold(offset):
        """Returns an object that holds the block whose payload starts at `offset`."""
        return native.Block(offset)

    @staticmethod
    def let_go(offset):
        """Releases such a block when nothing in it is used any more."""
        native.store(offset - p.HEADER_SIZE, p.BLOCK_FREE)

    # --- Blocks of the worker ---

    @staticmethod
    def allocate(size):
        """Returns the offset of a block with room for `size` bytes, which follow after HEADER_SIZE.
        The block is free again once the server has set its state to BLOCK_FREE."""
        return native.allocate(size)

    def free(self, offset):
        """Frees a block that the server no longer uses."""
        self.words[offset >> 2] = p.BLOCK_FREE

    @staticmethod
    def is_released(offset):
        """Returns whether the server has said that it reads a request to another model no more."""
        return native.load(offset + p.IS_RELEASED_AT) != 0

    def put(self, payload):
        """Returns the offset of a block with these bytes."""
        offset = self.allocate(len(payload))
        start = offset + p.HEADER_SIZE
        self.bytes[start : start + len(payload)] = payload
        return offset

    # --- Calls ---

    def post(self, kind, offset, size):
        """Passes a block to the server as a call."""
        p.HEADER.pack_into(self.bytes, offset, p.BLOCK_IN_USE, 0, kind, 0, size, 0, 0, 0, 0)
        while True:
            tail = native.load(p.RING_TAIL)
            if native.append(offset):
                return
            native.wait(p.RING_TAIL, p.RING_WAITING, tail, False, 10000000)

    def tell(self, kind, payload):
        """Makes a call that has no reply."""
        self.post(kind, self.put(payload), len(payload))

    def wait_for_reply(self, offset, frees=True):
        """Waits for the reply to a call, and frees its block unless the caller does so later. Returns
        outcome, place and size of the reply, whose block the caller must release."""
        while native.load(offset) != p.BLOCK_REPLIED:
            native.wait(offset, offset + p.BLOCK_SLEEPING_AT, p.BLOCK_IN_USE, True, -1)
        outcome = self.words[(offset + p.OUTCOME_AT) >> 2]
        at, size = p.REPLY_PART.unpack_from(self.bytes, offset + p.REPLY_AT)
        if frees:
            self.free(offset)
        return outcome, at + p.HEADER_SIZE if at else 0, size

    def ask(self, kind, payload):
        """Makes a call: returns the outcome and the reply as bytes."""
        offset = self.put(payload)
        self.post(kind, offset, len(payload))
        outcome, at, size = self.wait_for_reply(offset)
        if not at:
            return outcome, b""
        answer = bytes(self.bytes[at : at + size])
        self.let_go(at)
        return outcome, answer
