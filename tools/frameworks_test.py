#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that tools/frameworks.py installs what its table says, whole or not at all."""

import contextlib
import hashlib
import io
import pathlib
import platform
import tempfile
import unittest
import zipfile

import frameworks

FILE = "thing-1.0-py3-none-any.whl"


class Frameworks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.deps = pathlib.Path(folder.name) / "deps"
        self.wheels = pathlib.Path(folder.name) / "wheels"
        self.wheels.mkdir()
        self.table = dict(frameworks.FRAMEWORKS)
        self.addCleanup(setattr, frameworks, "FRAMEWORKS", self.table)

    def offer(self, files, keep, machine=None, sha256=None):
        """Makes a wheel of `files` and a table whose only framework consists of it."""
        with zipfile.ZipFile(self.wheels / FILE, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        sha256 = sha256 or hashlib.sha256((self.wheels / FILE).read_bytes()).hexdigest()
        frameworks.FRAMEWORKS = {
            "thing": frameworks.Framework(
                title="Thing 1.0",
                wheels={machine or platform.machine(): [frameworks.Wheel(FILE, sha256)]},
                keep=keep,
                leave_out=("thing/include/gpu/",),
            )
        }

    def install(self, names="thing"):
        """The exit status and output of an installation."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = frameworks.main(["--deps", str(self.deps), "--wheels", str(self.wheels), names])
        return status, output.getvalue()

    def installed(self):
        return {str(p.relative_to(self.deps)) for p in self.deps.rglob("*") if p.is_file()}

    def test_only_what_the_table_names_is_unpacked(self):
        self.offer(
            {"thing/lib/a.so": "a", "thing/lib/b.so": "b", "thing/include/x/x.h": "x", "thing/include/gpu/y.h": "y"},
            {"thing/lib/a.so": "lib/a.so.1", "thing/include/": "include/"},
        )
        self.assertEqual(self.install()[0], 0)
        self.assertEqual(self.installed(), {"thing/.stamp", "thing/lib/a.so.1", "thing/include/x/x.h"})

    def test_an_installation_is_made_anew_only_when_its_entry_changes(self):
        self.offer({"thing/a": "old"}, {"thing/a": "a"})
        self.install()
        self.assertIn("current", self.install()[1])
        self.offer({"thing/a": "new"}, {"thing/a": "a"})
        self.assertEqual(self.install()[0], 0)
        self.assertEqual((self.deps / "thing/a").read_text(), "new")

    def test_a_wheel_with_other_contents_is_refused_and_the_old_installation_stays(self):
        self.offer({"thing/a": "old"}, {"thing/a": "a"})
        self.install()
        self.offer({"thing/a": "new"}, {"thing/a": "a"}, sha256="0" * 64)
        status, output = self.install()
        self.assertEqual(status, 1)
        self.assertIn("is not the file it should be", output)
        self.assertEqual(self.installed(), {"thing/.stamp", "thing/a"})
        self.assertEqual((self.deps / "thing/a").read_text(), "old")

    def test_a_wheel_without_a_file_of_the_table_is_refused(self):
        self.offer({"thing/a": "a"}, {"thing/a": "a", "thing/lib/": "lib/"})
        status, output = self.install()
        self.assertEqual(status, 1)
        self.assertIn("nothing for lib/", output)
        self.assertEqual(self.installed(), set())

    def test_an_unknown_name_is_refused_with_those_that_there_are(self):
        self.offer({"thing/a": "a"}, {"thing/a": "a"})
        status, output = self.install("thing,other")
        self.assertEqual(status, 1)
        self.assertIn("no framework 'other'; there are: thing and all", output)
        self.assertEqual(self.installed(), set())

    def test_another_machine_gets_all_that_there_is_for_it(self):
        self.offer({"thing/a": "a"}, {"thing/a": "a"}, machine="other")
        self.assertEqual(self.install("all"), (0, ""))
        status, output = self.install("thing")
        self.assertEqual(status, 1)
        self.assertIn("only for other", output)

    def test_the_name_of_a_wheel_says_what_pip_is_asked_for(self):
        for framework in self.table.values():
            for wheels in framework.wheels.values():
                for wheel in wheels:
                    self.assertRegex(wheel.requirement(), r"^[a-z0-9-]+==[0-9][0-9a-z.]*$")
                    self.assertIn("--platform", wheel.pip_options())
                    self.assertRegex(wheel.sha256, r"^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
