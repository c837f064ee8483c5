# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus and its blackbox exporter, run on the files of deploy/ with shorter durations."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request

import yaml
from harness import files
from harness import server as servers

DEPLOY = servers.ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
FOLDER = pathlib.Path(os.environ.get("NEREID_MONITORING", servers.ROOT / ".deps" / "monitoring"))
PROGRAMS = ("prometheus", "promtool", "prometheus-blackbox-exporter")
# An hour is ten times shorter than sixty minutes, because what it takes hours to see is seen in no test otherwise.
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 360}
DURATION = r"(\d+)(ms|s|m|h)"


def program(name):
    """The path of one of the programs, or None."""
    unpacked = FOLDER / "usr" / "bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)


def missing():
    """What is not here, in words; an empty text if nothing is."""
    absent = [name for name in PROGRAMS if program(name) is None]
    return f"no {', '.join(absent)} here; tools/setup --monitoring gets them" if absent else ""


def run(name, *arguments):
    """Runs a program to its end; returns its status and what it said."""
    done = subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def rules():
    """All rules of deploy/, as dictionaries."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def shortened(text, factor):
    """The rules with all durations divided by the factor, so that a test need not wait for hours."""

    def shorter(match):
        return f"{max(1, round(int(match[1]) * SECONDS[match[2]] * 1000 / factor))}ms"

    text = re.sub(rf"(?<=\[){DURATION}(?=\])", shorter, text)
    text = re.sub(rf"(?<=offset ){DURATION}\b", shorter, text)
    text = re.sub(rf"(?<=for: ){DURATION}\b", shorter, text)
    return re.sub(r"(\d+) \* 60\b", lambda m: str(int(m[1]) * 60 / factor), text)


class Program:
    """A program that runs until stop()."""

    def __init__(self, name, folder, *arguments):
        self.log_path = folder / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program(name), *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)  # fmt: skip

    def wait_for(self, url):
        def answers():
            assert self.process.poll() is None, self.log_path.read_text(errors="replace")[-4000:]
            try:
                return urllib.request.urlopen(url, timeout=5).status == 200
            except OSError:
                return False

        servers.wait_until(answers, url)
        return self

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_exporter(folder, port):
    configuration = DEPLOY / "prometheus" / "blackbox.yml"
    exporter = Program("prometheus-blackbox-exporter", folder, f"--config.file={configuration}",
                       f"--web.listen-address=127.0.0.1:{port}")  # fmt: skip
    return exporter.wait_for(f"http://127.0.0.1:{port}/-/healthy")


class Prometheus:
    """Prometheus with the jobs and rules of deploy/; what it scrapes is in files that may change."""

    def __init__(self, folder, exporter_port, factor, interval):
        self.folder = folder
        (folder / "rules.yml").write_text(shortened(RULES.read_text(), factor))
        self.factor, self.interval = factor, interval
        configuration = self._configuration(exporter_port)
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        (self._port,) = servers.free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self._program = None

    def start(self):
        """Once it is known what to scrape."""
        self._program = Program(
            "prometheus", self.folder, "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{self._port}",
            f"--storage.tsdb.path={self.folder / 'data'}", "--query.lookback-delta=5s", "--log.level=warn")  # fmt: skip
        self._program.wait_for(self.url + "/-/ready")

    def _configuration(self, exporter_port):
        """That of deploy/, with the test's intervals, exporter and targets."""
        configuration = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        interval = f"{round(self.interval * 1000)}ms"
        configuration["global"] = {"scrape_interval": interval, "scrape_timeout": interval,
                                   "evaluation_interval": interval}  # fmt: skip
        for job in configuration["scrape_configs"]:
            job.pop("static_configs")
            job.pop("scrape_interval", None)
            job["file_sd_configs"] = [{"files": [f"{job['job_name']}.json"], "refresh_interval": "1s"}]
            for rule in job.get("relabel_configs", ()):
                if rule.get("target_label") == "__address__":
                    rule["replacement"] = f"127.0.0.1:{exporter_port}"
        return configuration

    def set_targets(self, job, targets):
        """`targets` are (address, labels)."""
        entries = [{"targets": [address], "labels": labels} for address, labels in targets]
        files.replace(self.folder / f"{job}.json", json.dumps(entries))

    def get(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression):
        """The series that a query has now: [(labels, value)]."""
        return [(s["metric"], float(s["value"][1])) for s in self.get("query", query=expression)["result"]]

    def fired(self, seconds=None):
        """The names of the alerts that fire now, or that fired in the last so many seconds."""
        alerts = "ALERTS{alertstate='firing'}"
        if seconds is not None:
            alerts = f"last_over_time({alerts}[{max(1, round(seconds * 1000))}ms])"
        return {labels["alertname"] for labels, _ in self.query(alerts)}

    def stop(self):
        if self._program is not None:
            self._program.stop()
