# SPDX-License-Identifier: Apache-2.0
"""What packages contain, and that they come out the same each time."""

import filecmp
import gzip
import json
import re
import subprocess
import tarfile
import zipfile

import pytest
from harness import server as servers
from made import make, only


@pytest.fixture(scope="module")
def contents(packages, tmp_path_factory):
    """The tarball, unpacked."""
    folder = tmp_path_factory.mktemp("contents")
    with tarfile.open(only(packages, "nereid-*-linux-*.tar.gz")) as archive:
        archive.extractall(folder, filter="tar")
    return only(folder, "nereid-*")


def is_program(path):
    return path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"


def programs(contents):
    return [path for path in contents.rglob("*") if is_program(path)]


def test_the_same_files_give_the_same_packages(packages, tmp_path):
    kinds = ["tarball", "deb", "image", "wheel"]
    made = []
    for umask, folder in ((0o022, "one"), (0o077, "two")):
        temporary = tmp_path / f"{folder}-tmp"
        temporary.mkdir()
        made.append(make(tmp_path / folder, kinds, "nereid", umask=umask, TMPDIR=str(temporary)))
    names = sorted(path.name for path in made[0].iterdir())
    assert len(names) == len(kinds)
    same, different, failed = filecmp.cmpfiles(*made, names, shallow=False)
    assert (sorted(same), different, failed) == (names, [], [])


def test_no_file_knows_where_it_was_built(contents):
    here = str(servers.ROOT).encode()
    assert not [path.name for path in contents.rglob("*") if path.is_file() and here in path.read_bytes()]


def test_programs_and_libraries_are_stripped(contents):
    assert len(programs(contents)) > 20
    for path in programs(contents):
        sections = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
        assert " .symtab " not in sections and " .debug_info " not in sections, path


def test_every_library_finds_what_it_needs_inside_or_on_every_system(contents):
    # Plug-ins find the functions of libtritonserver.so in the program.
    inside = {path.name for path in contents.rglob("*.so*")} | {"libtritonserver.so"}
    for path in programs(contents):
        text = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            of_the_system = re.match(r"(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)[-.]", name)
            assert of_the_system or name in inside, f"{path.name} needs {name}"


def bills_of_materials(packages):
    """Each list of contents in each package, by the package's name."""
    for path in packages.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            (name,) = [name for name in archive.getnames() if name.endswith(".spdx.json")]
            yield path.name, json.load(archive.extractfile(name))
    for path in packages.glob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith(".spdx.json")]
            yield path.name, json.loads(archive.read(name))
    for path in packages.glob("*.deb"):
        tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, capture_output=True).stdout
        found = re.search(rb'\{\n "SPDXID": "SPDXRef-DOCUMENT".*?\n\}\n', tar, re.S)
        yield path.name, json.loads(found[0])


def test_every_package_lists_its_contents_with_versions_and_licences(packages):
    lists = dict(bills_of_materials(packages))
    assert len(lists) >= 5
    for name, document in lists.items():
        assert document["spdxVersion"] == "SPDX-2.3"
        for package in document["packages"]:
            assert package["versionInfo"], (name, package)
            assert package["licenseConcluded"] != "NOASSERTION", (name, package)
        ids = {element["SPDXID"] for element in document["packages"] + document["files"]} | {"SPDXRef-DOCUMENT"}
        for relation in document["relationships"]:
            assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids


def test_the_list_of_the_tarball_has_the_libraries_and_what_is_inside_the_program(contents):
    document = json.loads((contents / "share/doc/nereid/sbom.spdx.json").read_text())
    names = {package["name"] for package in document["packages"]}
    assert {"nereid", "ONNX Runtime", "libssl3", "libcurl4", "libprotobuf-dev"} <= names
    files = {entry["fileName"].removeprefix("./") for entry in document["files"]}
    missing = {path.relative_to(contents).as_posix() for path in programs(contents)} - files
    assert missing == set()


def test_every_licence_is_in_the_tarball(contents):
    document = json.loads((contents / "share/doc/nereid/sbom.spdx.json").read_text())
    for package in document["packages"]:
        if package["name"] == "nereid":
            assert (contents / "share/doc/nereid/LICENSE").read_bytes()
            continue
        folder = contents / "share/doc/nereid/licenses" / package["name"].replace(" ", "-").lower()
        assert any(path.stat().st_size > 100 for path in folder.rglob("*") if path.is_file()), folder


def test_the_manual_in_the_tarball_has_every_flag(contents):
    usage = subprocess.run([servers.binary(), "--help"], check=True, capture_output=True, text=True).stdout
    page = gzip.decompress((contents / "share/man/man1/nereid.1.gz").read_bytes()).decode().replace("\\-", "-")
    for flag in re.findall(r"^  (--\S+)", usage, re.M):
        assert f"\\fB{flag}\\fR" in page
