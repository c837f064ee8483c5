// SPDX-License-Identifier: Apache-2.0
#include "repository/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.h"
#include "base/thread.h"
#include "repository/local_store.h"

namespace nereid::repository {
namespace {

using testing::HasSubstr;

TEST(AGenerationFile, IsReadAsItWasWritten) {
  Generation generation{.number = 7, .wishes = {}};
  generation.wishes["resnet"] = {.is_loaded = true, .generation = 5};
  generation.wishes["old model"] = {.is_loaded = false, .generation = 7};
  const std::string text = PrintGeneration(generation);
  EXPECT_EQ(text, "generation 7\nunload 7 old model\nload 5 resnet\nend\n");
  const auto read = ParseGeneration(text);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, generation);
}

TEST(AGenerationFile, IsRefusedWhereverItIsTorn) {
  const std::string text = "generation 7\nunload 7 old model\nload 5 resnet\nend\n";
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseGeneration(text.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseGeneration(text + "load 8 m\n").ok());
}

TEST(AGenerationFile, IsRefusedForAnythingElse) {
  for (const char* text : {
           "generation 0\nend\n",
           "generation -1\nend\n",
           "generation 99999999999999999999\nend\n",
           "generation 9223372036854775808\nend\n",
           "generation 1 \nend\n",
           "generation 1\nreload 1 m\nend\n",
           "generation 1\nload m\nend\n",
           "generation 1\nload 1 \nend\n",
           "generation 1\nload 1 ../m\nend\n",
           "generation 1\nload 1 m\nunload 1 m\nend\n",
           "generation 1\n\nend\n",
           "{}\n",
       }) {
    EXPECT_FALSE(ParseGeneration(text).ok()) << text;
  }
}

class ARepository : public testing::Test {
 protected:
  ARepository() : folder_(base::MakeTemporaryFolder("generation").value()) {
    for (const char* model : {"a", "b"}) std::filesystem::create_directory(path() + "/" + model);
  }
  ~ARepository() override { std::filesystem::remove_all(folder_.path); }

  const std::string& path() const { return folder_.path; }
  std::string file() const { return path() + "/.nereid-generation"; }
  void Write(const std::string& text) const { std::ofstream(file()) << text; }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }
  base::Result<Generation> Read() const { return ReadGeneration(store_, path(), {}); }

  const LocalStore store_;

 private:
  const base::TemporaryFolder folder_;
};

TEST_F(ARepository, WithoutAFileAsksForNothing) {
  EXPECT_EQ(*Read(), Generation());
  Write("");
  EXPECT_EQ(*Read(), Generation());
}

TEST_F(ARepository, KeepsWhatWasAskedBefore) {
  ASSERT_TRUE(Ask(store_, path(), "a", true).ok());
  ASSERT_TRUE(Ask(store_, path(), "b", true).ok());
  const auto last = Ask(store_, path(), "a", false);
  ASSERT_TRUE(last.ok()) << last.status().ToString();
  EXPECT_EQ(Text(), "generation 3\nunload 3 a\nload 2 b\nend\n");
  EXPECT_EQ(*Read(), *last);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(ARepository, MakesAskingAgainAChange) {
  ASSERT_TRUE(Ask(store_, path(), "a", true).ok());
  const Generation before = *Read();
  ASSERT_TRUE(Ask(store_, path(), "a", true).ok());
  EXPECT_NE(Read()->wishes.at("a"), before.wishes.at("a"));
}

TEST_F(ARepository, LosesNothingThatSeveralWritersAsk) {
  constexpr int kWriters = 4;
  constexpr int kTimes = 10;
  {
    std::vector<base::Thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      const std::string model = std::string(1, static_cast<char>('p' + writer));
      std::filesystem::create_directory(path() + "/" + model);
      writers.emplace_back("writer", [this, model] {
        for (int i = 0; i < kTimes; ++i) {
          const auto status = Ask(store_, path(), model, i % 2 == 1).status();
          EXPECT_TRUE(status.ok()) << status.ToString();
        }
      });
    }
  }
  const Generation generation = *Read();
  EXPECT_EQ(generation.number, uint64_t{kWriters * kTimes});
  EXPECT_EQ(generation.wishes.size(), size_t{kWriters});
  for (const auto& [model, wish] : generation.wishes) EXPECT_TRUE(wish.is_loaded) << model;
}

TEST_F(ARepository, RefusesModelsThatItDoesNotHave) {
  EXPECT_THAT(Ask(store_, path(), "c", true).status().message(),
              HasSubstr("there is no model 'c' in the repository"));
  EXPECT_FALSE(Ask(store_, path(), "c", false).ok());
  EXPECT_FALSE(Ask(store_, path(), "../a", true).ok());
  EXPECT_FALSE(Ask(store_, path() + "/nowhere", "a", true).ok());
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(ARepository, LetsAModelBeUnloadedWhoseFolderIsGone) {
  ASSERT_TRUE(Ask(store_, path(), "a", true).ok());
  std::filesystem::remove(path() + "/a");
  EXPECT_TRUE(Ask(store_, path(), "a", false).ok());
}

TEST_F(ARepository, KeepsAFileThatIsNoGeneration) {
  Write("something else\n");
  EXPECT_FALSE(Ask(store_, path(), "a", true).ok());
  EXPECT_EQ(Text(), "something else\n");
}

TEST_F(ARepository, RefusesFilesThatAreTooLargeAndOtherThings) {
  Write(std::string(kMaxGenerationBytes + 1, 'x'));
  EXPECT_FALSE(Read().ok());
  std::filesystem::remove(file());
  std::filesystem::create_directory(file());
  EXPECT_FALSE(Read().ok());
  EXPECT_FALSE(Ask(store_, path(), "a", true).ok());
}

TEST_F(ARepository, LeavesTheFilesModeAsItIs) {
  ASSERT_TRUE(Ask(store_, path(), "a", true).ok());
  const auto mode = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write |
                    std::filesystem::perms::group_read;
  std::filesystem::permissions(file(), mode);
  ASSERT_TRUE(Ask(store_, path(), "a", false).ok());
  EXPECT_EQ(std::filesystem::status(file()).permissions(), mode);
}

TEST_F(ARepository, IsNotWrittenWhereItHasChangedMeanwhile) {
  Write("generation 1\nend\n");
  EXPECT_FALSE(*store_.Replace(file(), "new", std::nullopt));
  EXPECT_FALSE(*store_.Replace(file(), "new", SmallFile{"generation 2\nend\n", {}}));
  EXPECT_EQ(Text(), "generation 1\nend\n");
  EXPECT_TRUE(*store_.Replace(file(), "new", SmallFile{"generation 1\nend\n", {}}));
  EXPECT_EQ(Text(), "new");
}

}  // namespace
}  // namespace nereid::repository
