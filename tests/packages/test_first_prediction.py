# SPDX-License-Identifier: Apache-2.0
"""What a new user does, as README.md says it: an own ONNX file and an own Python function, from each package, and an own
PyTorch file, from those of Debian, on a system that has nothing else."""

import json
import re
import subprocess
import urllib.request

from harness import server as servers
from made import only

SERVE = ("--port", "--grpc-port", "--metrics-port")


def readme_block(containing):
    """The block of code in README.md that has this text."""
    blocks = re.findall(r"(?ms)^```\w+\n(.*?)^```$", (servers.ROOT / "README.md").read_text())
    (found,) = [block for block in blocks if containing in block]
    return found


def predict_file(root, command, own_model, tmp_path, options=()):
    """Serves the file, and asks with the printed call and with the command."""
    path = root.put(own_model)
    server = root.serve([command, "serve", path, *options], tmp_path, SERVE)
    body = server.wait_for_match(r"^curl -s localhost:\d+/v2/models/own/infer -d '(.*)'$")[1]
    request = urllib.request.Request(f"http://{server.http}/v2/models/own/infer", body.encode())
    outputs = json.loads(urllib.request.urlopen(request).read())["outputs"]
    assert outputs[0]["data"] == [0.25] * 4
    told = json.loads(root.run(command, "infer", "own", "--zeros", "--json", "--url", f"http://{server.http}"))
    assert told["outputs"][0]["data"] == [0.25] * 4
    server.stop()


def predict_function(root, python, tmp_path, **environment):
    """Runs the function of README.md with its call, on other ports."""
    ports = servers.free_ports(3)
    given = ", ".join(f"{name}_port={port}" for name, port in zip(("http", "grpc", "metrics"), ports))
    program = readme_block("@nereid.model").replace("nereid.serve(greet)", f"nereid.serve(greet, {given})")
    (tmp_path / "greet.py").write_text(program)
    server = root.start([python, root.put(tmp_path / "greet.py")], ports, tmp_path, **environment)
    path, body = re.search(r"curl localhost:8000(\S+) -d '(.*)'", readme_block("python3 greet.py")).groups()
    request = urllib.request.Request(f"http://{server.http}{path}", body.encode())
    assert json.loads(urllib.request.urlopen(request).read())["output"] == "Hello, World!"
    server.stop()


def test_from_the_tarball(clean, packages, own_model, tmp_path):
    subprocess.run(["tar", "-xzf", only(packages, "nereid-*-linux-*.tar.gz"), "-C", clean.folder / "root"], check=True)
    home = f"/root/{only(clean.folder / 'root', 'nereid-*').name}"
    predict_file(clean, f"{home}/bin/nereid", own_model, tmp_path)
    clean.run("apt-get", "install", "-y", "--no-install-recommends", "python3", "python3-numpy")
    predict_function(clean, "python3.11", tmp_path, PYTHONPATH=f"{home}/python")


def test_from_the_debian_packages(clean, packages, own_model, tmp_path):
    names = ("nereid", "nereid-backend-onnxruntime", "nereid-backend-python", "nereid-library", "python3-nereid")
    paths = [clean.put(only(packages, f"{name}_*.deb")) for name in names]
    clean.run("apt-get", "install", "-y", "--no-install-recommends", *paths)
    predict_file(clean, "nereid", own_model, tmp_path)
    predict_function(clean, "python3", tmp_path)
    clean.run("apt-get", "purge", "-y", *names)
    assert not {name for name in clean.files() if "nereid" in name}


def test_a_pytorch_file_from_the_debian_packages(clean, packages, pytorch_package, own_script, tmp_path):
    """PyTorch needs nothing of the system that apt does not install with it."""
    (line,) = [line for line in readme_block("nereid serve model.pt").splitlines() if "serve model.pt" in line]
    paths = [clean.put(only(packages, "nereid_*.deb")), clean.put(pytorch_package)]
    clean.run("apt-get", "install", "-y", "--no-install-recommends", *paths)
    predict_file(clean, "nereid", own_script, tmp_path, line.split("model.pt")[1].split())
    clean.run("apt-get", "purge", "-y", "nereid", "nereid-backend-pytorch")
    assert not {name for name in clean.files() if "nereid" in name}


def test_from_the_wheel(python_root, packages, own_model, tmp_path):
    path = python_root.put(only(packages, "nereid-*.whl"), "/ours")
    python_root.run("/venv/bin/pip", "install", "--no-index", "--find-links", "/wheels", path)
    predict_file(python_root, "/venv/bin/nereid", own_model, tmp_path)
    predict_function(python_root, "/venv/bin/python3", tmp_path)
    python_root.run("/venv/bin/pip", "uninstall", "-y", "nereid")
