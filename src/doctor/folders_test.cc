// SPDX-License-Identifier: Apache-2.0
#include "doctor/folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/control_group.h"
#include "base/temporary_folder.h"
#include "doctor/machine.h"
#include "doctor/units.h"

namespace nereid::doctor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

auto Is(Level level, const std::string& id, const std::string& text) {
  return AllOf(Field(&Finding::level, level), Field(&Finding::id, id),
               Field(&Finding::text, HasSubstr(text)));
}

class Repository : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path + "/" + name; }
  void Write(const std::string& name) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << "x";
  }
  static std::vector<Finding> Examine(const std::vector<std::string>& repositories) {
    Report report;
    ExamineRepositories(repositories, report);
    return report.findings;
  }

  base::TemporaryFolder folder_ = *base::MakeTemporaryFolder("doctor-folders-test");
};

TEST_F(Repository, OfReadableModelsIsFineAndCounted) {
  Write("models/one/1/model.onnx");
  Write("models/one/config.pbtxt");
  EXPECT_THAT(Examine({Path("models")}),
              ElementsAre(Is(Level::kOk, "folders.repository0", "4 files and folders")));
}

TEST_F(Repository, ThatIsMissingOrAFileIsAProblemOfItsOwnNumber) {
  Write("file");
  fs::create_directory(Path("empty"));
  EXPECT_THAT(Examine({Path("empty"), Path("missing"), Path("file"), "s3://bucket/models"}),
              ElementsAre(Is(Level::kOk, "folders.repository0", "0 files and folders"),
                          Is(Level::kProblem, "folders.repository1", "missing: "),
                          Is(Level::kProblem, "folders.repository2", "not a folder"),
                          Is(Level::kOk, "folders.repository3",
                             "s3://bucket/models is in an object store")));
}

TEST_F(Repository, WithLinksThatLeadNowhereNamesAFewOfThem) {
  Write("models/one/config.pbtxt");
  for (const char* const name : {"a", "b", "c", "d", "e"}) {
    fs::create_symlink("/no/such/target", Path(std::string("models/one/") + name));
  }
  const auto findings = Examine({Path("models")});
  ASSERT_THAT(findings, ElementsAre(Is(Level::kProblem, "folders.repository0", "5 of ")));
  EXPECT_THAT(findings[0].text, HasSubstr(", ..."));
  EXPECT_THAT(findings[0].advice, HasSubstr("links"));
}

TEST_F(Repository, WithALinkToItselfIsWalkedThroughOnce) {
  Write("models/one/config.pbtxt");
  fs::create_directory_symlink(Path("models"), Path("models/one/loop"));
  EXPECT_THAT(Examine({Path("models")}),
              ElementsAre(Is(Level::kOk, "folders.repository0", "3 files and folders")));
}

TEST_F(Repository, WithFilesThatOnlyAnotherUserMayReadIsAProblem) {
  if (geteuid() == 0) GTEST_SKIP() << "this user may read all files";
  Write("models/one/model.onnx");
  chmod(Path("models/one/model.onnx").c_str(), 0);
  EXPECT_THAT(Examine({Path("models")}),
              ElementsAre(Is(Level::kProblem, "folders.repository0", "model.onnx")));
}

TEST_F(Repository, WithAFileFromTheFutureIsNoted) {
  Write("models/one/config.pbtxt");
  fs::last_write_time(Path("models/one/config.pbtxt"),
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_THAT(Examine({Path("models")}),
              ElementsAre(Is(Level::kOk, "folders.repository0", "2 files and folders"),
                          Is(Level::kNote, "folders.repository0_time", "config.pbtxt")));
}

// The folder that TMPDIR names, for one test.
class TemporaryFolders : public Repository {
 protected:
  TemporaryFolders() : before_(std::getenv("TMPDIR") == nullptr ? "" : std::getenv("TMPDIR")) {}
  ~TemporaryFolders() override {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }
  static std::vector<Finding> ExamineWith(const std::string& folder) {
    setenv("TMPDIR", folder.c_str(), 1);
    Report report;
    ExamineTemporaryFolder(report);
    return report.findings;
  }

 private:
  const std::string before_;
};

TEST_F(TemporaryFolders, ThatAreWritableAreLeftEmpty) {
  fs::create_directory(Path("tmp"));
  EXPECT_THAT(ExamineWith(Path("tmp")),
              Contains(AllOf(Field(&Finding::id, "folders.temporary"),
                             Field(&Finding::text, HasSubstr(Path("tmp") + " is writable")))));
  EXPECT_TRUE(fs::is_empty(Path("tmp")));
}

TEST_F(TemporaryFolders, ThatAreMissingOrFilesAreAProblem) {
  Write("file");
  for (const char* const name : {"missing", "file"}) {
    EXPECT_THAT(ExamineWith(Path(name)),
                ElementsAre(Is(Level::kProblem, "folders.temporary", "cannot be written to")))
        << name;
  }
}

TEST(Bytes, AreShownWithTwoToFourDigitsOfTheLargestUnit) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1024), "1.0 KiB");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(102'399), "100 KiB");
  EXPECT_EQ(BytesText((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(BytesText(uint64_t{640} << 20), "640 MiB");
  EXPECT_EQ(BytesText(uint64_t{5} << 50), "5120 TiB");
}

// A machine on which control groups alone decide.
class Quotas : public Repository {
 protected:
  std::vector<Finding> ExamineQuota(const std::string& cpu_max) const {
    for (const char* const name : {"proc/self", "sys/fs/cgroup/box"}) {
      fs::create_directories(Path(name));
    }
    std::ofstream(Path("proc/self/cgroup")) << "0::/box\n";
    std::ofstream(Path("sys/fs/cgroup/box/cpu.max")) << cpu_max << "\n";
    Report report;
    ExamineLimits(base::SystemFiles(folder_.path), report);
    std::erase_if(report.findings, [](const Finding& one) { return one.id != "limits.cpu"; });
    return report.findings;
  }
};

TEST_F(Quotas, AreShownAsCores) {
  EXPECT_THAT(ExamineQuota("50000 100000"),
              ElementsAre(Is(Level::kNote, "limits.cpu", " 0.5 cores' time")));
  EXPECT_THAT(ExamineQuota("12800000 100000"),
              ElementsAre(Is(Level::kNote, "limits.cpu", " 128 cores' time")));
}

TEST_F(Quotas, ThatMakeNoSenseAreNone) {
  for (const char* const text : {"max 100000", "", "max", "-1 100000", "nonsense", "100000 0"}) {
    EXPECT_THAT(ExamineQuota(text), ElementsAre(Is(Level::kOk, "limits.cpu", "no quota"))) << text;
  }
}

}  // namespace
}  // namespace nereid::doctor
