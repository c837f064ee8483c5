#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the libraries of frameworks beyond ONNX Runtime, each into a folder of its own: .deps/NAME.

`tools/setup --with pytorch` calls it; CMake builds the backend of each framework whose folder is there.
The libraries come from wheels of the Python package index, fetched with pip (and so with the user's own
settings of index, proxy and certificates), pinned by version and SHA-256. Only what a server needs is
unpacked. A folder is replaced in one move, and made anew only when its entry in the table has changed.

usage: tools/frameworks.py [--check] [--deps FOLDER] [--wheels FOLDER] NAME[,NAME...] | all

  --check   only say whether there are such frameworks for this machine
  --deps    where the folders are made (default: .deps)
  --wheels  a folder that is searched for the wheels first, for machines without the package index
"""

import argparse
import dataclasses
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Failure(Exception):
    """What went wrong and what to do, for the user."""


@dataclasses.dataclass(frozen=True)
class Wheel:
    """A file of the package index, whose name also says the package, its version and its platform."""

    file: str
    sha256: str

    def requirement(self):
        name, version = self.file.split("-")[:2]
        return f"{name.replace('_', '-')}=={version}"

    def pip_options(self):
        python, _, platforms = self.file.removesuffix(".whl").split("-")[-3:]
        version = re.fullmatch(r"cp(\d)(\d+)", python)
        options = ["--python-version", f"{version[1]}.{version[2]}" if version else "3.11"]
        for tag in platforms.split("."):
            options += ["--platform", tag]
        return options


@dataclasses.dataclass(frozen=True)
class Framework:
    """One entry of the table."""

    title: str
    # Of each machine (uname -m) that the framework is available for.
    wheels: dict
    # Path in a wheel → path in the framework's folder; both end in "/" for whole folders.
    keep: dict
    # Paths in a wheel that are left out of the folders above; "/" at the end as there.
    leave_out: tuple = ()
    # Whether `all` includes it: what is of no use on every machine is installed by its name only.
    in_all: bool = True


FRAMEWORKS = {
    # The index has no wheel for Linux on x86-64 without CUDA. The libraries for the CPU are usable alone:
    # they need only the small libraries of the second and third wheel, and nothing of the gigabytes that
    # the first one declares as its needs.
    "pytorch": Framework(
        title="PyTorch 2.15.0 for the CPU (TorchScript)",
        wheels={
            "x86_64": [
                Wheel(
                    "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                    "48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e",
                ),
                Wheel(
                    "nvidia_cuda_runtime-13.2.75-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
                    "72bf454902da594e0b833cadeddc8b7100ce1c7cf7ed9023943931be1aa913b7",
                ),
                Wheel(
                    "nvidia_cuda_cupti-13.5.25-py3-none-manylinux_2_25_x86_64.whl",
                    "9dcca41c12a734192b14e7128ae116bc9ce1b9da686e2ebf48ae7a4415f76650",
                ),
            ],
        },
        keep={
            "torch/include/ATen/": "include/ATen/",
            "torch/include/c10/": "include/c10/",
            "torch/include/caffe2/": "include/caffe2/",
            "torch/include/torch/": "include/torch/",
            "torch/lib/libc10.so": "lib/libc10.so",
            "torch/lib/libgomp.so.1": "lib/libgomp.so.1",
            "torch/lib/libtorch_cpu.so": "lib/libtorch_cpu.so",
            "torch-2.15.0.dist-info/licenses/": "licenses/",
            "nvidia/cu13/lib/libcudart.so.13": "lib/libcudart.so.13",
            "nvidia/cu13/lib/libcupti.so.13": "lib/libcupti.so.13",
            "nvidia_cuda_runtime-13.2.75.dist-info/licenses/": "licenses/nvidia_cuda_runtime/",
            "nvidia_cuda_cupti-13.5.25.dist-info/licenses/": "licenses/nvidia_cuda_cupti/",
        },
        leave_out=("torch/include/ATen/cuda/", "torch/include/c10/cuda/", "torch/include/c10/metal/"),
    ),
    # Without the plug-ins for GPUs and NPUs, and without libtbbbind and libhwloc: TBB opens these two in a
    # way that ends processes whose allocator is not the C library's, and it works without them.
    "openvino": Framework(
        title="OpenVINO 2026.4.1 for the CPU (IR, ONNX, TensorFlow, TensorFlow Lite, PaddlePaddle)",
        wheels={
            "x86_64": [
                Wheel(
                    "openvino-2026.4.1-22982-cp311-cp311-manylinux_2_28_x86_64.whl",
                    "2d22b1da03f7caf74df30e9f6417d0ab2f637e4a38e08e1dcd294d2c37407aaf",
                ),
            ],
        },
        keep={
            "openvino/include/openvino/": "include/openvino/",
            "openvino/libs/libopenvino.so.2641": "lib/libopenvino.so.2641",
            "openvino/libs/libopenvino_auto_batch_plugin.so": "lib/libopenvino_auto_batch_plugin.so",
            "openvino/libs/libopenvino_auto_plugin.so": "lib/libopenvino_auto_plugin.so",
            "openvino/libs/libopenvino_hetero_plugin.so": "lib/libopenvino_hetero_plugin.so",
            "openvino/libs/libopenvino_intel_cpu_plugin.so": "lib/libopenvino_intel_cpu_plugin.so",
            "openvino/libs/libopenvino_ir_frontend.so.2641": "lib/libopenvino_ir_frontend.so.2641",
            "openvino/libs/libopenvino_onnx_frontend.so.2641": "lib/libopenvino_onnx_frontend.so.2641",
            "openvino/libs/libopenvino_paddle_frontend.so.2641": "lib/libopenvino_paddle_frontend.so.2641",
            "openvino/libs/libopenvino_tensorflow_frontend.so.2641": "lib/libopenvino_tensorflow_frontend.so.2641",
            "openvino/libs/libopenvino_tensorflow_lite_frontend.so.2641": "lib/libopenvino_tensorflow_lite_frontend.so.2641",
            "openvino/libs/libtbb.so.12": "lib/libtbb.so.12",
            "openvino/libs/libtbbmalloc.so.2": "lib/libtbbmalloc.so.2",
            "openvino-2026.4.1.dist-info/licenses/": "licenses/",
        },
    ),
    # The plug-in opens the library's C API when it loads its first model, so it is built without headers.
    "tensorflow": Framework(
        title="TensorFlow 2.21.0 for the CPU (SavedModel, GraphDef)",
        wheels={
            "x86_64": [
                Wheel(
                    "tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl",
                    "2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c",
                ),
            ],
        },
        keep={
            "tensorflow/libtensorflow_cc.so.2": "lib/libtensorflow_cc.so.2",
            "tensorflow/libtensorflow_framework.so.2": "lib/libtensorflow_framework.so.2",
            "tensorflow/include/LICENSE": "licenses/LICENSE",
            "tensorflow/THIRD_PARTY_NOTICES.txt": "licenses/THIRD_PARTY_NOTICES.txt",
        },
    ),
    # The libraries that run plans but do not make them, for machines with an NVIDIA GPU: the lean one for
    # plans that are version compatible, the dispatch one for those that also carry their lean library. The
    # index has no wheel of the whole TensorRT. They are under NVIDIA's licence, which is kept with them.
    "tensorrt": Framework(
        title="TensorRT 11.4.0, lean and dispatch run time (for machines with an NVIDIA GPU)",
        wheels={
            "x86_64": [
                Wheel(
                    "tensorrt_lean_cu12_libs-11.4.0.106-py3-none-manylinux_2_28_x86_64.whl",
                    "091458056315f2ff7d8aa1b324ce8f9a0b227016fe223dfb60fc783eb8659478",
                ),
                Wheel(
                    "tensorrt_dispatch_cu12_libs-11.4.0.106-py3-none-manylinux_2_28_x86_64.whl",
                    "ef42ddd8f9ed2147bc1850327e530df6c4e9a4d361aa479cc4b676f3c1ab4ba3",
                ),
            ],
        },
        keep={
            "tensorrt_lean_libs/libnvinfer_lean.so.11": "lib/libnvinfer_lean.so.11",
            "tensorrt_lean_libs/libnvinfer_vc_plugin.so.11": "lib/libnvinfer_vc_plugin.so.11",
            "tensorrt_dispatch_libs/libnvinfer_dispatch.so.11": "lib/libnvinfer_dispatch.so.11",
            "tensorrt_lean_cu12_libs-11.4.0.106.dist-info/licenses/": "licenses/",
        },
        in_all=False,
    ),
}


# What people ask for that the server has without a library, and what it is.
BUILT_IN = {"clouds": "Repositories in clouds (s3://, gs://, as://)"}


def choose(text, machine):
    """The names in `text`, which may be `all`: every framework that this machine can have and use."""
    if text == "all":
        return [name for name, framework in FRAMEWORKS.items() if machine in framework.wheels and framework.in_all]
    names = [name for name in dict.fromkeys(text.split(",")) if name]
    for name in names:
        if name in BUILT_IN:
            continue
        if name not in FRAMEWORKS:
            raise Failure(f"there is no framework '{name}'; there are: {', '.join(FRAMEWORKS)} and all")
        if machine not in FRAMEWORKS[name].wheels:
            known = ", ".join(FRAMEWORKS[name].wheels)
            raise Failure(f"{FRAMEWORKS[name].title} is not available for {machine}; only for {known}")
    return names


def stamp_of(framework, machine):
    """Differs whenever another folder would come out."""
    parts = (framework.wheels[machine], framework.keep, framework.leave_out)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def sha256_of(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(wheel, work, wheels):
    """The path of the wheel, whose contents are the expected ones."""
    path = work / wheel.file
    if wheels is not None and (wheels / wheel.file).exists():
        path = wheels / wheel.file
    else:
        print(f"  fetching {wheel.requirement()} ... ", flush=True)
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(work)]
        command += [*wheel.pip_options(), wheel.requirement()]
        # On a terminal pip shows its progress; a log gets its output only if there is something to explain.
        quiet = {} if sys.stdout.isatty() else {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, check=False, **quiet)
        if done.returncode != 0:
            raise Failure(f"fetching {wheel.file} did not work: {' '.join(command)}\n{done.stdout or ''}")
        if not path.exists():
            raise Failure(f"pip fetched another file than {wheel.file}: {[p.name for p in work.iterdir()]}")
    actual = sha256_of(path)
    if actual != wheel.sha256:
        raise Failure(f"{path} is not the file it should be: expected sha256 {wheel.sha256}, found {actual}")
    return path


def target_of(name, framework):
    """Where a file of a wheel goes, or nothing."""
    if name.endswith("/") or name.startswith(framework.leave_out):
        return None
    for source, target in framework.keep.items():
        if name == source:
            return target
        if source.endswith("/") and name.startswith(source):
            return target + name.removeprefix(source)
    return None


def unpack(path, framework, folder):
    """Unpacks what is kept; returns how many bytes that was."""
    total = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            target = target_of(member.filename, framework)
            if target is None:
                continue
            to = folder / target
            to.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, to.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            total += member.file_size
    return total


def install(name, machine, deps, wheels):
    if name in BUILT_IN:
        print(f"{BUILT_IN[name]} ... nothing is needed")
        return
    framework = FRAMEWORKS[name]
    home, work = deps / name, deps / f"{name}.new"
    stamp = stamp_of(framework, machine)
    if (home / ".stamp").exists() and (home / ".stamp").read_text() == stamp:
        print(f"{framework.title} ... current")
        return
    start = time.monotonic()
    print(f"{framework.title} ...", flush=True)
    shutil.rmtree(work, ignore_errors=True)
    (work / "fetched").mkdir(parents=True)
    try:
        kept = 0
        for wheel in framework.wheels[machine]:
            path = fetch(wheel, work / "fetched", wheels)
            print(f"  unpacking {wheel.file} ... ", end="", flush=True)
            size = unpack(path, framework, work)
            print(f"{size / 1e6:.0f} MB")
            kept += size
            if path.parent == work / "fetched":
                path.unlink()
        missing = [to for to in framework.keep.values() if not (work / to).exists()]
        if missing:
            raise Failure(f"the wheels of {name} have nothing for {', '.join(missing)}")
        shutil.rmtree(work / "fetched")
        (work / ".stamp").write_text(stamp)
        shutil.rmtree(home, ignore_errors=True)
        work.rename(home)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"  {home}: {kept / 1e6:.0f} MB ({time.monotonic() - start:.1f} s)")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="tools/frameworks.py")
    parser.add_argument("names")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--deps", type=pathlib.Path, default=ROOT / ".deps")
    parser.add_argument("--wheels", type=pathlib.Path)
    options = parser.parse_args(arguments)
    machine = platform.machine()
    try:
        for name in choose(options.names, machine):
            if not options.check:
                install(name, machine, options.deps, options.wheels)
    except (Failure, OSError, zipfile.BadZipFile) as failure:
        print(f"setup failed: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
