# SPDX-License-Identifier: Apache-2.0
"""The chart of deploy/helm, rendered and linted by Helm's own code in a process of its own: it is written in Go and
brings a runtime with signal handlers."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "nereid"
FOLDER = pathlib.Path(os.environ.get("NEREID_KUBERNETES", ROOT / ".deps" / "kubernetes"))


def missing():
    """What is not here, in words; an empty text if nothing is."""
    return "" if (FOLDER / "helm_python").exists() else "no Helm here; tools/setup --kubernetes gets it"


class Refused(Exception):
    """What Helm says of values that it does not take."""


class Helm:
    """Helm, until stop()."""

    def __init__(self, log_path):
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "PYTHONPATH": f"{FOLDER}{os.pathsep}{DEPLOY / 'kubernetes'}"})  # fmt: skip

    def _ask(self, **question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["result"]

    def objects(self, values=None, **options):
        """The objects that the chart makes of these values; `options` are name and namespace."""
        return self._ask(what="objects", values=values or {}, options=options)

    def lint(self, values=None):
        """What `helm lint --strict` says: [(severity, text)], of which 1 is information."""
        return self._ask(what="lint", values=values or {})

    def manifests(self):
        """What deploy/kubernetes/render.py writes, by file."""
        return self._ask(what="manifests")

    def stop(self):
        self._process.stdin.close()
        self._process.wait(20)


def answer(render, chart, loaded, question):
    if question["what"] == "objects":
        return render.objects(loaded, question["values"], **question["options"])
    if question["what"] == "manifests":
        return render.texts(loaded)
    report = chart.lint(str(render.CHART), question["values"], strict=True)
    return [(message["severity"], message["error"]) for message in report["messages"]]


def main():
    import helm_python.chart
    import helm_python.errors
    import render

    loaded = render.chart()
    for line in sys.stdin:
        try:
            said = {"result": answer(render, helm_python.chart, loaded, json.loads(line))}
        except helm_python.errors.HelmError as error:
            said = {"refused": str(error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
