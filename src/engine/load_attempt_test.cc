// SPDX-License-Identifier: Apache-2.0
#include "engine/load_attempt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

class AnAttempt : public testing::Test {
 protected:
  AnAttempt() {
    attempt_.SetWork({.wanted = {1, 2, 3}, .loading = {1, 2, 3}, .repeating = {}, .changing = {3}});
  }

  std::unique_ptr<LoadedVersion> Made() {
    return std::make_unique<LoadedVersion>(attempt_.job().source, nullptr);
  }

  Events events_;
  LoadAttempt attempt_{
      {.source = std::make_shared<repository::ModelSource>(MakeSource(PlainConfig("m"), events_)),
       .parts = {}}};
};

TEST_F(AnAttempt, IsThroughWithTheResultOfItsLastVersion) {
  EXPECT_EQ(attempt_.id(), repository::ModelId("m"));
  EXPECT_FALSE(attempt_.AddResult(2, base::InternalError("broken"), nullptr));
  EXPECT_FALSE(attempt_.AddResult(1, base::OkStatus(), Made()));
  EXPECT_TRUE(attempt_.AddResult(3, base::OkStatus(), nullptr));
  const LoadAttempt::Results results = attempt_.TakeResults();
  EXPECT_EQ(results.loaded.size(), 1u);
  EXPECT_TRUE(results.loaded.contains(1));
  EXPECT_EQ(results.failed.at(2), "Internal: broken");
  EXPECT_EQ(results.changed, 1u);
}

TEST_F(AnAttempt, HasExactlyOneLastResultFromManyThreads) {
  std::set<int64_t> versions;
  for (int64_t version = 1; version <= 64; ++version) versions.insert(version);
  attempt_.SetWork({.wanted = versions, .loading = versions, .repeating = {}, .changing = {}});
  std::atomic<int> last = 0;
  std::vector<std::future<void>> threads;
  for (int64_t start = 1; start <= 4; ++start) {
    threads.push_back(std::async(std::launch::async, [&, start] {
      for (int64_t version = start; version <= 64; version += 4) {
        const base::Status status =
            version % 3 == 0 ? base::InternalError("broken") : base::OkStatus();
        last += attempt_.AddResult(version, status, status.ok() ? Made() : nullptr);
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_EQ(last, 1);
  EXPECT_EQ(attempt_.TakeResults().failed.size(), 21u);
}

TEST_F(AnAttempt, ToMakeAVersionIsRepeatedAsOftenAsIsAllowed) {
  FakeFactory factory(events_);
  factory.Fail("m:1", "broken", 2);
  EXPECT_FALSE(MakeVersion(factory, attempt_, 1, 0).ok());
  EXPECT_TRUE(MakeVersion(factory, attempt_, 1, 1).ok());
  EXPECT_EQ(events_.Count("load m:1"), 3u);
  attempt_.Cancel();
  EXPECT_EQ(MakeVersion(factory, attempt_, 1, 5).status().code(), base::StatusCode::kCancelled);
  EXPECT_EQ(events_.Count("load m:1"), 3u);
}

TEST_F(AnAttempt, IsWantedUntilItIsGivenUp) {
  EXPECT_TRUE(attempt_.CheckWanted().ok());
  attempt_.Cancel();
  attempt_.Cancel();
  EXPECT_EQ(attempt_.CheckWanted().code(), base::StatusCode::kCancelled);
}

TEST_F(AnAttempt, GivesItsStatusToWhoeverWaits) {
  std::future<base::Status> early =
      std::async(std::launch::async, [this] { return attempt_.Wait(); });
  attempt_.Finish(base::InternalError("broken"));
  EXPECT_EQ(early.get().message(), "broken");
  EXPECT_EQ(attempt_.Wait().message(), "broken");
}

}  // namespace
}  // namespace nereid::engine
