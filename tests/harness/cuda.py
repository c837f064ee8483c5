# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs, as a client has it, and the tests' replacement for the CUDA driver
(src/memory/test_cuda/fake_cuda.cc).

With NEREID_TEST_CUDA=real the real driver is used, by the tests as by the server. Tests that count
calls or let them fail need the replacement.
"""

import base64
import ctypes
import mmap
import os
import pathlib
import struct

IS_REAL = os.environ.get("NEREID_TEST_CUDA") == "real"
COUNTERS = (
    "device_count",
    "has_no_peers",
    "capability",
    "live_device_bytes",
    "live_host_bytes",
    "open_handles",
    "to_device_copies",
    "to_host_copies",
    "on_device_copies",
    "peers_enabled",
)
CALLS = (
    "init",
    "retain_context",
    "memory_info",
    "allocate",
    "free",
    "host_allocate",
    "host_free",
    "enable_peer",
    "ipc_open",
    "ipc_close",
    "create_stream",
    "copy",
    "synchronize",
)
OUT_OF_MEMORY = 2
DEVICE_LOST = 700


def folder():
    """The folder of the replacement, for LD_LIBRARY_PATH."""
    root = pathlib.Path(__file__).resolve().parents[2]
    build = pathlib.Path(os.environ.get("NEREID_BUILD", root / "build" / "release"))
    return build.resolve() / "src" / "memory" / "fake_cuda"


def library():
    return "libcuda.so.1" if IS_REAL else str(folder() / "libcuda.so.1")


def is_there():
    try:
        ctypes.CDLL(library())
    except OSError:
        return False
    return True


class Control:
    """What the driver of a server counts, and which of its calls fail."""

    SIZE = 8 * (len(COUNTERS) + 2 * len(CALLS))

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(self.SIZE))
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self.SIZE)

    def environment(self):
        """The variables with which a server finds the replacement."""
        return {"LD_LIBRARY_PATH": str(folder()), "FAKE_CUDA_CONTROL": str(self.path)}

    def _read(self, index):
        return struct.unpack_from("<Q", self._memory, 8 * index)[0]

    def _write(self, index, value):
        struct.pack_into("<Q", self._memory, 8 * index, value)

    def __getitem__(self, name):
        return self._read(COUNTERS.index(name))

    def __setitem__(self, name, value):
        self._write(COUNTERS.index(name), value)

    def calls(self, name):
        return self._read(len(COUNTERS) + CALLS.index(name))

    def fail(self, name, error):
        """Lets a call of the driver return an error; 0: none any more."""
        self._write(len(COUNTERS) + len(CALLS) + CALLS.index(name), error)


class Memory:
    """Memory of a GPU that this process has and shares."""

    def __init__(self, size, device=0):
        self.size = size
        self.device = device
        self._driver = ctypes.CDLL(library())
        self._check("cuInit", 0)
        self._context = ctypes.c_void_p()
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self._stream = ctypes.c_void_p()
        self._in_context("cuStreamCreate", ctypes.byref(self._stream), 1)
        self._address = ctypes.c_uint64()
        self._in_context("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(size))

    def _check(self, name, *arguments):
        result = getattr(self._driver, name)(*arguments)
        assert result == 0, f"{name} returned {result}"

    def _in_context(self, name, *arguments):
        popped = ctypes.c_void_p()
        self._check("cuCtxPushCurrent_v2", self._context)
        try:
            self._check(name, *arguments)
        finally:
            self._check("cuCtxPopCurrent_v2", ctypes.byref(popped))

    def _copy(self, to, source, size):
        arguments = (ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size))
        self._in_context("cuMemcpyAsync", *arguments, self._stream)
        self._in_context("cuStreamSynchronize", self._stream)

    def write(self, data, offset=0):
        buffer = ctypes.create_string_buffer(bytes(data), len(data))
        self._copy(self._address.value + offset, ctypes.addressof(buffer), len(data))

    def read(self, size, offset=0):
        buffer = ctypes.create_string_buffer(size)
        self._copy(ctypes.addressof(buffer), self._address.value + offset, size)
        return buffer.raw

    def free_bytes(self):
        """How much memory of the GPU nobody has."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._in_context("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def handle(self):
        """The handle, as clients of both protocols take it."""
        raw = ctypes.create_string_buffer(64)
        self._in_context("cuIpcGetMemHandle", raw, self._address)
        return base64.b64encode(raw.raw)

    def register(self, client, name):
        client.register_cuda_shared_memory(name, self.handle(), self.device, self.size)

    def close(self):
        self._in_context("cuMemFree_v2", self._address)
        self._in_context("cuStreamDestroy_v2", self._stream)
