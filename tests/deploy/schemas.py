# SPDX-License-Identifier: Apache-2.0
"""The fields and types of Kubernetes' objects and of KServe's, from their Python packages, and what an object has that does
not fit them. A real API server knows more (real_api_server.py); this needs none."""

import ast
import functools
import re

import charts

PACKAGES = ("kubernetes/client/models", "kserve/models")
# (apiVersion, kind) → class
KINDS = {
    ("v1", "ConfigMap"): "V1ConfigMap",
    ("v1", "PersistentVolumeClaim"): "V1PersistentVolumeClaim",
    ("v1", "Pod"): "V1Pod",
    ("v1", "Service"): "V1Service",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("apps/v1", "Deployment"): "V1Deployment",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "V2HorizontalPodAutoscaler",
    ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy",
    ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
    ("serving.kserve.io/v1alpha1", "ServingRuntime"): "V1alpha1ServingRuntime",
    ("serving.kserve.io/v1alpha1", "ClusterServingRuntime"): "V1alpha1ClusterServingRuntime",
    ("serving.kserve.io/v1beta1", "InferenceService"): "V1beta1InferenceService",
}
# Whose fields these packages do not have.
OTHERS = {
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("monitoring.coreos.com/v1", "PrometheusRule"),
}
PLAIN = {"str": str, "int": int, "float": (int, float), "bool": bool, "datetime": str}
NESTED = re.compile(r"(list\[|dict\(str, )(.*)[\])]")


@functools.cache
def sources():
    """The file of each class."""
    found = {}
    for package in PACKAGES:
        for path in sorted((charts.FOLDER / package).glob("*.py")):
            for name in re.findall(r"(?m)^class (\w+)\(", path.read_text()):
                found.setdefault(name, path)
    return found


@functools.cache
def fields(name):
    """({name in JSON: type}, names that must be there) of a class."""
    text = sources()[name].read_text()
    tables = {
        table: ast.literal_eval(re.search(rf"    {table} = (\{{.*?\}})", text, re.S)[1])
        for table in ("openapi_types", "attribute_map")
    }
    names = tables["attribute_map"]
    required = re.findall(r"Invalid value for `(\w+)`, must not be `None`", text)
    return {names[key]: kind for key, kind in tables["openapi_types"].items()}, {names[key] for key in required}


def problems(value, kind, path=""):
    """What does not fit the type, in words with its place."""
    if nested := NESTED.fullmatch(kind):
        is_list = nested[1] == "list["
        if not isinstance(value, list if is_list else dict):
            return [f"{path}: expected {'a list' if is_list else 'an object'}, got {value!r}"]
        parts = enumerate(value) if is_list else value.items()
        return [found for key, part in parts for found in problems(part, nested[2], f"{path}/{key}")]
    if kind == "object" or (kind == "str" and re.search(r"/(limits|requests)/", path)):
        return []
    if kind in PLAIN:
        fits = isinstance(value, PLAIN[kind]) and (kind == "bool") == isinstance(value, bool)
        return [] if fits else [f"{path}: expected {kind}, got {value!r}"]
    if not isinstance(value, dict):
        return [f"{path}: expected an object, got {value!r}"]
    types, required = fields(kind)
    found = [f"{path}: no {name}" for name in sorted(required - set(value))]
    for name, part in value.items():
        if name not in types:
            found.append(f"{path}: {kind} has no field {name}")
        else:
            found += problems(part, types[name], f"{path}/{name}")
    return found


def check(made):
    """What is wrong with an object of any of the kinds; an unknown kind is a KeyError."""
    kind = (made["apiVersion"], made["kind"])
    return [] if kind in OTHERS else problems(made, KINDS[kind], f"{made['kind']} {made['metadata'].get('name')}")
