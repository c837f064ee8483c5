# SPDX-License-Identifier: Apache-2.0
"""What compilers and linkers do against mistakes that become attacks is in every program and library of a release
build, as its ELF file says (docs/security.md has the list)."""

import re
import subprocess

import pytest
from harness import server as servers

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]


def build_type():
    cache = servers.build_folder() / "CMakeCache.txt"
    found = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w+)", cache.read_text(), re.M) if cache.exists() else None
    return found.group(1) if found else ""


if build_type() != "Release" or servers.is_sanitized():
    pytestmark.append(pytest.mark.skip(reason="other builds are for developers"))


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def is_ours(path):
    """Whether the file is a library of ours that users get, and not the stand-in that plug-ins are linked with."""
    return not path.is_symlink() and path.name.startswith(("libtriton", "_core")) and "stub" not in path.parts


def files():
    """The program and every library of ours that is built."""
    build = servers.build_folder()
    folders = ("backends", "caches", "repoagents", "python")
    libraries = [path for folder in folders for path in (build / folder).rglob("*.so*") if is_ours(path)]
    return [build / "src/app/nereid", build / "src/app/libtritonserver.so", *sorted(libraries)]


@pytest.fixture(params=[path for path in files() if path.exists()], ids=lambda path: path.name)
def file(request):
    return request.param


def segments(file):
    """(type, flags) of each segment."""
    found = re.findall(r"^  (\w+) +0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ (...) ", readelf(file, "-l"), re.M)
    assert found
    return [(kind, flags.replace(" ", "")) for kind, flags in found]


def undefined(file):
    """What the file takes from libraries."""
    return re.findall(r" UND ([^@\s]+)", readelf(file, "--dyn-syms"))


def test_there_are_the_files_to_look_at():
    names = {path.name for path in files() if path.exists()}
    assert "nereid" in names
    assert len(names) > 1


def test_it_may_be_loaded_at_any_address(file):
    assert "Type:                              DYN" in readelf(file, "-h")
    assert "TEXTREL" not in readelf(file, "-d")


def test_its_tables_of_functions_are_complete_and_read_only_from_the_start(file):
    assert "GNU_RELRO" in [kind for kind, _ in segments(file)]
    dynamic = readelf(file, "-d")
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*NOW", dynamic)


def test_nothing_is_writable_and_executable(file):
    kinds = segments(file)
    assert ("GNU_STACK", "RW") in kinds
    assert not [kind for kind, flags in kinds if "W" in flags and "E" in flags]


def test_its_functions_check_their_stack(file):
    assert "__stack_chk_fail" in undefined(file)


def test_copies_of_known_size_are_checked():
    program = files()[0]
    assert [name for name in undefined(program) if re.fullmatch(r"__\w+_chk", name) and name != "__stack_chk_fail"]


def test_its_code_may_run_with_a_shadow_stack():
    """The linker takes the mark off a program whose start files lack it, so this looks at an object of ours."""
    program = files()[0]
    if "X86-64" not in readelf(program, "-h"):
        pytest.skip("this is not a processor with CET")
    objects = sorted((servers.build_folder() / "src/base").rglob("status.cc.o"))
    assert objects
    assert "SHSTK" in readelf(objects[0], "-n")
