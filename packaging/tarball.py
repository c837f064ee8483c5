# SPDX-License-Identifier: Apache-2.0
"""The tarball: a folder that runs wherever it is unpacked, with the libraries that not every system has."""

import shutil

import archive
import manual
import sbom
import stage
from parts import ROOT

# Frameworks whose libraries take more than a hundred megabytes get tarballs of their own, to be unpacked over
# the first.
APART = ("nereid-backend-pytorch", "nereid-backend-tensorflow", "nereid-backend-openvino")


def add_documents(folder, name, version, origins):
    """Licences and the list of contents, in share/doc/NAME."""
    documents = folder / "share/doc" / name
    documents.mkdir(parents=True, exist_ok=True)
    for text in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / text, documents / text)
    stage.put_licenses(documents / "licenses", origins)
    sbom.write(documents / "sbom.spdx.json", name, version, folder, origins)


def fill(build, folder, parts, version, name="nereid"):
    """All of a tarball's contents; also the base of images. Returns where the software of others is from."""
    for part in parts:
        stage.install(build, folder, part)
    origins = [stage.framework_origin(folder, part) for part in parts if part.framework]
    if any(part.name == "nereid" for part in parts):
        brought = stage.bring_libraries(folder)
        origins += stage.origins_of_libraries(folder, brought) + stage.origins_taken_in()
        manual.write(folder / "share/man", build / "src/app/nereid", version)
        manual.write_completions(folder / "share", build / "src/app/nereid")
        with_onnx = any(part.framework == "onnxruntime" for part in parts)
        stage.put_examples(folder / "share/nereid/models", ["identity"] + ["digits", "simple"] * with_onnx)
    add_documents(folder, name, version, origins)
    return origins


def make(build, out, work, parts, version):
    machine = stage.machine()
    groups = [("nereid", [part for part in parts if part.name not in APART])]
    groups += [(part.name, [part]) for part in parts if part.name in APART]
    made = []
    for name, group in groups:
        if not group:
            continue
        folder = work / name
        fill(build, folder, group, version, name)
        archive.set_modes_and_times(folder)
        target = out / f"{name}-{version}-linux-{machine}.tar.gz"
        # One folder for all of them, so that a framework's tarball unpacks over the first.
        archive.write_tar_gz(target, folder, inside=f"nereid-{version}/")
        made.append(target)
    return made
