#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the runtimes of KServe in this folder: one for each framework, for one model whose name is that of the
InferenceService, and one for whole repositories. docs/kubernetes.md says how to use them.

usage: .venv/bin/python deploy/kserve/make_runtimes.py [--to FOLDER]
"""

import argparse
import dataclasses
import pathlib

import yaml

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "0.1.0"
# KServe's ports: its probes and proxies ask there.
HTTP, GRPC, METRICS = 8080, 9000, 8002
DRAIN_S, EXIT_S = 10, 30
# `nereid serve` takes files as they are (docs/serve.md): a model's file, its folder with versions, a repository.
SERVE = ["serve", "--host=0.0.0.0", f"--port={HTTP}", f"--grpc-port={GRPC}", f"--metrics-port={METRICS}"]
FLAGS = [f"--drain-secs={DRAIN_S}", f"--exit-timeout-secs={EXIT_S}", "--log-format=json",
         "--metrics-config=nereid_histograms=true"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Runtime:
    name: str
    image: str
    # (name of the format, version), as an InferenceService asks for it.
    formats: tuple
    is_repository: bool = False
    gpus: int = 0

    def args(self):
        if self.is_repository:
            return ["--model-store=/mnt/models", f"--http-port={HTTP}", f"--grpc-port={GRPC}",
                    f"--metrics-port={METRICS}", *FLAGS]  # fmt: skip
        return [*SERVE, "{{.Name}}=/mnt/models", "--", *FLAGS]


RUNTIMES = (
    Runtime("nereid-onnx", "nereid-onnxruntime", (("onnx", "1"),)),
    Runtime("nereid-pytorch", "nereid-pytorch", (("pytorch", "1"), ("pytorch", "2"))),
    Runtime("nereid-tensorflow", "nereid-tensorflow", (("tensorflow", "1"), ("tensorflow", "2"))),
    Runtime("nereid-openvino", "nereid-openvino", (("openvino", "1"),)),
    Runtime("nereid-caffe2", "nereid-onnxruntime", (("caffe2", "1"),)),
    Runtime("nereid-tensorrt", "nereid-tensorrt", (("tensorrt", "10"),), gpus=1),
    Runtime("nereid-python", "nereid-python", (("python", "3"),)),
    Runtime("nereid-triton", "nereid-onnxruntime", (("triton", "2"),), is_repository=True),
)


def probe(path, period, failures):
    return {"httpGet": {"path": path, "port": HTTP}, "periodSeconds": period, "timeoutSeconds": 5,
            "failureThreshold": failures}  # fmt: skip


def container(runtime):
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    if runtime.gpus:
        resources["limits"]["nvidia.com/gpu"] = str(runtime.gpus)
    return {
        "name": "kserve-container",
        "image": f"{runtime.image}:{VERSION}",
        "args": runtime.args(),
        "startupProbe": probe("/v2/health/live", 2, 60),
        "livenessProbe": probe("/v2/health/live", 10, 3),
        "readinessProbe": probe("/v2/health/ready", 2, 1),
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def manifest(runtime, kind):
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": runtime.name},
        "spec": {
            "annotations": {"prometheus.kserve.io/path": "/metrics", "prometheus.kserve.io/port": str(METRICS)},
            # Not chosen unless it is named, so that what runs already stays as it is.
            "supportedModelFormats": [
                {"name": name, "version": version, "autoSelect": False} for name, version in runtime.formats
            ],
            "protocolVersions": ["v2", "grpc-v2"],
            "multiModel": False,
            "containers": [container(runtime)],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }


# File → what it is, kind
FILES = {
    "clusterservingruntimes.yaml": ("for all namespaces", "ClusterServingRuntime"),
    "servingruntimes.yaml": ("for one namespace", "ServingRuntime"),
}


def texts():
    """The contents of the files, by their names."""
    made = {}
    for name, (what, kind) in FILES.items():
        head = (
            f"# SPDX-License-Identifier: Apache-2.0\n#\n# Runtimes of KServe, {what}: docs/kubernetes.md. Written by "
            "deploy/kserve/make_runtimes.py.\n"
        )
        documents = [yaml.safe_dump(manifest(runtime, kind), sort_keys=False, width=120) for runtime in RUNTIMES]
        made[name] = head + "".join("---\n" + document for document in documents)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, default=HERE, metavar="FOLDER")
    arguments = parser.parse_args()
    for name, text in texts().items():
        (arguments.to / name).write_text(text)


if __name__ == "__main__":
    main()
