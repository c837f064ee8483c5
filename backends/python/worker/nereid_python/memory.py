# SPDX-License-Identifier: Apache-2.0
"""The memory shared with the server: blocks of ours, blocks of the server's that we hold, and calls."""

import ctypes
import mmap
import os
import threading
import weakref

import numpy as np

from . import protocol as p

_PAGE = 4096
# What was freed keeps its memory for the next use, up to this.
_KEPT_BYTES = 256 << 20
_LARGE_BLOCK = 1 << 20

_u32p = ctypes.c_void_p


def _load_native():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native.so")
    waits = ctypes.CDLL(path)  # lets other threads run meanwhile
    quick = ctypes.PyDLL(path)
    waits.nereid_wait.restype = ctypes.c_uint32
    waits.nereid_wait.argtypes = [_u32p, _u32p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64]
    waits.nereid_finish.restype = ctypes.c_uint32
    waits.nereid_finish.argtypes = [_u32p, _u32p, _u32p, _u32p, ctypes.c_uint32, ctypes.c_int64]
    quick.nereid_signal.restype = None
    quick.nereid_signal.argtypes = [_u32p, _u32p]
    quick.nereid_store.restype = None
    quick.nereid_store.argtypes = [_u32p, ctypes.c_uint32]
    quick.nereid_load.restype = ctypes.c_uint32
    quick.nereid_load.argtypes = [_u32p]
    quick.nereid_append.restype = ctypes.c_int
    quick.nereid_append.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        _u32p,
        _u32p,
        _u32p,
        _u32p,
        ctypes.c_uint64,
    ]
    return waits, quick


class _Hold(weakref.ref):
    """Lets a block of the server's go when the last array that lies in it is gone."""

    __slots__ = ("offset",)


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
        self._waits, self._quick = _load_native()
        self._spin_ns = 50000 if (os.cpu_count() or 1) > 1 else 0
        self._lock = threading.Lock()
        self._call_lock = threading.Lock()
        self._next = self.size // 2
        self._free = {}
        self._free_bytes = 0
        self._busy = []  # (offset, size)
        self._holds = {}
        if self.words[0] != p.VERSION:
            raise RuntimeError("the worker is not of the server's version")

    # --- Work ---

    def first_work(self):
        """Says that the worker is there, and waits for what is to be done first."""
        return self.finish(p.OK, 0, 0, 0)

    def finish(self, outcome, ticket, offset, size):
        """Tells how a piece of work ended and waits for the next: kind, its ticket, offset, size."""
        p.MAIL.pack_into(self.bytes, p.DONE + 8, outcome, ticket, offset, size)
        base = self.address
        word = self._waits.nereid_finish(
            base + p.DONE, base + p.DONE + 4, base + p.WORK, base + p.WORK + 4, ticket, self._spin_ns
        )
        while word == ticket:
            word = self._waits.nereid_wait(base + p.WORK, base + p.WORK + 4, ticket, 0, -1)
        kind, _, at, length = p.MAIL.unpack_from(self.bytes, p.WORK + 8)
        return kind, word, at, length

    def end(self, outcome, ticket, offset, size):
        """The same for the last piece of work."""
        p.MAIL.pack_into(self.bytes, p.DONE + 8, outcome, ticket, offset, size)
        self._quick.nereid_signal(self.address + p.DONE, self.address + p.DONE + 4)

    def next_question(self, ticket):
        base = self.address + p.QUESTION
        word = ticket
        while word == ticket:
            word = self._waits.nereid_wait(base, base + 4, ticket, 0, -1)
        return p.MAIL.unpack_from(self.bytes, p.QUESTION + 8)[0], word

    def answer(self, outcome, ticket, offset, size):
        p.MAIL.pack_into(self.bytes, p.REPLY + 8, outcome, ticket, offset, size)
        self._quick.nereid_signal(self.address + p.REPLY, self.address + p.REPLY + 4)

    # --- Blocks of the server's ---

    def hold(self, offset, size):
        """An array of the bytes at `offset`, the start of a block. It lets the block go when it goes."""
        array = np.frombuffer(self.map, np.uint8, size, offset)
        hold = _Hold(array, self._let_go)
        hold.offset = offset
        self._holds[offset] = hold
        return array

    def _let_go(self, hold):
        self._holds.pop(hold.offset, None)
        self.let_go(hold.offset)

    def let_go(self, offset):
        """The same for a block that nothing lies in any more."""
        self._quick.nereid_store(self.address + offset - p.HEADER_SIZE, 0)

    # --- Blocks of ours ---

    def allocate(self, size):
        """A block with room for `size` bytes; its offset, which those of the bytes follow by HEADER_SIZE.
        It is free again once the server has set its state to zero."""
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
                if wanted > self.size - offset:
                    raise MemoryError("the memory shared with the server is exhausted")
                self._next = offset + wanted
            self._busy.append((offset, wanted))
        self.words[offset >> 2] = 1
        return offset

    def _sweep(self):
        kept = []
        for block in self._busy:
            if self.words[block[0] >> 2]:
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
        self.words[offset >> 2] = 0

    def put(self, payload):
        """A block with these bytes: its offset."""
        offset = self.allocate(len(payload))
        start = offset + p.HEADER_SIZE
        self.bytes[start : start + len(payload)] = payload
        return offset

    # --- Calls ---

    def post(self, kind, offset, size):
        """Hands a block to the server as a call."""
        p.HEADER.pack_into(self.bytes, offset, 1, 0, kind, 0, size, 0, 0)
        base = self.address
        while True:
            with self._call_lock:
                tail = self._quick.nereid_load(base + p.RING_TAIL)
                if self._quick.nereid_append(
                    base + p.RING,
                    p.RING_CAPACITY,
                    base + p.RING_HEAD,
                    base + p.RING_TAIL,
                    base + p.RING_BELL,
                    base + p.RING_SLEEPING,
                    offset,
                ):
                    return
            self._waits.nereid_wait(base + p.RING_TAIL, base + p.RING_WAITING, tail, 0, 10000000)

    def tell(self, kind, payload):
        """A call that has no answer."""
        self.post(kind, self.put(payload), len(payload))

    def wait_for_reply(self, offset):
        """Waits for the answer to a call, whose block is free then: outcome, offset and size of the
        answer, whose block is ours to let go."""
        base = self.address + offset
        while self.words[offset >> 2] != 2:
            self._waits.nereid_wait(base, base + 4, 1, self._spin_ns, -1)
        outcome = self.words[(offset >> 2) + 3]
        at, size = p.REPLY_PART.unpack_from(self.bytes, offset + p.REPLY_AT)
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
