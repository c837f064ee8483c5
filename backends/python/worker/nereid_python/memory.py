# SPDX-License-Identifier: Apache-2.0
"""The memory shared with the server: blocks of ours, blocks of the server's that we hold, and calls."""

import mmap
import os
import signal
import threading

import numpy as np

from . import native
from . import protocol as p
from .session import session

_PAGE = 4096
# What was freed keeps its memory for the next use, up to this.
_KEPT_BYTES = 256 << 20
_LARGE_BLOCK = 1 << 20


def _round_up(size):
    """Sizes of blocks: four for each power of two, so that freed ones fit again."""
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
        # With one core, whoever looks keeps others from what is looked for.
        native.open(self.address, self.size, 50000 if len(os.sched_getaffinity(0)) > 1 else 0)
        self._lock = threading.Lock()
        # Half of the worker's half is for processes that the model forks.
        self._next, self._limit = self.size // 2, self.size // 4 * 3
        self._free = {}
        self._free_bytes = 0
        self._busy = []  # (offset, size)
        if self.words[0] != p.VERSION:
            raise RuntimeError("the worker is not of the server's version")
        os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self):
        """A process that the model has forked makes requests like this one, with blocks of its own."""
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
        """Says that the worker is there, and waits for what is to be done first."""
        return self.finish(p.OK, 0, 0, 0)

    @staticmethod
    def finish(outcome, ticket, offset, size):
        """Tells how a piece of work ended and waits for the next: kind, its ticket, offset, size."""
        return native.finish(outcome, ticket, offset, size)

    def end(self, outcome, ticket, offset, size):
        """The same for the last piece of work."""
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

    # --- Blocks of the server's ---

    @staticmethod
    def hold(offset):
        """Holds the block whose payload starts at `offset` until what this returns is gone."""
        return native.Block(offset)

    @staticmethod
    def let_go(offset):
        """Lets such a block go that nothing lies in any more."""
        native.store(offset - p.HEADER_SIZE, p.BLOCK_FREE)

    # --- Blocks of ours ---

    def allocate(self, size):
        """A block with room for `size` bytes; its offset, which those of the bytes follow by HEADER_SIZE.
        It is free again once the server has set its state to BLOCK_FREE."""
        offset, wanted = self.allocate_kept(size)
        self.drop_kept(offset, wanted)
        return offset

    def drop_kept(self, offset, size):
        """Makes a block that stays one that is free again some time."""
        with self._lock:
            self._busy.append((offset, size))

    def allocate_kept(self, size):
        """A block that stays, whatever the server does with it: its offset and its own size."""
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
        """Gives a block back that the server has nothing to do with any more."""
        self.words[offset >> 2] = p.BLOCK_FREE

    def put(self, payload):
        """A block with these bytes: its offset."""
        offset = self.allocate(len(payload))
        start = offset + p.HEADER_SIZE
        self.bytes[start : start + len(payload)] = payload
        return offset

    # --- Calls ---

    def post(self, kind, offset, size):
        """Hands a block to the server as a call."""
        p.HEADER.pack_into(self.bytes, offset, p.BLOCK_IN_USE, 0, kind, 0, size, 0, 0)
        while True:
            tail = native.load(p.RING_TAIL)
            if native.append(offset):
                return
            native.wait(p.RING_TAIL, p.RING_WAITING, tail, False, 10000000)

    def tell(self, kind, payload):
        """A call that has no answer."""
        self.post(kind, self.put(payload), len(payload))

    def wait_for_reply(self, offset, frees=True):
        """Waits for the answer to a call, whose block is free then unless the caller frees it later:
        outcome, offset and size of the answer, whose block is ours to let go."""
        while native.load(offset) != p.BLOCK_REPLIED:
            native.wait(offset, offset + p.BLOCK_SLEEPING_AT, p.BLOCK_IN_USE, True, -1)
        outcome = self.words[(offset + p.OUTCOME_AT) >> 2]
        at, size = p.REPLY_PART.unpack_from(self.bytes, offset + p.REPLY_AT)
        if frees:
            self.free(offset)
        return outcome, at + p.HEADER_SIZE if at else 0, size

    def ask(self, kind, payload):
        """A call: outcome and answer, as bytes."""
        offset = self.put(payload)
        self.post(kind, offset, len(payload))
        outcome, at, size = self.wait_for_reply(offset)
        if not at:
            return outcome, b""
        answer = bytes(self.bytes[at : at + size])
        self.let_go(at)
        return outcome, answer
