#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the manifests of this folder from the chart in deploy/helm/nereid, for those who do not use Helm.

Helm's own code renders them; tools/setup --kubernetes gets it.

usage: .venv/bin/python deploy/kubernetes/render.py [--to FOLDER]
"""

import argparse
import pathlib
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHART = ROOT / "deploy" / "helm" / "nereid"
HELM = ROOT / ".deps" / "kubernetes"

MODELS = {"models": {"persistentVolumeClaim": "models"}}
MONITORING = {"metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}}
# File → (what it is, values, kinds; all but those of other files if empty)
FILES = {
    "nereid.yaml": (
        "Two servers of the models in the claim `models`, with their Services, budget and network policy.", MODELS, ()),
    "autoscaling.yaml": (
        "Scales them by processor time. Then take `replicas` out of nereid.yaml, which would set it back.",
        {**MODELS, "autoscaling": {"enabled": True}}, ("HorizontalPodAutoscaler",)),
    "keda.yaml": (
        "Scales them by waiting requests, with KEDA and Prometheus, in place of autoscaling.yaml.",
        {**MODELS, "keda": {"enabled": True}}, ("ScaledObject",)),
    "monitoring.yaml": (
        "Scrapes them, and has the alerts of deploy/prometheus/rules.yml, for the Prometheus operator.",
        {**MODELS, **MONITORING}, ("ServiceMonitor", "PrometheusRule")),
}  # fmt: skip
# Of Helm, which is not there.
HELMS_LABELS = {"helm.sh/chart", "app.kubernetes.io/managed-by"}


def chart():
    """Helm's chart object. Raises ImportError if Helm's code is not here."""
    sys.path.append(str(HELM))
    import helm_python.chart

    return helm_python.chart.Chart.load(CHART)


def objects(loaded, values, name="nereid", namespace="default"):
    """The objects that Helm makes of the chart with these values, its hooks included. What it refuses is an exception
    of helm_python.errors, with the reason."""
    files = loaded.render(values, name=name, namespace=namespace)
    texts = [text for path, text in sorted(files.items()) if path.endswith(".yaml")]
    return [found for text in texts for found in yaml.safe_load_all(text) if found is not None]


def without_helm(value):
    """The same without Helm's labels."""
    if isinstance(value, dict):
        return {key: without_helm(part) for key, part in value.items() if key not in HELMS_LABELS}
    return [without_helm(part) for part in value] if isinstance(value, list) else value


def is_hook(found):
    return "helm.sh/hook" in found["metadata"].get("annotations", {})


def texts(loaded):
    """The contents of the files, by their names."""
    made = {}
    for name, (what, values, kinds) in FILES.items():
        chosen = [
            without_helm(found)
            for found in objects(loaded, values)
            if not is_hook(found) and (found["kind"] in kinds or not kinds)
        ]
        head = f"# SPDX-License-Identifier: Apache-2.0\n#\n# {what} docs/kubernetes.md\n# Written by deploy/kubernetes/render.py.\n"
        made[name] = head + "".join("---\n" + yaml.safe_dump(found, sort_keys=False, width=120) for found in chosen)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, default=HERE, metavar="FOLDER")
    arguments = parser.parse_args()
    try:
        loaded = chart()
    except ImportError:
        sys.exit("Helm's code is not here: tools/setup --kubernetes")
    for name, text in texts(loaded).items():
        (arguments.to / name).write_text(text)


if __name__ == "__main__":
    main()
