// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/sessions.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend_kit/testing/test_folder.h"

namespace nereid::tensorflow {
namespace {

class FakeSession : public Session {
 public:
  explicit FakeSession(int* open) : open_(*open) { ++open_; }
  ~FakeSession() override { --open_; }
  std::optional<TensorInfo> Find(const std::string&) override { return std::nullopt; }
  std::unique_ptr<Request> NewRequest(const Bound&) override { return nullptr; }

 private:
  int& open_;
};

class FakeRuntime : public Runtime {
 public:
  backend::Result<std::shared_ptr<Session>> Load(const SessionSpec&) override {
    ++loads;
    if (fails) {
      return backend::Error::Internal("no");
    }
    return std::shared_ptr<Session>(std::make_shared<FakeSession>(&open));
  }
  bool MayChangeState(const std::set<std::string>&) override { return false; }
  backend::Error LoadOperations(const std::string&) override { return {}; }

  bool fails = false;
  int loads = 0;
  int open = 0;
};

class TensorFlowSessions : public testing::Test {
 protected:
  TensorFlowSessions() {
    Write("a");
    spec_ = {
        .is_graph_def = true, .path = folder_ / "model", .tags = {}, .config = "", .init_ops = {}};
  }

  void Write(const std::string& content) {
    std::filesystem::remove(folder_ / "model");
    std::ofstream(folder_ / "model") << content;
  }
  std::shared_ptr<Session> Get(const SessionSpec& spec, const std::string& group = "") {
    auto session = sessions_.Get(runtime_, spec, group);
    return session.ok() ? session.value() : nullptr;
  }

  const backend::TestFolder own_;
  const std::filesystem::path& folder_ = own_.path();
  SessionSpec spec_;
  FakeRuntime runtime_;
  Sessions sessions_;
};

TEST_F(TensorFlowSessions, AreSharedAndGivenBackWithTheLastUser) {
  std::shared_ptr<Session> first = Get(spec_);
  std::shared_ptr<Session> second = Get(spec_);
  EXPECT_EQ(first, second);
  EXPECT_EQ(runtime_.loads, 1);
  first.reset();
  EXPECT_EQ(runtime_.open, 1);
  second.reset();
  EXPECT_EQ(runtime_.open, 0);
  EXPECT_NE(Get(spec_), nullptr);
  EXPECT_EQ(runtime_.loads, 2);
}

TEST_F(TensorFlowSessions, AreTheSameThroughALink) {
  std::filesystem::create_symlink(folder_ / "model", folder_ / "link");
  SessionSpec other = spec_;
  other.path = folder_ / "link";
  EXPECT_EQ(Get(spec_), Get(other)) << "both are still there while they are compared";
}

TEST_F(TensorFlowSessions, DifferByOptionsAndGroups) {
  const std::shared_ptr<Session> first = Get(spec_);
  SessionSpec other = spec_;
  other.config = "x";
  EXPECT_NE(Get(other), first);
  other = spec_;
  other.init_ops = {"init"};
  EXPECT_NE(Get(other), first);
  other = spec_;
  other.tags = {"serve"};
  EXPECT_NE(Get(other), first);
  EXPECT_NE(Get(spec_, "group"), first);
}

TEST_F(TensorFlowSessions, OfAReplacedFileAreOthers) {
  const std::shared_ptr<Session> first = Get(spec_);
  Write("another content");
  EXPECT_NE(Get(spec_), first);
}

TEST_F(TensorFlowSessions, ThatFailedAreTriedAgain) {
  runtime_.fails = true;
  EXPECT_EQ(Get(spec_), nullptr);
  runtime_.fails = false;
  EXPECT_NE(Get(spec_), nullptr);
}

}  // namespace
}  // namespace nereid::tensorflow
