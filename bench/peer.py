# SPDX-License-Identifier: Apache-2.0
"""Installs what Nereid is compared with, from published wheels, into an ignored folder.

FOLDER/triton   the reference server, CPU only (wheel nvidia-pytriton)
FOLDER/perf     its load generator perf_analyzer (wheel tritonclient 2.45.0, the last to carry it)
FOLDER/cudart   the CUDA runtime library that perf_analyzer is linked with (it needs no GPU)
FOLDER/python   a virtual environment for the reference's Python models: what runs them was built before
                NumPy 2, and with that one their outputs have no bytes
FOLDER/lib      libtritonserver.so under the name that backends are linked with
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

WHEELS = {
    "triton": "nvidia-pytriton==0.7.0",
    "perf": "tritonclient==2.45.0",
    "cudart": "nvidia-cuda-runtime-cu12",
}
NUMPY = "numpy==1.26.4"


def fetch_wheel(requirement, target):
    """Downloads one wheel without what it depends on and unpacks it; the result appears at once."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, requirement]
        subprocess.run(command, check=True)
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(os.path.join(folder, "content"))
        os.rename(os.path.join(folder, "content"), target)


def make_environment(folder):
    """A virtual environment with NumPy, which is put there last."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        packages = pathlib.Path(work, "packages")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "-t", packages, NUMPY], check=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        site.rmdir()
        packages.rename(site)


def has_library(name):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    return name in listed


def install_b64():
    """perf_analyzer and the server need libb64, which comes with the distribution."""
    if has_library("libb64.so.0d"):
        return
    root = [] if os.geteuid() == 0 else ["sudo"]
    if root and shutil.which("sudo") is None:
        raise RuntimeError("the package libb64-0d is missing and there is no sudo to install it")
    subprocess.run([*root, "apt-get", "update", "-qq"], check=True)
    subprocess.run([*root, "apt-get", "install", "-y", "-qq", "libb64-0d"], check=True, stdout=subprocess.DEVNULL)


def executable(path):
    path.chmod(path.stat().st_mode | 0o111)
    return path


class Peer:
    """Where the reference server and its load generator are, and in what environment they start."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.server = self.folder / "triton" / "pytriton" / "tritonserver" / "bin" / "tritonserver"
        self.perf_analyzer = self.folder.joinpath(
            "perf", "tritonclient-2.45.0.data", "data", "bin", "perf_analyzer"
        )

    def install(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        install_b64()
        for name, requirement in WHEELS.items():
            if not (self.folder / name).exists():
                print(f"installing {requirement} into {self.folder / name} ...", file=sys.stderr, flush=True)
                fetch_wheel(requirement, self.folder / name)
        if not any(self.folder.glob("python/lib/python*/site-packages/numpy")):
            make_environment(self.folder / "python")
        library = next((self.folder / "triton" / "nvidia_pytriton.libs").glob("libtritonserver-*.so"))
        link = self.folder / "lib" / "libtritonserver.so"
        link.parent.mkdir(exist_ok=True)
        if not link.exists():
            link.symlink_to(os.path.relpath(library, link.parent))
        executable(self.server)
        executable(self.perf_analyzer)
        return self

    @property
    def _home(self):
        return self.server.parent.parent

    @property
    def cache_directory(self):
        return self._home / "caches"

    def backends(self, ours, folder):
        """A backend directory in `folder` with our plug-ins, so that both sides compute with the same
        code, but for the Python backend, which is the reference's own."""
        for backend in sorted(pathlib.Path(ours).iterdir()):
            if backend.name != "python" and any(backend.glob("libtriton_*.so")):
                (folder / backend.name).symlink_to(backend.resolve())
        python = folder / "python"
        python.mkdir()
        for file in (self._home / "backends" / "python").iterdir():
            if file.is_file():
                shutil.copy(file, python)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        stub = self._home / "python_backend_stubs" / version / "triton_python_backend_stub"
        if stub.exists():
            # Not a copy: it finds its libraries from where it lies.
            executable(stub)
            (python / stub.name).symlink_to(stub.resolve())
        return folder

    @property
    def server_env(self):
        # The interpreter of its Python models is the one in PATH.
        path = [str(self.folder / "python" / "bin"), os.environ.get("PATH", "")]
        return {"LD_LIBRARY_PATH": str(self.folder / "lib"), "PATH": os.pathsep.join(path)}

    @property
    def perf_analyzer_env(self):
        runtime = next((self.folder / "cudart").rglob("libcudart.so.12"))
        return {"LD_LIBRARY_PATH": str(runtime.parent)}
