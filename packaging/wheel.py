# SPDX-License-Identifier: Apache-2.0
"""The wheel: the Python package `nereid` and the command `nereid`, with the program, its plug-ins and the C++
libraries that not every system has. Frameworks come from wheels of their own, in which the backends find them.
"""

import base64
import csv
import hashlib
import io
import shutil

import archive
import elf
import sbom
import stage
from parts import LICENSE, PARTS, ROOT, SUMMARY, Failure, framework_version

# Where the program's installation lies, in the package.
SERVER = "nereid/_server"
# From a backend's folder to where other packages are installed.
SITE = "$ORIGIN/../../../.."
# The folders of packages that have the libraries of backends.
LIBRARIES = {
    "pytorch": (f"{SITE}/torch/lib",),
    "tensorflow": (f"{SITE}/tensorflow",),
    "openvino": (f"{SITE}/openvino/libs",),
}
# What brings these packages. PyTorch's and OpenVINO's C++ interfaces are those of one version; those of ONNX
# Runtime and TensorFlow are C interfaces that stay.
ONNXRUNTIME = "onnxruntime>=1.18,<2"
EXTRAS = {
    "pytorch": "torch=={pytorch}",
    "tensorflow": "tensorflow-cpu>={tensorflow},<3",
    "openvino": "openvino=={openvino}",
    # Request routers are an alpha interface of Ray's, which may change with any version.
    "ray": "ray[serve]>=2.60,<2.61",
}
PACKAGE = PARTS["python3-nereid"]
EMBEDDING = PARTS["nereid-library"]

# The oldest glibc of systems whose libstdc++ has these symbols (PEP 600 names systems by their glibc).
GLIBC_OF_GLIBCXX = {(3, 4, 28): (2, 31), (3, 4, 29): (2, 34), (3, 4, 30): (2, 35), (3, 4, 31): (2, 38)}


def platform_tag(folder):
    """manylinux_2_x: the oldest glibc that the files run on."""
    files = [path for path in archive.walk(folder) if elf.is_elf(path)]
    glibc = max(elf.newest_symbol_version(path, "GLIBC") for path in files)[:2]
    glibcxx = max(elf.newest_symbol_version(path, "GLIBCXX") for path in files)
    for version, system in sorted(GLIBC_OF_GLIBCXX.items()):
        if glibcxx <= version:
            glibc = max(glibc, system)
            break
    else:
        raise Failure(f"GLIBCXX_{'.'.join(map(str, glibcxx))} is in no table here; which glibc has it?")
    return f"manylinux_{glibc[0]}_{glibc[1]}_{stage.machine()}"


def install_server(build, root, parts):
    """The program and the plug-ins, each of which finds its libraries."""
    server = root / SERVER
    for part in [*parts, EMBEDDING]:
        stage.install(build, server, part, with_libraries=False)
    for framework, folders in LIBRARIES.items():
        for path in (server / "backends" / framework).glob("*.so"):
            stage.run("patchelf", "--set-rpath", ":".join(["$ORIGIN", "$ORIGIN/../../lib", *folders]), path)
    # The link of Triton's name cannot be in a wheel; the package's command has it.
    (server / "bin/tritonserver").unlink()
    in_wheels = {name for path in archive.walk(server / "backends") if elf.is_elf(path) for name in elf.needed(path)}
    in_wheels = {name for name in in_wheels if name.startswith(("libtorch", "libc10", "libopenvino"))}
    brought = stage.bring_libraries(server, of_system=elf.OF_EVERY_SYSTEM | in_wheels)
    return [stage.moved(origin, SERVER) for origin in stage.origins_of_libraries(server, brought)]


def install_package(build, root):
    stage.install(build, root, PACKAGE)
    for path in (root / "python/nereid").iterdir():
        target = root / "nereid" / path.name
        path.rename(target)
        if elf.is_elf(target):
            stage.run("patchelf", "--set-rpath", "$ORIGIN/_server/lib", target)
    shutil.rmtree(root / "python")


def metadata(version, python):
    versions = {name: framework_version(name) for name in LIBRARIES}
    lines = [
        "Metadata-Version: 2.4",
        "Name: nereid",
        f"Version: {version}",
        f"Summary: {SUMMARY}",
        f"License-Expression: {LICENSE}",
        "License-File: LICENSE",
        f"Requires-Python: =={python[0]}.{python[1:]}.*",
        f"Requires-Dist: {ONNXRUNTIME}",
        "Requires-Dist: numpy",
    ]
    for extra, requirement in EXTRAS.items():
        lines.append(f"Provides-Extra: {extra}")
        lines.append(f"Requires-Dist: {requirement.format(**versions)}; extra == '{extra}'")
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + (ROOT / "README.md").read_text()


def record(root, names, itself):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name in names:
        data = (root / name).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([name, f"sha256={digest}", len(data)])
    writer.writerow([itself, "", ""])
    return text.getvalue()


def python_of(root):
    """The version of Python that the extension is for, such as "311"."""
    extension = next((root / "nereid").glob("_core.cpython-*.so"), None)
    if extension is None:
        raise Failure("the build has no Python package: cmake --build --target nereid_python")
    return extension.name.split("-")[1]


def make(build, out, work, parts, version):
    root = work / "root"
    parts = [part for part in parts if part not in (PACKAGE, EMBEDDING) and part.name != "nereid-dev"]
    origins = install_server(build, root, parts) + stage.origins_taken_in()
    install_package(build, root)
    python = python_of(root)
    tag = f"cp{python}-cp{python}-{platform_tag(root)}"
    info = root / f"nereid-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata(version, python))
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: packaging/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n")
    commands = "".join(f"{name} = nereid._program:main\n" for name in ("nereid", "tritonserver"))
    (info / "entry_points.txt").write_text(f"[console_scripts]\n{commands}")
    (info / "licenses").mkdir()
    shutil.copyfile(ROOT / "LICENSE", info / "licenses/LICENSE")
    stage.put_licenses(info / "licenses", origins)
    sbom.write(info / "sboms/nereid.spdx.json", "nereid-wheel", version, root, origins)
    itself = f"{info.name}/RECORD"
    names = [path.relative_to(root).as_posix() for path in archive.walk(root) if path.is_file()]
    # The package index and pip read the metadata at the end of the archive.
    names.sort(key=lambda name: (name.startswith(info.name), name))
    (root / itself).write_text(record(root, names, itself))
    target = out / f"nereid-{version}-{tag}.whl"
    archive.write_zip(target, root, [*names, itself])
    return [target]
