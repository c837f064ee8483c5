# SPDX-License-Identifier: Apache-2.0
"""The memory shared with the server: the worker's blocks, held blocks of the server, and calls."""

import mmap
import os
import signal
import threading

import numpy as np

from . import native
from . import protocol as p
from .session import session

_PAGE = 4096
# Freed blocks keep so much memory for later ones.
_KEPT_BYTES = 256 << 20
_LARGE_BLOCK = 1 << 20


def _round_up(size):
    """Rounds up to a block size: four for each power of two, so that freed blocks fit again."""
    if size <= _PAGE:
        return _PAGE
    unit = max(1 << ((size - 1).bit_length() - 3), _PAGE)
    return -(-size // unit) * unit


class Memory:
    """Thread-safe."""

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
        self._lock = threading.Lock()
        # Half of the worker's part is for processes that the model forks.
        self._next, self._limit = self.size // 2, self.size // 4 * 3
        self._free = {}
        self._free_bytes = 0
        self._busy = []  # (offset, size)
        if self.words[0] != p.VERSION:
            raise RuntimeError("the worker is not of the server's version")
        os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self):
        """Prepares a process that the model has forked for its own requests, with its own blocks."""
        native.begin_in_child()
        session.generation += 1
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._lock = threading.Lock()
        self._free = {}
        self._free_bytes = 0
        self._busy = []
        size = self.size // 4 // p.AREAS
        self._next = self._limit = self.size
        for area in range(p.AREAS):
            if native.claim(p.AREA_OWNERS + 4 * area):
                self._next = self.size // 4 * 3 + area * size
                self._limit = self._next + size
                break

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

    def allocate(self, size):
        """Returns the offset of a block with room for `size` bytes, which follow after HEADER_SIZE.
        The block is free again once the server has set its state to BLOCK_FREE."""
        offset, wanted = self.allocate_kept(size)
        self.drop_kept(offset, wanted)
        return offset

    def drop_kept(self, offset, size):
        """Turns a block that stays into one that the server can free."""
        with self._lock:
            self._busy.append((offset, size))

    def allocate_kept(self, size):
        """Returns offset and size of a block that stays, whatever the server does with it."""
        wanted = _round_up(size + p.HEADER_SIZE)
        with self._lock:
            free = self._free.get(wanted)
            if not free:
                self._sweep()
                free = self._free.get(wanted)
            if free:
                offset, is_resident = free.pop()
                if is_resident:
                    self._free_bytes -= wanted
            else:
                offset = self._next
                if wanted > self._limit - offset:
                    raise MemoryError("the memory shared with the server is exhausted")
                self._next = offset + wanted
            self.words[offset >> 2] = p.BLOCK_IN_USE
        return offset, wanted

    def _sweep(self):
        kept = []
        for block in self._busy:
            if self.words[block[0] >> 2] != p.BLOCK_FREE:
                kept.append(block)
                continue
            offset, size = block
            is_resident = True
            if size >= _LARGE_BLOCK and self._free_bytes + size > _KEPT_BYTES:
                try:
                    self.map.madvise(9, offset, size)  # MADV_REMOVE
                    is_resident = False
                except (AttributeError, OSError, ValueError):
                    pass
            if is_resident:
                self._free_bytes += size
            self._free.setdefault(size, []).append((offset, is_resident))
        self._busy = kept

    def free(self, offset):
        """Frees a block that the server no longer uses."""
        self.words[offset >> 2] = p.BLOCK_FREE

    def put(self, payload):
        """Returns the offset of a block with these bytes."""
        offset = self.allocate(len(payload))
        start = offset + p.HEADER_SIZE
        self.bytes[start : start + len(payload)] = payload
        return offset

    # --- Calls ---

    def post(self, kind, offset, size):
        """Passes a block to the server as a call."""
        p.HEADER.pack_into(self.bytes, offset, p.BLOCK_IN_USE, 0, kind, 0, size, 0, 0)
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
        outcome, offset and size of the reply, whose block the caller must release."""
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
