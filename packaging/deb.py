# SPDX-License-Identifier: Apache-2.0
"""Debian packages: the server, and each backend apart. Libraries that Debian has are dependencies; those of
frameworks lie beside their backend."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import time

import archive
import manual
import sbom
import stage
from parts import ROOT, Failure

HERE = ROOT / "packaging"
MAINTAINER = "The Nereid project <maintainers@nereid.invalid>"
# Where an installation lies; its bin, backends and so on are below.
PREFIX = "usr/lib/nereid"


def put(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def add_server_files(root, build, version):
    """What the package of the server has beyond its installation."""
    (root / "usr/bin").mkdir(parents=True)
    for name in ("nereid", "tritonserver"):
        (root / "usr/bin" / name).symlink_to("../lib/nereid/bin/nereid")
    put(HERE / "nereid.service", root / "lib/systemd/system/nereid.service")
    put(HERE / "nereid.conf", root / "etc/nereid/nereid.conf")
    (root / "var/lib/nereid/models").mkdir(parents=True)
    manual.write(root / "usr/share/man", build / "src/app/nereid", version)
    manual.write_completions(root / "usr/share", build / "src/app/nereid")


def move_package(root):
    """The Python package goes where Debian's Python finds it, and finds the server from there."""
    package = root / "usr/lib/python3/dist-packages/nereid"
    package.parent.mkdir(parents=True)
    (root / PREFIX / "python/nereid").rename(package)
    shutil.rmtree(root / PREFIX)
    for path in package.glob("*.so"):
        stage.run("patchelf", "--set-rpath", f"/{PREFIX}/lib", path)


def fill(build, root, part, version):
    """The files of a part's package. Returns where the software of others in it is from."""
    folder = root / PREFIX
    folder.mkdir(parents=True)
    stage.install(build, folder, part)
    if part.name == "python3-nereid":
        move_package(root)
    origins = []
    examples = []
    if part.name == "nereid":
        add_server_files(root, build, version)
        origins, examples = stage.origins_taken_in(), ["identity"]
    elif part.framework:
        origin = stage.framework_origin(folder, part)
        origins = [stage.moved(origin, PREFIX)]
        examples = ["digits", "simple"] if part.framework == "onnxruntime" else []
    stage.put_examples(root / "usr/share/nereid/models", examples)
    return origins


def copyright_text(part, origins):
    """In Debian's machine-readable form."""
    text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: nereid\n"
    text += "\nFiles: *\nCopyright: The Nereid authors\nLicense: Apache-2.0\n"
    text += " The text is in /usr/share/common-licenses/Apache-2.0.\n"
    for origin in origins:
        text += f"\nFiles: {' '.join(origin.files) or f'{PREFIX}/*'}\nCopyright: the authors of {origin.name}\n"
        text += f"License: {origin.license.replace(' OR ', ' or ').replace(' WITH ', ' with ')}\n"
        text += f" {origin.name} {origin.version}; its terms, and those of what is inside it, are in\n"
        text += f" /usr/share/doc/{part.name}/licenses.\n"
    return text


def add_documents(root, part, version, origins):
    documents = root / "usr/share/doc" / part.name
    documents.mkdir(parents=True)
    (documents / "copyright").write_text(copyright_text(part, origins))
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(archive.epoch()))
    entry = f"nereid ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {date}\n"
    (documents / "changelog.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))
    stage.put_licenses(documents / "licenses", origins)
    if part.name == "nereid":
        for text in ("README.md", "CHANGELOG.md"):
            put(ROOT / text, documents / text)
    sbom.write(documents / "sbom.spdx.json", part.name, version, root, origins)


def dependencies(root, work, build):
    """The Debian packages of the libraries that the package's files need, as dpkg-shlibdeps sees it."""
    import elf

    files = [path for path in archive.walk(root) if elf.is_elf(path)]
    if not files:
        return []
    (work / "debian").mkdir(exist_ok=True)
    (work / "debian/control").write_text("Source: nereid\n\nPackage: nereid\nArchitecture: any\n")
    # Libraries of the package itself, and the server, which plug-ins find in the program.
    folders = sorted({path.parent for path in files}) + [build / "src/app"]
    command = ["dpkg-shlibdeps", "-O", "--ignore-missing-info", "--warnings=0", *(f"-l{folder}" for folder in folders)]
    done = subprocess.run([*command, *files], cwd=work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"dpkg-shlibdeps did not work:\n{done.stderr}")
    return re.sub(r"^shlibs:Depends=", "", done.stdout.strip()).split(", ")


def control_text(part, root, version, depends):
    if part.name != "nereid":
        depends = [f"nereid (= {version})", *depends]
    size = sum((path.stat().st_size + 1023) // 1024 for path in archive.walk(root) if path.is_file() and not path.is_symlink())
    fields = {
        "Package": part.name,
        "Source": "nereid" if part.name != "nereid" else None,
        "Version": version,
        "Architecture": stage.run("dpkg", "--print-architecture").strip(),
        "Maintainer": MAINTAINER,
        "Installed-Size": str(size),
        "Depends": ", ".join(dict.fromkeys([*depends, *part.depends])),
        "Recommends": ", ".join(part.recommends) or None,
        "Section": "science",
        "Priority": "optional",
        "Description": part.summary,
    }
    text = "".join(f"{name}: {value}\n" for name, value in fields.items() if value)
    return text + " Nereid loads trained models from a folder and serves predictions over HTTP and gRPC.\n"


def add_control(root, part, control):
    folder = root / "DEBIAN"
    folder.mkdir()
    sums = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in archive.walk(root)
        if path.is_file() and not path.is_symlink() and folder not in path.parents
    ]
    (folder / "md5sums").write_text("".join(sums))
    (folder / "control").write_text(control)
    # Backends have nothing of their own: their files are a trigger of the server's package.
    kind = {"nereid": "server", "python3-nereid": "python"}.get(part.name)
    for source in sorted((HERE / "debian" / kind).iterdir()) if kind else ():
        shutil.copyfile(source, folder / source.name)
        (folder / source.name).chmod(0o644 if source.name == "triggers" else 0o755)
    if (root / "etc").is_dir():
        files = [path for path in archive.walk(root / "etc") if path.is_file()]
        (folder / "conffiles").write_text("".join(f"/{path.relative_to(root)}\n" for path in files))


def make(build, out, work, parts, version):
    made = []
    for part in parts:
        root = work / part.name
        root.mkdir()
        origins = fill(build, root, part, version)
        add_documents(root, part, version, origins)
        depends = dependencies(root, work, build)
        add_control(root, part, control_text(part, root, version, depends))
        archive.set_modes_and_times(root)
        target = out / f"{part.name}_{version}_{stage.run('dpkg', '--print-architecture').strip()}.deb"
        # One thread, since the number of them shows in the result.
        command = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z6", "--threads-max=1", "--build", root, target]
        stage.run(*command, env=os.environ | {"SOURCE_DATE_EPOCH": str(archive.epoch())})
        shutil.rmtree(root)
        made.append(target)
    return made
