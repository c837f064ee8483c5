# SPDX-License-Identifier: Apache-2.0
"""The blocks that a worker of the Python backend writes to the server in: what is freed is used again."""

import subprocess
import sys

import pytest
from harness import server as servers

pytestmark = pytest.mark.skipif(servers.REFERENCE, reason="about this server's worker")

# A region without a server: the test itself plays the server, which frees a block by setting its word to 0.
HEAD = """
import ctypes, mmap, os, sys
sys.path.insert(0, sys.argv[1])
from nereid_python import native
REGION, BEGIN, END = 1 << 31, 1 << 20, 1 << 30
fd = os.memfd_create("region")
os.ftruncate(fd, REGION)
region = mmap.mmap(fd, REGION)
native.open(ctypes.addressof(ctypes.c_char.from_buffer(region)), REGION, 0)
native.use_blocks(BEGIN, END)

def free(block):
    native.store(block, native.BLOCK_FREE)

def is_refused(size):
    try:
        native.allocate(size)
    except MemoryError as error:
        return str(error) == "the memory shared with the server is exhausted"
"""


def run(require_server, code):
    done = subprocess.run([sys.executable, "-c", HEAD + code, servers.backends() / "python"],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


def test_blocks_do_not_overlap_and_freed_ones_are_used_again(require_server):
    run(require_server, """
sizes = [0, 1, 4032, 4033, 5000, 9000, 70000, (1 << 20) - 64, 1 << 20, 3 << 20]
blocks = [native.allocate(size) for size in sizes]
ends = [block + 64 + size for block, size in zip(blocks, sizes)]
assert blocks[0] == BEGIN and all(end <= block for end, block in zip(ends, blocks[1:]))
assert all(native.load(block) == native.BLOCK_IN_USE for block in blocks)
after = native.allocate(0)
for block in blocks:
    free(block)
assert {native.allocate(size) for size in sizes} == set(blocks)
assert native.allocate(0) > after
print("done")
""")


def test_what_does_not_fit_is_refused_until_something_is_freed(require_server):
    run(require_server, """
assert is_refused(END) and is_refused(REGION + 1) and is_refused((1 << 64) - 1)
large = native.allocate(800 << 20)
assert is_refused(800 << 20)
free(large)
assert native.allocate(800 << 20) == large
native.use_blocks(END, END)  # as in a process that was forked when there were too many
assert is_refused(0)
print("done")
""")


def test_no_more_than_a_quarter_of_a_gigabyte_stays_taken_when_large_blocks_are_freed(require_server):
    run(require_server, """
size = 100 << 20
blocks = [native.allocate(size) for _ in range(6)]
for block in blocks:
    region[block + 64] = 1
for block in blocks:
    free(block)
native.allocate(1)
left = [block for block in blocks if region[block + 64] == 1]
assert len(left) == 2, left
assert {native.allocate(size) for _ in range(6)} == set(blocks)
print("done")
""")
