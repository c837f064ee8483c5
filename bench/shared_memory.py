# SPDX-License-Identifier: Apache-2.0
"""Regions of shared memory that requests name: bench_in and bench_out."""

import os
import struct


class Regions:
    """Two objects under /dev/shm, which go with close()."""

    def __init__(self, size):
        self.size = size
        self.names = {name: f"{name}_{os.getpid()}" for name in ("bench_in", "bench_out")}
        for name, key in self.names.items():
            with open(f"/dev/shm/{key}", "wb") as file:
                # Every page is there before anyone measures.
                file.write(struct.pack("<f", 1.5 if name == "bench_in" else 0) * (size // 4))

    def register(self, server):
        for name, key in self.names.items():
            body = {"key": f"/{key}", "offset": 0, "byte_size": self.size}
            server.ask(f"/v2/systemsharedmemory/region/{name}/register", body)

    def content(self, name, size):
        with open(f"/dev/shm/{self.names[name]}", "rb") as file:
            return file.read(size)

    def close(self):
        for key in self.names.values():
            os.unlink(f"/dev/shm/{key}")
