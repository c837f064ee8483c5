// SPDX-License-Identifier: Apache-2.0
#include "python_backend/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "backend_kit/testing/fake_host.h"

namespace nereid::python {
namespace {

namespace fs = std::filesystem;

// Gives a variable of this process another value for the object's lifetime.
class WithVariable {
 public:
  WithVariable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old;
    if (value) {
      setenv(name, value->c_str(), 1);
    } else {
      unsetenv(name);
    }
  }
  ~WithVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* const name_;
  std::optional<std::string> old_;
};

class EnvironmentTest : public testing::Test {
 protected:
  EnvironmentTest() {
    std::string path = (fs::temp_directory_path() / "environment-test-XXXXXX").string();
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    root_ = path;
  }
  ~EnvironmentTest() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text, bool is_program = false) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    chmod(path.c_str(), is_program ? 0755 : 0644);
  }
  void WriteProgram(const fs::path& path) { Write(path, "#!/bin/sh\n", true); }
  // The folder of an execution environment with an interpreter.
  fs::path MakeFolder(const std::string& name) {
    WriteProgram(root_ / name / "bin/python3");
    return root_ / name;
  }
  // Packs a folder with the interpreter that also unpacks it.
  fs::path MakeArchive(const fs::path& folder) {
    const fs::path archive = root_ / "archive.tar.gz";
    const std::string command = "'" NEREID_TEST_PYTHON
                                "' -c \"import tarfile; "
                                "tarfile.open('" +
                                archive.string() + "', 'w:gz').add('" + folder.string() +
                                "', '.')\"";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return archive;
  }
  Environments Make(const std::string& interpreter = NEREID_TEST_PYTHON) {
    return Environments(supervisor_, NEREID_TEST_WORKER "/nereid_python", interpreter);
  }
  std::string ErrorOf(Environments& environments, const std::string& path) {
    auto environment = environments.Get(path, (root_ / "model").string());
    return environment.ok() ? "" : environment.TakeError().message();
  }

  Supervisor supervisor_;
  fs::path root_;
};

TEST_F(EnvironmentTest, IsThatOfTheServerWhereAModelNamesNone) {
  WriteProgram(root_ / "python");
  Environments environments = Make((root_ / "python").string());
  auto environment = environments.Get("", "/models/m");
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment.value().interpreter, root_ / "python");
  for (const std::string& variable : CurrentEnvironment()) {
    const std::string key = variable.substr(0, variable.find('='));
    if (key == "ORT_DISABLE_TELEMETRY") continue;
    EXPECT_THAT(environment.value().variables, testing::Contains(variable));
  }
  EXPECT_EQ(environment.value().folder, nullptr);
}

TEST_F(EnvironmentTest, KeepsLibrariesFromWritingAndSendingByThemselves) {
  const WithVariable none("PYTHONDONTWRITEBYTECODE", std::nullopt);
  const WithVariable nowhere("PYTHONPYCACHEPREFIX", std::nullopt);
  const WithVariable telemetry("ORT_DISABLE_TELEMETRY", "0");
  Environments environments = Make();
  for (const std::string& path : {std::string(), MakeFolder("env").string()}) {
    auto environment = environments.Get(path, "/models/m");
    ASSERT_TRUE(environment.ok());
    EXPECT_EQ(Variable(environment.value().variables, "PYTHONDONTWRITEBYTECODE"), "1");
    EXPECT_EQ(Variable(environment.value().variables, "ORT_DISABLE_TELEMETRY"), "1");
  }
}

TEST_F(EnvironmentTest, LeavesItToTheUserWhereAndWhetherPythonKeepsCompiledModules) {
  Environments environments = Make();
  const WithVariable none("PYTHONDONTWRITEBYTECODE", std::nullopt);
  {
    const WithVariable folder("PYTHONPYCACHEPREFIX", "/cache");
    auto environment = environments.Get("", "/models/m");
    ASSERT_TRUE(environment.ok());
    EXPECT_FALSE(HasVariable(environment.value().variables, "PYTHONDONTWRITEBYTECODE"));
  }
  const WithVariable permission("PYTHONDONTWRITEBYTECODE", "");
  auto environment = environments.Get("", "/models/m");
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(Variable(environment.value().variables, "PYTHONDONTWRITEBYTECODE"), "");
}

TEST_F(EnvironmentTest, HasTheFirstInterpreterInThePath) {
  Write(root_ / "a/python3", "no program");
  WriteProgram(root_ / "b/python3");
  WriteProgram(root_ / "c/python3");
  const WithVariable path("PATH", "relative:" + (root_ / "a").string() + ":" +
                                      (root_ / "b").string() + ":" + (root_ / "c").string());
  Environments environments = Make("");
  auto environment = environments.Get("", "/models/m");
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment.value().interpreter, root_ / "b/python3");
}

TEST_F(EnvironmentTest, NeedsAnInterpreterThatIsAProgram) {
  const WithVariable path("PATH", root_.string());
  Environments none = Make("");
  EXPECT_EQ(ErrorOf(none, ""), "no Python interpreter found: there is no python3 in PATH");
  Write(root_ / "notes", "no program");
  Environments wrong = Make((root_ / "notes").string());
  EXPECT_EQ(ErrorOf(wrong, ""),
            "python-runtime '" + (root_ / "notes").string() + "' is not a program");
}

TEST_F(EnvironmentTest, OfAFolderHasItsInterpreterAndTheVariablesThatItsActivationSets) {
  const fs::path conda = MakeFolder("conda");
  const WithVariable home("PYTHONHOME", "/usr");
  Environments environments = Make();
  auto environment = environments.Get(conda.string(), "/models/m");
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment.value().interpreter, conda / "bin/python3");
  const std::vector<std::string>& variables = environment.value().variables;
  EXPECT_EQ(Variable(variables, "CONDA_PREFIX"), conda.string());
  EXPECT_TRUE(Variable(variables, "PATH").starts_with((conda / "bin").string() + ":"));
  // PYTHONHOME of the server would mislead the other interpreter.
  EXPECT_EQ(Variable(variables, "PYTHONHOME"), "");
}

TEST_F(EnvironmentTest, OfAVirtualEnvironmentSaysSo) {
  const fs::path folder = MakeFolder("venv");
  Write(folder / "pyvenv.cfg", "");
  Environments environments = Make();
  auto environment = environments.Get(folder.string(), "/models/m");
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(Variable(environment.value().variables, "VIRTUAL_ENV"), folder.string());
}

TEST_F(EnvironmentTest, OfAFolderWithoutAnInterpreterIsRefused) {
  fs::create_directories(root_ / "empty/bin");
  Environments environments = Make();
  EXPECT_EQ(ErrorOf(environments, (root_ / "empty").string()),
            "Path " + (root_ / "empty").string() +
                "/bin/python3 does not exist. The Python environment should contain an "
                "interpreter.");
}

TEST_F(EnvironmentTest, InTheModelsFolderIsFoundThere) {
  MakeFolder("model/env");
  Environments environments = Make();
  auto environment = environments.Get("$$TRITON_MODEL_DIRECTORY/env", (root_ / "model").string());
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment.value().interpreter, root_ / "model/env/bin/python3");
}

TEST_F(EnvironmentTest, MustNotLeadOutOfTheModelsFolder) {
  MakeFolder("other");
  fs::create_directories(root_ / "model");
  fs::create_directory_symlink(root_ / "other", root_ / "model/link");
  Environments environments = Make();
  for (const std::string path :
       {"$$TRITON_MODEL_DIRECTORY/../other", "$$TRITON_MODEL_DIRECTORY/link"}) {
    EXPECT_EQ(ErrorOf(environments, path),
              "EXECUTION_ENV_PATH '" + path + "' leads outside the model directory");
  }
}

TEST_F(EnvironmentTest, ThatIsNotThereIsNamed) {
  Environments environments = Make();
  const std::string path = (root_ / "nothing").string();
  EXPECT_EQ(ErrorOf(environments, path), "Failed to get the canonical path for " + path + ".");
}

TEST_F(EnvironmentTest, OfAnArchiveIsUnpackedOnceForAllAndGoesWithTheLast) {
  const fs::path archive = MakeArchive(MakeFolder("packed"));
  Environments environments = Make();
  std::string folder;
  {
    auto first = environments.Get(archive.string(), "/models/m");
    ASSERT_TRUE(first.ok()) << first.TakeError().message();
    auto second = environments.Get(archive.string(), "/models/n");
    ASSERT_TRUE(second.ok());
    folder = first.value().folder->path();
    EXPECT_EQ(second.value().folder, first.value().folder);
    EXPECT_EQ(first.value().archive, archive.string());
    EXPECT_EQ(first.value().interpreter, folder + "/bin/python3");
    EXPECT_TRUE(fs::exists(first.value().interpreter));
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(EnvironmentTest, OfAnArchiveThatHasChangedIsUnpackedAgain) {
  const fs::path folder = MakeFolder("packed");
  const fs::path archive = MakeArchive(folder);
  Environments environments = Make();
  auto old = environments.Get(archive.string(), "/models/m");
  ASSERT_TRUE(old.ok());
  Write(folder / "more", std::string(1000, 'x'));
  MakeArchive(folder);
  auto now = environments.Get(archive.string(), "/models/m");
  ASSERT_TRUE(now.ok());
  EXPECT_NE(now.value().folder, old.value().folder);
  EXPECT_TRUE(fs::exists(now.value().folder->path() + "/more"));
}

TEST_F(EnvironmentTest, OfSomethingThatIsNoArchiveIsRefusedWithoutNamingTheServersFolder) {
  Write(root_ / "archive.tar.gz", "this is no archive");
  Environments environments = Make();
  const std::string error = ErrorOf(environments, (root_ / "archive.tar.gz").string());
  EXPECT_TRUE(error.starts_with("failed to unpack the Python environment '")) << error;
  EXPECT_EQ(error.find("nereid-tmp"), std::string::npos) << error;
}

}  // namespace
}  // namespace nereid::python
