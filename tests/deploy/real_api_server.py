#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Applies everything in deploy/ to a real API server of Kubernetes: the manifests, the chart with each set of values of the
tests, the runtimes of KServe and the examples.

The server is built from its Go module (about ten minutes on two cores, once; what is built is kept in
.deps/api-server), etcd is Debian's. The definitions of the Prometheus operator and of KEDA come from their Go modules;
those of KServe, which the Go proxy does not have, from a folder or file that you name: config/crd/full of its repository.

Objects are applied as `kubectl apply --server-side` does it, and a field that the server does not know is an error. No pod
is started: there is no node. The exit status is 1 if anything was refused.

usage: .venv/bin/python tests/deploy/real_api_server.py [--crds PATH]... [--build-only]
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import requests
import yaml

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]

import charts  # noqa: E402
import test_chart  # noqa: E402
from harness import server as servers  # noqa: E402

FOLDER = charts.ROOT / ".deps" / "api-server"
KUBERNETES = "v1.34.4"
# Modules that have definitions, and where.
DEFINITIONS = {
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": "example/prometheus-operator-crd/*.yaml",
    "github.com/kedacore/keda/v2@v2.21.0": "config/crd/bases/*.yaml",
}
LOADED = ("scaledobjects", "servicemonitors", "prometheusrules", "servingruntimes", "inferenceservices")


def say(text):
    print(text, flush=True)


def go(*arguments, folder=FOLDER):
    done = subprocess.run(["go", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"go {' '.join(arguments)}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def module(name):
    """The folder of a module's files."""
    return pathlib.Path(json.loads(go("mod", "download", "-json", name))["Dir"])


def build():
    """The path of kube-apiserver, built if it is not there yet."""
    target = FOLDER / f"kube-apiserver-{KUBERNETES}"
    if target.exists():
        return target
    FOLDER.mkdir(parents=True, exist_ok=True)
    # What is developed beside Kubernetes has no version in its module; the published modules have one like its own.
    beside = re.findall(r"(?m)^\s(k8s\.io/[\w-]+) v0\.0\.0$", (module(f"k8s.io/kubernetes@{KUBERNETES}") / "go.mod").read_text())
    replaced = "".join(f"replace {name} => {name} {KUBERNETES.replace('v1.', 'v0.')}\n" for name in beside)
    (FOLDER / "go.mod").write_text(f"module api-server\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes {KUBERNETES}\n\n{replaced}")
    versions = [f"-X k8s.io/component-base/version.gitVersion={KUBERNETES}", "-X k8s.io/component-base/version.gitMajor=1",
                f"-X k8s.io/component-base/version.gitMinor={KUBERNETES.split('.')[1]}"]  # fmt: skip
    go("build", "-mod=mod", "-ldflags", " ".join(["-s -w", *versions]), "-o", str(target), "k8s.io/kubernetes/cmd/kube-apiserver")
    return target


def etcd():
    """The path of Debian's etcd, which is unpacked and not installed."""
    target = FOLDER / "usr" / "bin" / "etcd"
    if not target.exists():
        subprocess.run(["apt-get", "download", "etcd-server"], cwd=FOLDER, check=True, capture_output=True)
        (package,) = FOLDER.glob("etcd-server_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, FOLDER], check=True)
    return target


class ApiServer:
    """kube-apiserver with its etcd, until close()."""

    def __init__(self, folder):
        self._folder, self._processes = folder, []
        client, peer, port = servers.free_ports(3)
        self.url = f"https://127.0.0.1:{port}"
        self._start("etcd", etcd(), f"--data-dir={folder}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}",
                    f"--advertise-client-urls=http://127.0.0.1:{client}", f"--listen-peer-urls=http://127.0.0.1:{peer}")  # fmt: skip
        key = folder / "service-accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (folder / "tokens.csv").write_text("secret,admin,admin,system:masters\n")
        self._start("kube-apiserver", build(), f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1",
                    f"--secure-port={port}", f"--cert-dir={folder}/certificates", "--authorization-mode=RBAC",
                    f"--token-auth-file={folder}/tokens.csv", "--service-cluster-ip-range=10.0.0.0/24",
                    f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                    "--service-account-issuer=https://kubernetes.default.svc", "--endpoint-reconciler-type=none")  # fmt: skip
        self._session = requests.Session()
        self._session.headers["Authorization"] = "Bearer secret"
        # Neither proxies nor certificates of the environment are for this server.
        self._session.trust_env = self._session.verify = False
        self._places, self._unready = {}, []
        try:
            servers.wait_until(self._is_ready, "kube-apiserver", timeout=60)
        except AssertionError as error:
            self.close()
            raise AssertionError(f"{error}: {self._unready}") from None

    def _start(self, name, program, *arguments):
        with open(self._folder / f"{name}.log", "wb") as log:
            self._processes.append(
                subprocess.Popen([program, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True))

    def _is_ready(self):
        for process in self._processes:
            assert process.poll() is None, (self._folder / "kube-apiserver.log").read_text()[-4000:]
        with contextlib.suppress(requests.ConnectionError):
            reply = self._session.get(f"{self.url}/readyz?verbose", timeout=10)
            self._unready = [line for line in reply.text.splitlines() if line.startswith("[-]")]
            return reply.status_code == 200
        return False

    def get(self, path):
        reply = self._session.get(self.url + path, timeout=30)
        return reply.json() if reply.status_code == 200 else None

    def _path(self, made, namespace):
        """Where an object is; asks the server for the place of its kind."""
        version, kind = made["apiVersion"], made["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._places:
            listed = self.get(root)
            if listed is None:
                return None
            for resource in listed["resources"]:
                self._places.setdefault((version, resource["kind"]), (resource["name"].split("/")[0], resource["namespaced"]))
        if (version, kind) not in self._places:
            return None
        name, is_namespaced = self._places[version, kind]
        return root + (f"/namespaces/{namespace}" if is_namespaced else "") + f"/{name}/{made['metadata']['name']}"

    def apply(self, made, namespace="default"):
        """Applies an object; returns what the server says if it refuses."""
        path = self._path(made, namespace)
        if path is None:
            return f"the server has no kind {made['kind']} of {made['apiVersion']}"
        reply = self._session.patch(
            self.url + path, data=json.dumps(made), headers={"Content-Type": "application/apply-patch+yaml"}, timeout=60,
            params={"fieldManager": "tests", "force": "true", "fieldValidation": "Strict"})  # fmt: skip
        return "" if reply.status_code in (200, 201) else f"{reply.status_code} {reply.json().get('message')}"

    def close(self):
        for process in reversed(self._processes):
            process.terminate()
            process.wait(60)


class Loader(yaml.CSafeLoader):
    """Reads a lone equals sign as a text, which it is in definitions."""


Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: node.value)


def is_definition(made):
    """Whether it is a whole one: folders may have patches as well."""
    return bool(made) and made["kind"] == "CustomResourceDefinition" and "names" in made.get("spec", {})


def definitions(paths):
    """The CustomResourceDefinitions that what is here needs."""
    files = [path for path in paths if path.is_file()]
    files += [file for path in paths if path.is_dir() for file in sorted(path.glob("*.yaml"))]
    for name, pattern in DEFINITIONS.items():
        files += sorted(module(name).glob(pattern))
    for file in files:
        for made in yaml.load_all(file.read_text(), Loader):
            if is_definition(made) and made["spec"]["names"]["plural"].endswith(LOADED):
                yield made


def define(server, paths):
    names = []
    for made in definitions(paths):
        names.append(made["metadata"]["name"])
        if refused := server.apply(made):
            sys.exit(f"{names[-1]}: {refused}")

    def is_established(name):
        found = server.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        conditions = found.get("status", {}).get("conditions") or []
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    servers.wait_until(lambda: all(map(is_established, names)), "the definitions", timeout=60)
    say(f"definitions: {', '.join(names)}")


def collections():
    """(what it is, namespace, objects) of everything in deploy/."""
    for folder in ("kubernetes", "kserve"):
        for path in sorted((charts.DEPLOY / folder).glob("*.yaml")):
            yield f"deploy/{folder}/{path.name}", folder, list(yaml.safe_load_all(path.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        helm = charts.Helm(pathlib.Path(folder) / "log")
        for number, (name, values) in enumerate(test_chart.SETS.items()):
            namespace = f"chart-{number}"
            yield f"chart, values '{name}'", namespace, helm.objects(values, name="nereid", namespace=namespace)
        helm.stop()


def apply_all(server):
    """Applies everything; returns what was refused, in words."""
    refused = []
    for what, namespace, objects in collections():
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        # That pods have by default; a controller of Kubernetes makes it, which is not here.
        server.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, namespace)
        said = {f"{one['kind']} {one['metadata']['name']}": server.apply(one, namespace) for one in objects}
        wrong = [f"{what}: {name}: {text}" for name, text in said.items() if text]
        say(f"{what}: {len(objects) - len(wrong)} of {len(objects)} objects applied")
        refused += wrong
    return refused


def notices_mistakes(server):
    """Whether the server refuses what is wrong: otherwise its silence would mean nothing."""
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "wrong"}, "spec": {"prots": []}}
    said = server.apply(wrong)
    say(f"a field that does not exist: {said}")
    return "prots" in said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crds", type=pathlib.Path, action="append", default=[], metavar="PATH")
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    if reason := charts.missing():
        sys.exit(reason)
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = build()
    if arguments.build_only:
        return
    say(subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip())
    os.environ["PYTHONWARNINGS"] = "ignore"
    requests.packages.urllib3.disable_warnings()
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(pathlib.Path(folder))
        try:
            define(server, arguments.crds)
            refused = apply_all(server)
            is_strict = notices_mistakes(server)
        finally:
            server.close()
    print(*refused, sep="\n")
    sys.exit(1 if refused or not is_strict else 0)


if __name__ == "__main__":
    main()
