# SPDX-License-Identifier: Apache-2.0
"""The server with the flags that the chart gives it, and with volumes as Kubernetes makes them: what the probes ask, and
who reaches what."""

import contextlib
import json
import shutil
import ssl
import urllib.error
import urllib.request

import charts
import grpc
import pytest
import yaml
from harness import certificates, models
from harness import server as servers
from test_chart import SETS, Pod, of_kind

pytestmark = pytest.mark.newer
OPEN = ssl._create_unverified_context()


def volume(folder, files):
    """A volume of a ConfigMap or a Secret: links into a hidden folder, which is exchanged in one step when the files
    change. `files` maps places to files."""
    hidden = folder / "..2026_01_01"
    for place, source in files.items():
        (hidden / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, hidden / place)
    (folder / "..data").symlink_to(hidden.name)
    for name in {place.split("/")[0] for place in files}:
        (folder / name).symlink_to(f"..data/{name}")
    return folder


class Server:
    """A server with the flags of a pod, for the length of a with block, with these folders in place of the pod's."""

    def __init__(self, pod, folder, places):
        names = ("http", "grpc", "metrics", "admin")
        self.ports = dict(zip(names, servers.free_ports(4)))
        args = list(pod.args)
        for before, after in places.items():
            args = [arg.replace(f"={before}", f"={after}") for arg in args]
        # Later flags win.
        args += [f"--{name}-port={port}" for name, port in self.ports.items() if name != "admin"]
        args += [f"--admin-port={self.ports['admin']}"] if any("--admin-port" in arg for arg in args) else []
        args += [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
        args += ["--drain-secs=0", f"--backend-directory={servers.backends()}"]
        self._options = {"args": args, "log_dir": folder, "wait": False,
                         "ports": [self.ports[name] for name in ("http", "grpc", "metrics")]}  # fmt: skip
        self.pod = pod
        self._scheme = "https" if any("--http-use-ssl=true" in arg for arg in args) else "http"

    def __enter__(self):
        self._server = servers.start(**self._options)
        with contextlib.ExitStack() as undo:
            undo.callback(self._server.stop, check=False)
            servers.wait_until(lambda: self.probe("startup") == self.probe("readiness") == 200 or not self._runs(), "the probes")
            assert self._runs(), self._server.tail()
            undo.pop_all()
        return self

    def __exit__(self, *_):
        self._server.stop()

    def _runs(self):
        return self._server.process.poll() is None

    def ask(self, port, path, method="GET", **headers):
        """The status of an answer, 0 if there is none."""
        scheme = self._scheme if port != "metrics" else "http"
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{self.ports[port]}{path}", method=method, headers=headers)
        with contextlib.suppress(urllib.error.URLError):
            try:
                with urllib.request.urlopen(request, timeout=10, context=OPEN if scheme == "https" else None) as reply:
                    return reply.status
            except urllib.error.HTTPError as error:
                return error.code
        return 0

    def run(self, command, places):
        """The exit status of a command of the image, with other texts in place of some of its arguments'."""
        assert command[0] == "nereid"
        for before, after in places.items():
            command = [word.replace(before, after) for word in command]
        return servers.run_to_end(command[1:]).returncode

    def probe(self, kind):
        """200 if the probe succeeds, as Kubernetes makes it."""
        asked = self.pod.container[f"{kind}Probe"]
        if "exec" in asked:
            status = self.run(asked["exec"]["command"], {"127.0.0.1:8003": f"127.0.0.1:{self.ports['admin']}"})
            return 200 if status == 0 else 0
        if "grpc" in asked:
            with grpc.insecure_channel(f"127.0.0.1:{self.ports['grpc']}") as channel, contextlib.suppress(grpc.RpcError):
                # An empty HealthCheckRequest, and SERVING.
                return 200 if channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10) == b"\x08\x01" else 0
            return 0
        asked = asked["httpGet"]
        assert asked["port"] == "http" and asked.get("scheme", "HTTP").lower() == self._scheme
        return self.ask("http", asked["path"])


@pytest.fixture
def pod(helm, require_server, onnx):
    return lambda values: Pod(helm.objects(values, name="nereid", namespace="default"))


def test_a_pod_is_ready_and_loads_no_model_for_others(pod, tmp_path):
    with Server(pod({}), tmp_path, {"/opt/nereid/share/nereid/models": models.EXAMPLES}) as server:
        assert server.probe("liveness") == 200
        assert server.ask("http", "/v2/models/digits/ready") == server.ask("metrics", "/metrics") == 200
        # Only through the listener that no other pod reaches.
        load = "/v2/repository/models/digits/load"
        assert server.ask("http", load, "POST") == 403
        assert server.ask("admin", "/v2/models/digits") == 200


def test_a_pod_without_http_is_asked_by_other_means_and_is_live_when_it_is_not_ready(pod, tmp_path):
    shutil.copytree(models.EXAMPLES / "digits", tmp_path / "models" / "digits")
    (tmp_path / "models" / "broken" / "1").mkdir(parents=True)
    (tmp_path / "models" / "broken" / "1" / "model.onnx").write_bytes(b"no model")
    made = pod({"extraArgs": ["--allow-http=false"], "probes": {"grpc": True}, "models": {"controlMode": "explicit"}})
    with Server(made, tmp_path, {"/opt/nereid/share/nereid/models": tmp_path / "models"}) as server:
        assert [server.probe(kind) for kind in ("startup", "liveness", "readiness")] == [200, 200, 200]
        assert server.ask("http", "/v2") == 0
        # A model that cannot be loaded keeps the pod from being ready, and must not have it started again.
        assert server.ask("admin", "/v2/repository/models/broken/load", "POST") >= 400
        assert [server.probe(kind) for kind in ("startup", "liveness", "readiness")] == [200, 200, 0]


def test_models_of_a_config_map_are_served_and_nothing_else_of_it(pod, tmp_path):
    made = pod({"models": {"configMap": {"name": "m", "items": [{"key": "k", "path": "digits/1/model.onnx"}]}}})
    (item,) = made.mounted("/models")["configMap"]["items"]
    mounted = volume(tmp_path / "models", {item["path"]: models.EXAMPLES / "digits" / "1" / "model.onnx"})
    with Server(made, tmp_path, {"/models": mounted}) as server:
        assert server.ask("http", "/v2/models/digits/ready") == 200


def test_keys_and_certificates_come_from_secrets(helm, pod, tmp_path):
    authority = certificates.make(tmp_path, "authority")
    made = certificates.make(tmp_path, "server", authority)
    keys = tmp_path / "keys.json"
    added = servers.run_to_end(["keys", "add", "ci", "--file", keys, "--scope", "infer", "--scope", "metadata"])
    assert added.returncode == 0, added.stdout
    assert "ci" in json.loads(keys.read_text())["keys"][0]["id"]
    places = {
        "/opt/nereid/share/nereid/models": models.EXAMPLES,
        "/etc/nereid/tls": volume(tmp_path / "tls", {"tls.crt": made.cert, "tls.key": made.key}),
        "/etc/nereid/access": volume(tmp_path / "access", {"keys.json": keys}),
    }
    (key,) = [word for word in added.stdout.split() if len(word) > 30]
    with Server(pod(SETS["keys"]), tmp_path, places) as server:
        assert server.probe("liveness") == 200
        assert server.ask("http", "/v2/models/digits") == 401
        assert server.ask("http", "/v2/models/digits", Authorization=f"Bearer {key}") == 200
        assert server.ask("admin", "/v2/models/digits", Authorization=f"Bearer {key}") == 200
        # `helm test`, which finds no authority of these certificates in its image.
        tester = of_kind(helm.objects(SETS["keys"], name="nereid", namespace="default"), "Pod")["spec"]["containers"][0]
        places = {"nereid:8000": f"localhost:{server.ports['http']}", "/etc/nereid/tls": str(tmp_path / "tls")}
        assert server.run(["nereid", *tester["args"]], places) == 0


def test_the_manifests_have_the_flags_of_the_chart(pod):
    made = list(yaml.safe_load_all((charts.DEPLOY / "kubernetes" / "nereid.yaml").read_text()))
    assert Pod(made).args == pod({"models": {"persistentVolumeClaim": "models"}}).args
