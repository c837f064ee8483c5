# SPDX-License-Identifier: Apache-2.0
"""Plans for the stand-ins of TensorRT and of the CUDA driver (tests/backends/tensorrt), and servers that find
these libraries. fake_engine.h says what is in a plan."""

import pathlib
import struct

from harness import server as servers


def libraries(part):
    """The folder of the driver ("driver") or of a version of TensorRT ("tensorrt10")."""
    return servers.build_folder() / "tests" / "backends" / "tensorrt" / part


def header(version=(10, 3, 0, 26), tag=b"ftrt", size=0):
    """The first 64 bytes of a plan, laid out as in a real one."""
    return (tag + struct.pack("<IQQ", 0, 2, size) + bytes(version)).ljust(64, b"\0")


def plan(text, version=(10, 3, 0, 26), tag=b"ftrt"):
    body = text.encode()
    return header(version, tag, 64 + len(body)) + body


ADD = """
input A FP32 -1x4 1x4/4x4/8x4
input B FP32 -1x4 1x4/4x4/8x4
output SUM FP32 -1x4 add A B
"""

# On a GPU without the server's having to know GPUs.
INSTANCES = "instance_group [ { kind: KIND_MODEL count: 1 } ]\n"


class Machine:
    """What a server finds: a driver or none, versions of TensorRT, and what the driver was asked to do."""

    def __init__(self, folder, driver=True, tensorrt=(10,), devices=2):
        self.folder = pathlib.Path(folder)
        parts = [libraries("driver")] if driver else []
        parts += [libraries(f"tensorrt{major}") for major in tensorrt]
        self._log = self.folder / "driver.log"
        self._failures = self.folder / "failures"
        self.environment = {
            "LD_LIBRARY_PATH": ":".join(map(str, parts)),
            "FAKE_CUDA_DEVICES": str(devices),
            "FAKE_CUDA_LOG": str(self._log),
            "FAKE_CUDA_FAIL": str(self._failures),
        }

    def calls(self):
        """What was done so far, a line each."""
        return self._log.read_text().splitlines() if self._log.exists() else []

    def forget(self):
        self._log.write_text("")

    def fail(self, function=None, error=700):
        """Lets a function of the driver return an error; without one, none any more."""
        self._failures.write_text(f"{function} {error}\n" if function else "")
