# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster in processes of its own, which are all gone when it has stopped."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

from harness import python_package
from harness import server as servers

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = pathlib.Path(os.environ.get("NEREID_RAY", servers.ROOT / ".deps" / "ray")) / "bin" / "python"


def missing():
    """Why there is no Ray here, or None."""
    if servers.is_sanitized():
        return "Ray's processes do not run with sanitizers"
    return None if PYTHON.exists() else f"there is no {PYTHON}: tools/setup --ray installs it"


class Cluster:
    """Runs application.py. `folder` is where its files are, with a short name."""

    def __init__(self, write_models):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nr"))
        write_models(self.folder)
        self.executed_path = self.folder / "executed"
        self.executed_path.touch()
        self.scale(1)
        (self.port,) = servers.free_ports(1)
        self._mark = f"NEREID_RAY_CLUSTER={uuid.uuid4().hex}"
        name, value = self._mark.split("=")
        self.log_path = self.folder / "log"
        environment = {
            **python_package.environment(),
            name: value,
            "NEREID_RAY_REPLICAS": str(self.folder / "replicas"),
            "NEREID_RAY_EXECUTED": str(self.executed_path),
            "PYTHONPATH": f"{servers.build_folder() / 'python'}:{HERE}",
            "RAY_USAGE_STATS_ENABLED": "",
        }
        del environment["RAY_USAGE_STATS_ENABLED"]  # nereid.ray sets it
        with open(self.log_path, "wb") as log:
            self._process = subprocess.Popen(
                [PYTHON, HERE / "application.py", str(self.port), str(self.folder)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, env=environment, text=True, start_new_session=True)  # fmt: skip

    def ask(self, do, **arguments):
        """What a method of application.Commands returns."""
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the cluster has ended: {self.log_path.read_text(errors='replace')[-4000:]}"
        answer = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer["result"]

    def scale(self, replicas):
        """Says how many replicas the application `main` shall have, which takes a while to become true."""
        written = self.folder / "replicas.new"
        written.write_text(str(replicas))
        written.replace(self.folder / "replicas")

    def url(self, app):
        """For tritonclient."""
        return f"127.0.0.1:{self.port}/{app}"

    def processes(self):
        """The processes of the cluster that run."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found

    def keep_logs(self, target):
        """Copies what Ray's processes have logged."""
        shutil.copytree(self.folder / "r" / "session_latest" / "logs", target, dirs_exist_ok=True)
        shutil.copy(self.log_path, target)

    def stop(self):
        """Ends everything; fails if that left processes behind, which it ends, too."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        try:
            servers.wait_until(lambda: not self.processes(), "the cluster's processes to end", timeout=30)
        finally:
            for process in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._process.wait()
            self._process.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)
