// SPDX-License-Identifier: Apache-2.0
#include "config/initial_states.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace nereid::config {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class InitialStatesTest : public testing::Test {
 protected:
  InitialStatesTest() {
    fs::create_directories(model_ + "/initial_state/more");
    Write("initial_state/first", std::string("one\ntwo\0three", 13));
    Write("initial_state/more/second", std::string("\0\1", 2));
    Write("config.pbtxt", "secret");
    std::ofstream(folder_.path + "/outside") << "secret";
  }
  ~InitialStatesTest() override { fs::remove_all(folder_.path); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(model_ + "/" + path) << text;
  }
  // A sequence model with a state for each of these files.
  static ModelConfig WithFiles(const std::vector<std::string>& files) {
    SequenceBatching batching;
    for (const std::string& file : files) {
      SequenceBatching::State state{.input_name = "STATE"};
      state.initial_state.push_back({.state_data = SequenceBatching::DataFile{file}});
      batching.state.push_back(std::move(state));
    }
    ModelConfig config{.name = "m"};
    config.scheduling_choice = std::move(batching);
    return config;
  }
  std::string WhyNot(const std::string& file) {
    return std::string(ReadInitialStates(WithFiles({file}), model_).status().message());
  }

  const base::TemporaryFolder folder_ = std::move(*base::MakeTemporaryFolder("test"));
  const std::string model_ = folder_.path + "/m";
};

TEST_F(InitialStatesTest, AreTheBytesOfTheirFiles) {
  const auto files = ReadInitialStates(WithFiles({"first", "more/second", "first"}), model_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_THAT(*files, UnorderedElementsAre(Pair("first", std::string("one\ntwo\0three", 13)),
                                           Pair("more/second", std::string("\0\1", 2))));
}

TEST_F(InitialStatesTest, AreNoneWithoutFiles) {
  EXPECT_THAT(*ReadInitialStates(ModelConfig{}, model_), IsEmpty());
  ModelConfig zeros = WithFiles({});
  SequenceBatching::State state;
  state.initial_state.push_back({.state_data = SequenceBatching::ZeroData{true}});
  std::get<SequenceBatching>(zeros.scheduling_choice).state.push_back(std::move(state));
  EXPECT_THAT(*ReadInitialStates(zeros, model_), IsEmpty());
}

TEST_F(InitialStatesTest, StayInTheFolderOfTheModel) {
  for (const char* file : {"../../outside", "../../../etc/passwd"}) {
    EXPECT_THAT(WhyNot(file), HasSubstr("of state 'STATE' in model 'm' is outside model directory"))
        << file;
  }
  fs::create_symlink(folder_.path + "/outside", model_ + "/initial_state/link");
  EXPECT_THAT(WhyNot("link"), HasSubstr("is outside model directory"));
}

TEST_F(InitialStatesTest, SayWhichFileCannotBeRead) {
  EXPECT_EQ(WhyNot("none"), "failed to open text file for read " + model_ +
                                "/initial_state/none: No such file or directory");
  EXPECT_EQ(WhyNot("more"), "failed to read file " + model_ + "/initial_state/more");
}

}  // namespace
}  // namespace nereid::config
