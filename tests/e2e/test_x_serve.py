# SPDX-License-Identifier: Apache-2.0
"""`./x serve` with arguments for the server: it finds out how that one is asked, and goes on serving. Setting up and building
are done already here."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

import psutil
import pytest
from harness import certificates
from harness import server as servers

pytestmark = pytest.mark.newer

# What `./x serve` calls.
READY_MADE = ("tools/setup", "bin/cmake", "bin/ccache")


@pytest.fixture
def tree(require_server, onnx, tmp_path):
    """A clone in which everything is built."""
    tree = tmp_path / "tree"
    for name in READY_MADE:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    shutil.copy(servers.ROOT / "x", tree)
    for name in ("examples", ".venv"):
        (tree / name).symlink_to(servers.ROOT / name)
    (tree / "build/serve/src/app").mkdir(parents=True)
    (tree / "build/serve/src/app/nereid").symlink_to(servers.binary())
    (tree / "build/serve/backends").symlink_to(servers.backends())
    return tree


@contextlib.contextmanager
def serving(tree, *arguments):
    """What `./x serve` says until it serves, while it does; then somebody presses Ctrl-C."""
    ports = dict(zip(("http", "grpc", "metrics"), servers.free_ports(3)))
    flags = [f"--{name}-port={port}" for name, port in ports.items()]
    # Python models run with the Python of the tests.
    folders = [tree / "bin", os.path.dirname(sys.executable), os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(map(str, folders))}
    log = tree / "said"
    with log.open("w") as said:
        process = subprocess.Popen(
            [tree / "x", "serve", "--", *flags, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, env=environment, start_new_session=True,
            # A script cannot catch a signal that was ignored when it began, as Ctrl-C is for tests in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # fmt: skip
    try:
        servers.wait_until(lambda: "stop   Ctrl-C" in log.read_text() or process.poll() is not None, "./x serve to serve", 60)
        assert process.poll() is None, log.read_text()
        yield log.read_text(), ports
    finally:
        started = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) == 0 and log.read_text().endswith("Stopped.\n"), log.read_text()
        except BaseException:
            for one in (process, *started):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            raise


def test_a_prediction_is_shown_and_what_to_try(tree):
    with serving(tree) as (said, ports):
        assert f"ready at http://127.0.0.1:{ports['http']} (" in said
        assert "Answered in" in said and "over HTTP" in said
        assert f"curl http://127.0.0.1:{ports['http']}/v2/models/digits" in said


@pytest.fixture
def tls(tmp_path):
    authority = certificates.make(tmp_path, "authority")
    made = certificates.make(tmp_path, "server", authority)

    def flags(protocol, mutual=False):
        given = [f"--{protocol}-use-ssl=true", f"--{protocol}-server-cert={made.cert}", f"--{protocol}-server-key={made.key}"]
        return given + [f"--{protocol}-use-ssl-mutual=true", f"--{protocol}-root-cert={authority.cert}"] * mutual

    return flags


def test_a_server_with_tls_is_found_to_be_ready(tree, tls):
    with serving(tree, *tls("http")) as (said, ports):
        assert f"ready at https://127.0.0.1:{ports['http']} (" in said
        assert "could not be read" not in said
        # The example's client speaks no TLS.
        assert "over gRPC" in said
        (line,) = re.findall(r"curl -k https://\S+/v2/models/digits", said)
        assert '"digits"' in subprocess.run(line.split(), capture_output=True, text=True, check=True).stdout


def test_without_a_port_for_the_example_the_server_serves_on(tree, tls):
    with serving(tree, *tls("http"), *tls("grpc")) as (said, _):
        assert "No prediction is shown" in said and "FAILED" not in said


@pytest.mark.parametrize("how", ["mutual TLS", "no HTTP"])
def test_a_server_that_cannot_be_asked_serves_on(tree, tls, how):
    flags = tls("http", mutual=True) if how == "mutual TLS" else ["--allow-http", "false"]
    with serving(tree, *flags) as (said, _):
        assert "only its log says whether it is ready" in said and "FAILED" not in said
        log = tree / "build/serve/serve.log"
        servers.wait_until(lambda: "Started GRPCInferenceService" in log.read_text(), "what the log says")


def test_a_server_on_a_socket_is_found_to_be_ready(tree):
    with serving(tree, f"--http-address=unix:{tree / 'http.sock'}") as (said, _):
        assert "ready at http://localhost (" in said and "over gRPC" in said
        assert "could not be read" not in said


def test_a_server_that_tells_its_health_to_those_with_a_key_serves_on(tree):
    (tree / "keys.json").write_text('{"protect_health": true, "keys": []}')
    with serving(tree, f"--api-keys={tree / 'keys.json'}") as (said, _):
        assert "tells nobody without a key whether it is ready" in said


LOADS_WHEN_IT_MAY = """
import pathlib, time
class TritonPythonModel:
    def initialize(self, args):
        while not pathlib.Path(args["model_repository"], "may-load").exists():
            time.sleep(0.02)
    def execute(self, requests):
        pass
"""


def test_a_server_that_loads_for_longer_than_anybody_waits_serves_on(tree):
    if not servers.has_backend("python"):
        pytest.skip("the build has no Python backend")
    script = (tree / "x").read_text()
    assert "SECONDS + 120" in script
    (tree / "x").write_text(script.replace("SECONDS + 120", "SECONDS + 1"))
    slow = tree / "models" / "slow"
    (slow / "1").mkdir(parents=True)
    (slow / "1" / "model.py").write_text(LOADS_WHEN_IT_MAY)
    tensors = "\n".join(f'{kind} [ {{ name: "{kind}" data_type: TYPE_FP32 dims: [ 1 ] }} ]' for kind in ("input", "output"))
    (slow / "config.pbtxt").write_text(f'backend: "python"\nmax_batch_size: 0\n{tensors}\n')
    with serving(tree, f"--model-repository={tree / 'models'}") as (said, _):
        assert "not ready after two minutes, but live" in said and "FAILED" not in said
        (slow / "may-load").touch()
