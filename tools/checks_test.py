#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the checks of the sources find what they are there to find."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
CLANG_TIDY = TOOLS.parent / ".venv/bin/clang-tidy"
HEADER = "// SPDX-License-Identifier: Apache-2.0\n"


def run(check, files, *flags):
    """The exit status and output of a check on a tree with these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, TOOLS / check, *flags, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class Includes(unittest.TestCase):
    def finds(self, name, text, words):
        status, output = run("check_includes.py", {name: text})
        self.assertEqual(status, 1, output)
        self.assertIn(words, output)

    def passes(self, name, text):
        self.assertEqual(run("check_includes.py", {name: text}), (0, ""))

    def test_an_edge_of_the_table_and_what_it_brings_along(self):
        self.passes("src/schedule/a.cc", HEADER + '#include "core/request.h"\n#include "tensor/shape.h"\n')

    def test_an_include_against_the_table(self):
        self.finds("src/frontends/http/a.cc", HEADER + '#include "engine/engine.h"\n', "http may not include engine")

    def test_a_module_that_is_private_to_its_user(self):
        self.finds("src/core/a.cc", HEADER + '#include "proto/model_config.h"\n', "core may not include proto")

    def test_a_relative_include(self):
        self.finds("src/core/a.cc", HEADER + '#include "../schedule/queue.h"\n', "not by a relative path")

    def test_types_outside_their_place(self):
        self.finds("src/core/a.cc", HEADER + "#include <sys/epoll.h>\n", "the event loop")
        self.finds("src/net/a.cc", HEADER + "#include <boost/asio/io_context.hpp>\n", "Beast")
        self.finds("src/engine/a.cc", HEADER + '#include "triton/core/tritonserver.h"\n', "the C ABI")
        self.finds("src/service/a.cc", HEADER + '#include "proto/model_config.pb.h"\n', "protobuf")
        self.passes("src/net/a.cc", HEADER + "#include <sys/epoll.h>\n")
        self.passes("src/net/http1/a.cc", HEADER + "#include <boost/beast/core.hpp>\n")

    def test_bans(self):
        self.finds("src/net/a.cc", HEADER + "  std::this_thread::sleep_for(1ms);\n", "no sleeps")
        self.finds("src/net/a.cc", HEADER + "#ifdef NEREID_CUDA\n#endif\n", "conditional compilation")
        self.passes("src/net/a.cc", HEADER + "// sleep_for is not used here.\n")

    def test_a_sleep_by_another_name(self):
        nobody = HEADER + "void F() {\n  base::CondVar never;\n  never.WaitUntil(mutex, end);\n}\n"
        self.finds("src/net/a.cc", nobody, "nobody can signal never")
        self.passes("src/net/a.cc", nobody + "void G() { never.NotifyAll(); }\n")
        self.finds("src/net/a.cc", HEADER + "  while (!done) std::this_thread::yield();\n", "no loops on yield()")
        self.finds("src/net/a.cc", HEADER + "  base::SleepFor(delay);\n", "no sleeps")
        self.passes("src/object_store/download.cc", HEADER + "  base::SleepFor(delay);\n")

    def test_a_lock_that_clang_does_not_know(self):
        for lock in ("std::mutex", "std::shared_mutex", "std::recursive_timed_mutex", "std::condition_variable_any"):
            self.finds("caches/a/a.h", HEADER + f"#pragma once\nclass A {{\n  {lock} lock_;\n}};\n", "use the annotated Mutex")
        self.finds("src/net/a.cc", HEADER + "std::mutex mutex;\n", "use the annotated Mutex")
        self.passes("backends/kit/mutex.h", HEADER + "#pragma once\n#if defined(__clang__)\n#endif\nstd::mutex mutex_;\n")
        self.passes("backends/a/a.cc", HEADER + "// std::mutex\nbackend::Mutex mutex;\n")

    def test_plugins_see_the_c_headers_alone(self):
        self.passes("backends/a/a.cc", HEADER + '#include "backend_kit/error.h"\n#include "triton/core/tritonbackend.h"\n')
        self.finds("backends/a/a.cc", HEADER + '#include "base/status.h"\n', "may not include the server's base")
        self.finds("caches/a/a.cc", HEADER + '#include "../local/store.h"\n', "not by a relative path")
        self.finds("agents/a/a.cc", HEADER + "  usleep(1);\n", "no sleeps")
        self.finds("python/src/a.cc", "#pragma once\n", "first line")

    def test_the_table_that_people_read(self):
        row = "| `base` | the ground | `net` |\n"
        status, output = run("check_includes.py", {"ARCHITECTURE.md": row, "src/base/a.cc": HEADER})
        self.assertEqual(status, 1)
        self.assertIn("ARCHITECTURE.md:1: base may include nothing", output)
        self.assertIn("no row for net", output)

    def test_first_line_and_guard(self):
        self.finds("src/net/a.cc", "// Something else\n", "first line")
        self.finds("src/net/a.h", HEADER + "\n", "#pragma once")

    def test_a_declared_edge_against_the_table(self):
        self.finds("src/core/CMakeLists.txt", "nereid_module(NAME core DEPS\n  memory service)\n", "core may not depend on service")

    def test_a_folder_nobody_declared(self):
        self.finds("src/util/a.cc", HEADER, "table of modules")


class Paths(unittest.TestCase):
    """Of each case, the tree has src/http/route.h and docs/http.md."""

    def names(self, file, text):
        files = {"src/http/route.h": HEADER, "docs/http.md": "# HTTP\n", file: text}
        status, output = run("check_paths.py", files)
        self.assertEqual(status, 1 if output else 0)
        return [line.split("there is no ")[1] for line in output.splitlines()[:-1]]

    def test_files_by_any_part_of_their_path(self):
        for name in ("route.h", "http/route.h", "src/http/route.h", "docs/http.md"):
            self.assertEqual(self.names("src/a.cc", f"{HEADER}// As {name} says.\n"), [])

    def test_files_that_are_gone(self):
        for name in ("routes.h", "net/route.h", "docs/grpc.md", "src/grpc"):
            self.assertEqual(self.names("src/a.cc", f"{HEADER}  int a;  // As {name} says.\n"), [name])
        self.assertEqual(self.names("x.py", "# See native.c.\n"), ["native.c"])

    def test_code_is_not_read(self):
        self.assertEqual(self.names("src/a.cc", HEADER + '#include "routes.h"\nOpen("gone.cc");\n'), [])

    def test_files_of_triton(self):
        text = "// Names of what is\n// counted: core/metrics.cc"
        self.assertEqual(self.names("src/a.cc", f"{HEADER}{text} of Triton.\n"), [])
        self.assertEqual(self.names("src/a.cc", f"{HEADER}{text}.\n"), ["core/metrics.cc"])

    def test_names_that_stand_for_many(self):
        text = "Write `src/<module>/x_test.cc`, `src/http/*.cc` and [more](https://a.b/c/gone.md).\n"
        self.assertEqual(self.names("docs/a.md", text), [])

    def test_links_of_documents(self):
        text = "[one](http.md#routes), [two](../src/http/route.h), [three](gone/), [four](#here)\n"
        self.assertEqual(self.names("docs/a.md", text), ["gone/"])


class Sizes(unittest.TestCase):
    def test_a_long_file_fails(self):
        self.assertEqual(run("check_sizes.py", {"src/a/a.cc": "\n" * 1001})[0], 1)

    def test_a_long_function_is_reported(self):
        text = "namespace a {\nstruct B {\n  int Get() const { return 1'000; }\n};\nint F(int x) {\n" + "  x++;\n" * 101 + "}\n}\n"
        status, output = run("check_sizes.py", {"src/a/a.cc": text})
        self.assertEqual(status, 0)
        self.assertIn("src/a/a.cc:5: 103 lines", output)
        self.assertEqual(run("check_sizes.py", {"src/a/a.cc": text}, "--strict")[0], 1)

    def test_braces_in_strings_do_not_count(self):
        text = 'const char* a() { return "{"; }\nint b() {\n' + "\n" * 50 + "}\nint c() {\n" + "\n" * 70 + "}\n"
        self.assertEqual(run("check_sizes.py", {"src/a/a.cc": text}, "--strict"), (0, ""))

    def fields(self, count):
        return "".join(f"  std::map<int, int> field{i}_;\n" for i in range(count))

    def test_a_class_with_too_many_fields(self):
        text = "namespace a {\nclass B : public C {\n public:\n  void F();\n\n private:\n" + self.fields(21) + "};\n}\n"
        status, output = run("check_sizes.py", {"src/a/b.h": text}, "--strict")
        self.assertEqual(status, 1)
        self.assertEqual(output, "src/a/b.h:2: a::B has 21 data members; the limit is 20\n")

    def test_every_spelling_of_a_field_counts(self):
        spellings = """  int a_, b_;
  int c_ NEREID_GUARDED_BY(mutex_) = F(1, 2);
  std::array<int, 3> d_{{1, 2, 3}};
  void (*e_)(int, int) = nullptr;
  std::function<void(int, int)> f_ = [](int, int) { return; };
  struct { int x; } g_;
"""
        nothing = """  static constexpr int kNone = 1;
  using Map = std::map<int, int>;
  friend class Other;
  class Forward;
  B() : x_{1}, y_(2) { F(); }
  bool operator<(const B& other) const { return true; }
  operator bool() const;
  virtual void F(int x = 3) = 0;
  template <class T> T G(T x) const NEREID_REQUIRES(mutex_);
"""
        text = "class NEREID_CAPABILITY(\"x\") B {\n" + spellings + nothing + self.fields(13) + "};\n"
        self.assertEqual(run("check_sizes.py", {"src/a/b.h": text}), (0, ""))
        text = text.replace("};\n", "  int last_;\n};\n")
        self.assertIn("B has 21 data members", run("check_sizes.py", {"src/a/b.h": text})[1])

    def test_a_class_that_is_cut_over_several_files_is_counted_whole(self):
        method = "namespace a {\nvoid B::F%d() {\n" + "  x_++;\n" * 58 + "}\n}\n"
        files = {f"src/a/b{i}.cc": method % i * 3 for i in range(3)}
        files["src/a/b.h"] = "namespace a {\nclass B {\n  int x_;\n};\n}\n"
        status, output = run("check_sizes.py", files, "--strict")
        self.assertEqual(status, 1)
        self.assertEqual(output, "src/a/b.h:2: a::B has 543 lines; the limit is 500\n")

    def test_what_stands_beside_a_class_is_not_counted_with_it(self):
        other = "namespace a {\nvoid C::F() {\n" + "  x_++;\n" * 58 + "}\n}\n"
        files = {"src/a/b.cc": other * 10, "src/a/b.h": "namespace a {\nclass B {\n  int x_;\n};\n}\n"}
        self.assertEqual(run("check_sizes.py", files, "--strict"), (0, ""))

    def test_a_struct_of_options_may_have_as_many_fields_as_it_likes(self):
        options = "struct Options {\n" + self.fields(40) + "  bool IsUsed() const { return true; }\n};\n"
        self.assertEqual(run("check_sizes.py", {"src/a/b.h": options}, "--strict"), (0, ""))
        state = options.replace("IsUsed() const", "Change()")
        self.assertEqual(run("check_sizes.py", {"src/a/b.h": state}, "--strict")[0], 1)
        shared = options.replace("struct Options {\n", "struct Options {\n  std::atomic<int> count{0};\n")
        self.assertEqual(run("check_sizes.py", {"src/a/b.h": shared}, "--strict")[0], 1)

    def test_fixtures_of_tests_have_no_budget(self):
        text = "class Fixture : public testing::Test {\n" + self.fields(40) + "  void F();\n};\n"
        self.assertEqual(run("check_sizes.py", {"src/a/a_test.cc": text, "src/a/testing/b.h": text}, "--strict"), (0, ""))


class Measure(unittest.TestCase):
    def gate(self, name, files):
        """What the table says about a gate in a tree with these files: today's figure, and whether the bar is held."""
        _, output = run("measure.py", files)
        for line in output.splitlines():
            cells = [cell.strip() for cell in line.split(" | ")]
            if cells[0] == name:
                return cells[2], cells[3] == "yes"
        self.fail(f"no gate {name} in:\n{output}")

    def test_classes_and_structs_without_a_comment(self):
        name = "classes and structs in headers with a comment"
        header = HEADER + "#pragma once\n\nstruct A {\n  int x;\n};\n\n// Some words.\ntemplate <class T>\nclass B {\n};\n"
        self.assertEqual(self.gate(name, {"src/net/a.h": header}), ("50.0 % of 2", False))
        self.assertEqual(self.gate(name, {"src/net/a.h": header.replace("\nstruct", "// A.\nstruct")}), ("100.0 % of 2", True))

    def test_locks_without_annotations(self):
        name = "locks that clang cannot check"
        annotated = "class A {\n  base::Mutex mutex_;\n  int x_ NEREID_GUARDED_BY(mutex_);\n};\n"
        self.assertEqual(self.gate(name, {"src/net/a.h": annotated}), ("0 of 1", True))
        bare = annotated.replace("NEREID_GUARDED_BY(mutex_)", "")
        self.assertEqual(self.gate(name, {"src/net/a.h": bare}), ("1 of 1", False))
        self.assertEqual(self.gate(name, {"backends/a/a.h": "class A {\n  std::mutex mutex_;\n};\n"}), ("1 of 1", False))

    def test_lines_of_tests_beside_the_code(self):
        name = "frontends/grpc: lines of unit tests to a line of code"
        files = {"src/frontends/grpc/a.cc": "\n" * 100, "src/frontends/grpc/a_test.cc": "\n" * 40}
        self.assertEqual(self.gate(name, files), ("0.40", True))
        files["src/frontends/grpc/b.cc"] = "\n"
        self.assertEqual(self.gate(name, files)[1], False)

    def test_process_wide_state(self):
        name = "process-wide state outside of its list"
        text = "static const int a = 1;\nint Count() {\n  static std::atomic<int> count{0};\n  return ++count;\n}\n"
        self.assertEqual(self.gate(name, {"src/net/a.cc": text})[0].split()[0], "1")

    def test_modules_on_a_cycle(self):
        files = {"src/base/a.h": '#include "net/b.h"\n', "src/net/b.h": '#include "base/a.h"\n'}
        self.assertEqual(self.gate("module cycles", files), ("2 (2 modules, 2 edges)", False))

    def test_only_strict_fails(self):
        files = {"src/net/a.h": "struct A {\n  int x;\n};\n"}
        self.assertEqual(run("measure.py", files)[0], 0)
        self.assertEqual(run("measure.py", files, "--strict")[0], 1)


@unittest.skipUnless(CLANG_TIDY.exists(), "tools/setup installs clang-tidy")
class Clang(unittest.TestCase):
    COUNTER = """#pragma once
#define T_CAPABILITY __attribute__((capability("mutex")))
#define T_ACQUIRE __attribute__((acquire_capability()))
#define T_RELEASE __attribute__((release_capability()))
#define T_GUARDED_BY(x) __attribute__((guarded_by(x)))
struct T_CAPABILITY Lock {
  void Take() T_ACQUIRE;
  void Give() T_RELEASE;
};
struct Counter {
  int Next();
  Lock lock;
  int count T_GUARDED_BY(lock);
};
"""

    def check(self, text, *flags, name="src/a/counter.cc", unity=False):
        """The exit status and output of the check on a file that includes the counter above; with `unity`, the build
        compiles a file that includes that one."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            source = root / name
            source.parent.mkdir(parents=True)
            source.write_text('#include "counter.h"\n' + text)
            (root / "headers").mkdir()
            (root / "headers/counter.h").write_text(self.COUNTER)
            if unity:
                batch = root / "Unity/unity_0_cxx.cxx"
                batch.parent.mkdir()
                batch.write_text(f'/* generated by CMake */\n#include "{source}"\n')
                source = batch
            command = f"c++ -I{root}/headers -std=c++20 -O3 -Wno-restrict -include missing.h -o a.o -c {source}"
            entry = {"directory": folder, "command": command, "file": str(source)}
            (root / "compile_commands.json").write_text(json.dumps([entry]))
            check = [sys.executable, TOOLS / "check_clang.py", "--root", root, "--clang-tidy", CLANG_TIDY]
            done = subprocess.run([*check, *flags, root], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_a_field_that_is_touched_without_its_lock(self):
        status, output = self.check("int Counter::Next() { return ++count; }\n")
        self.assertEqual(status, 1, output)
        self.assertIn("writing variable 'count' requires holding mutex 'lock'", output)

    def test_a_field_that_is_touched_under_its_lock(self):
        status, output = self.check(
            "int Counter::Next() {\n  lock.Take();\n  int now = ++count;\n  lock.Give();\n  return now;\n}\n"
        )
        self.assertEqual((status, output), (0, "1 files read, 0 with findings\n"))

    def test_a_unity_build(self):
        status, output = self.check("int Counter::Next() { return ++count; }\n", unity=True)
        self.assertEqual(status, 1, output)
        self.assertIn("src/a/counter.cc:2:", output)
        self.assertIn("1 files read, 1 with findings", output)
        self.assertEqual(self.check("", "--list", "--tidy", unity=True)[1], "src/a/counter.cc\n")

    def test_the_lock_of_plug_ins(self):
        kit = (TOOLS.parent / "backends/kit/mutex.h").read_text()
        counter = kit + (
            "class Count {\n public:\n  int Next() {\n%s    return ++count_;\n  }\n"
            " private:\n  nereid::backend::Mutex mutex_;\n  int count_ NEREID_KIT_GUARDED_BY(mutex_) = 0;\n};\n"
        )
        status, output = self.check(counter % "", name="caches/a/a.cc")
        self.assertEqual(status, 1, output)
        self.assertIn("writing variable 'count_' requires holding mutex 'mutex_'", output)
        locked = counter % "    const nereid::backend::MutexLock lock(mutex_);\n"
        self.assertEqual(self.check(locked, name="caches/a/a.cc"), (0, "1 files read, 0 with findings\n"))

    def test_what_clang_refuses(self):
        status, output = self.check("int Counter::Next() { return nothing; }\n")
        self.assertEqual(status, 1, output)
        self.assertIn("undeclared identifier 'nothing'", output)

    def test_plug_ins_are_read_and_tests_are_not(self):
        self.assertEqual(self.check("", "--list", name="backends/a/a.cc")[1], "backends/a/a.cc\n")
        self.assertEqual(self.check("", "--list", name="src/a/a_test.cc")[1], "\n")
        self.assertEqual(self.check("", "--list", "--tidy", name="src/a/a_test.cc")[1], "src/a/a_test.cc\n")


if __name__ == "__main__":
    unittest.main()
