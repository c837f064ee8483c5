# SPDX-License-Identifier: Apache-2.0
"""Fills a folder with the files of an installation, and knows where each came from.

Every kind of package begins here: `cmake --install` for the components of its parts, stripped, and, unless
the system's packages will bring them, the libraries that not every system has, in lib/.
"""

import dataclasses
import functools
import json
import os
import pathlib
import platform
import shutil
import subprocess

import elf
from parts import FRAMEWORKS, LICENSES, PARTS, ROOT, TAKEN_IN, Failure, framework_version

# Opened by the server when it is needed, so nothing names it.
OPENED = ("libcurl.so.4",)


@dataclasses.dataclass(frozen=True, order=True)
class Origin:
    """Software of others inside a package."""

    name: str
    version: str
    license: str
    # What the texts of its licence are: files and folders.
    texts: tuple
    # Files in the stage that are it; none if it is part of our own files.
    files: tuple = ()
    purl: str = ""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} did not work:\n{done.stdout}{done.stderr}")
    return done.stdout


def is_built(build, part):
    """Whether the build has the plug-ins of a part."""
    for component in part.components:
        if component == "python-package" and not list((build / "python/nereid").glob("_core.*.so")):
            return False
        if component == "embedding" and not (build / "src/app/libtritonserver.so").exists():
            return False
        kind, _, name = component.partition("-")
        if kind in ("backend", "cache", "repoagent") and not list((build / f"{kind}s" / name).glob("libtriton*.so")):
            return False
    return True


def install(build, folder, part, with_libraries=True):
    """The part's files, stripped of symbols that only linkers and debuggers read."""
    before = {path for path in folder.rglob("*")}
    for component in part.components:
        run("cmake", "--install", build, "--prefix", folder, "--component", component)
    for path in sorted(folder.rglob("*")):
        if path not in before and elf.is_elf(path):
            run("strip", "--strip-unneeded", "--remove-section=.comment", path)
            path.chmod(0o755)
    if part.libraries and with_libraries:
        run("cmake", "--install", build, "--prefix", folder, "--component", part.libraries)
    # A folder that the rules of CMake's DIRECTORY made and left empty.
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def bring_libraries(folder, also=OPENED, of_system=elf.OF_EVERY_SYSTEM):
    """Copies what the files of the stage need, and what that needs, into lib/, where all look for it."""
    lib = folder / "lib"
    have = {path.name for path in folder.rglob("*.so*")}
    # The program stands for it.
    have.add("libtritonserver.so")
    todo = [name for path in sorted(folder.rglob("*")) if elf.is_elf(path) for name in elf.needed(path)]
    todo += also
    brought = []
    while todo:
        name = todo.pop()
        if name in have or name in of_system:
            continue
        source = elf.loader_cache().get(name)
        if source is None:
            raise Failure(f"{name} is needed, and this machine does not have it")
        lib.mkdir(exist_ok=True)
        target = lib / name
        shutil.copyfile(os.path.realpath(source), target)
        target.chmod(0o755)
        run("patchelf", "--set-rpath", "$ORIGIN", target)
        have.add(name)
        brought.append(target)
        todo += elf.needed(target)
    return sorted(brought)


@functools.lru_cache
def owners():
    """The Debian package of each shared library of this machine."""
    found = {}
    for line in run("dpkg-query", "-S", "*.so*").splitlines():
        packages, _, path = line.partition(": ")
        if path.startswith("/"):
            found[path] = packages.split(",")[0].split(":")[0]
    return found


@functools.lru_cache
def installed():
    """(package, version, source package) of each Debian package of this machine."""
    lines = run("dpkg-query", "-W", "-f", "${Package} ${Version} ${source:Package}\n").splitlines()
    return {line.split()[0]: tuple(line.split()) for line in lines}


def debian_package(path):
    """(package, version, source package) of a library of this machine."""
    real = os.path.realpath(path)
    # Where /lib is /usr/lib, packages may have either name.
    for candidate in (path, real, real.removeprefix("/usr")):
        if candidate in owners():
            return installed()[owners()[candidate]]
    raise Failure(f"no Debian package has {path}")


def package_facts(package):
    if package not in installed():
        raise Failure(f"the Debian package {package} is not installed; run tools/setup")
    return installed()[package]


def origins_of_libraries(folder, brought):
    found = {}
    for path in brought:
        package, version, source = debian_package(elf.loader_cache()[path.name])
        found.setdefault((package, version, source), []).append(str(path.relative_to(folder)))
    return [debian_origin(*facts, files=tuple(sorted(files))) for facts, files in sorted(found.items())]


def debian_origin(package, version, source, files=(), license=None):
    return Origin(
        name=package,
        version=version,
        license=license or LICENSES.get(source, "NOASSERTION"),
        texts=(f"/usr/share/doc/{package}/copyright",),
        files=files,
        purl=f"pkg:deb/debian/{package}@{version}?distro=debian-12",
    )


def origins_taken_in():
    """What is inside the program itself."""
    libraries = [debian_origin(*package_facts(package), license=license) for package, license in TAKEN_IN.items()]
    return libraries + origins_of_console()


def origins_of_console():
    """What is inside the page that the program has at /ui, if it was built with one."""
    console = ROOT / ".deps/console"
    if not (console / "page/index.html.gz").exists():
        return []
    packages = json.loads((ROOT / "console/package-lock.json").read_text())["packages"]
    found = []
    for name in ("preact", "uplot"):
        entry = packages[f"node_modules/{name}"]
        text = str(console / "work/node_modules" / name / "LICENSE")
        found.append(Origin(name, entry["version"], entry["license"], (text,), (), f"pkg:npm/{name}@{entry['version']}"))
    return found


def framework_origin(folder, part):
    title, license = FRAMEWORKS[part.framework]
    files = sorted(
        str(path.relative_to(folder))
        for component in (part.libraries.removesuffix("-libraries"),)
        for path in (folder / "backends" / component.removeprefix("backend-")).rglob("*.so*")
        if not path.name.startswith("libtriton_")
    )
    version = framework_version(part.framework)
    package = {"pytorch": "torch", "tensorflow": "tensorflow-cpu"}.get(part.framework, part.framework)
    return Origin(title, version, license, licenses_of_framework(part.framework), tuple(files), f"pkg:pypi/{package}@{version}")


def licenses_of_framework(framework):
    """tools/setup keeps the licences that came with the library; those of ONNX Runtime are in its wheel."""
    kept = ROOT / ".deps" / framework / "licenses"
    if kept.is_dir():
        return (str(kept),)
    wheel = sorted((ROOT / ".venv/lib").glob(f"python3.*/site-packages/{framework}"))
    texts = [path for name in ("LICENSE", "ThirdPartyNotices.txt") for path in wheel[-1:] if (path / name).exists()]
    if not texts:
        raise Failure(f"the licence of {framework} is neither in {kept} nor in .venv; run tools/setup")
    return tuple(str(texts[0] / name) for name in ("LICENSE", "ThirdPartyNotices.txt"))


def put_licenses(to, origins):
    """One folder for each software of others, with its licence and those of what is inside it."""
    for origin in origins:
        folder = to / origin.name.replace(" ", "-").lower()
        folder.mkdir(parents=True, exist_ok=True)
        for text in map(pathlib.Path, origin.texts):
            if text.is_dir():
                shutil.copytree(text, folder, dirs_exist_ok=True)
            else:
                shutil.copyfile(text, folder / text.name)


def put_examples(to, names):
    """Models to try a server with."""
    for name in names:
        shutil.copytree(ROOT / "examples/models" / name, to / name, ignore=shutil.ignore_patterns(".gitkeep"))
        # Git keeps no empty folders; a model without files needs its version's.
        for version in (ROOT / "examples/models" / name).iterdir():
            if version.is_dir():
                (to / name / version.name).mkdir(exist_ok=True)


def parts_named(names, build):
    """The parts with these names; without names, all that the build has."""
    if not names:
        return [part for part in PARTS.values() if is_built(build, part)]
    chosen = []
    for name in names:
        part = PARTS.get(name) or PARTS.get(f"nereid-{name}") or PARTS.get(f"nereid-backend-{name}")
        if part is None:
            raise Failure(f"there is no part '{name}'; there are: {', '.join(PARTS)}")
        if not is_built(build, part):
            raise Failure(f"{build} has nothing for {part.name}: ./x build --with {part.framework or 'all'}")
        chosen.append(part)
    return chosen


def machine():
    return platform.machine()


def moved(origin, folder):
    """The same, where the stage lies in `folder` of the package."""
    return dataclasses.replace(origin, files=tuple(f"{folder}/{file}" for file in origin.files))
