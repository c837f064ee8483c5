# SPDX-License-Identifier: Apache-2.0
"""The file of a run: on what, of what, how, and every measurement."""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FORMAT = 1


def git(*arguments):
    run = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else ""


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return {
        "processor": cpu.group(1) if cpu else "unknown",
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory.group(1)) / 1e6, 1),
        "kernel": "Linux " + re.match(r"\d+(\.\d+)?", platform.release())[0],
        "system": f"{platform.machine()}, {'-'.join(platform.libc_ver())}",
    }


class Results:
    """Collects rows; write() may be called after each, so that an interrupted run is not lost."""

    def __init__(self, bench, path):
        self.path = path
        self.content = {
            "format": FORMAT,
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": ["bench/run", *sys.argv[1:]],
            "commit": git("rev-parse", "HEAD"),
            "is_changed": bool(git("status", "--porcelain", "--untracked-files=no")),
            "machine": machine(),
            "load_average": os.getloadavg()[0],
            "server_core": bench.server_core,
            "client_core": bench.client_core,
            "rounds": bench.rounds,
            "seconds": bench.seconds,
            "sides": {side.name: {"arguments": side.args} for side in bench.sides},
            "versions": bench.versions,
            "rows": [],
            "skipped": bench.skipped,
            "failures": bench.failures,
        }

    def add(self, row, result):
        entry = {
            "row": row.number,
            "title": row.title,
            "tool": row.tool,
            "key": row.key,
            "unit": row.unit,
            "aims": [list(aim) for aim in row.aims],
            # How busy the machine was just after: more than two are the neighbours.
            "load_average": os.getloadavg()[0],
            **result,
        }
        for name in ("clients", "streams"):
            if hasattr(row, name):
                entry[name] = getattr(row, name)
        self.content["rows"].append(entry)
        self.write()

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.content, indent=1) + "\n")
