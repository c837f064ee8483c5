// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_runs.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread.h"
#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

struct Entry final : EnsembleRuns::Entry {
  void Reference() override { ++references; }
  void Unreference() override { --references; }
  void Cancel() override {
    EXPECT_EQ(1, references) << "it is kept meanwhile";
    ++cancelled;
  }

  int references = 0;
  int cancelled = 0;
};

class EnsembleRunsTest : public testing::Test {
 protected:
  core::RequestPtr Request() { return core::Request::Create(sink_); }

  core::FakeSink sink_;
  EnsembleRuns runs_;
};

TEST_F(EnsembleRunsTest, CancelsTheEntryOfARequestAndNoOther) {
  // More entries than buckets, so that some share one.
  std::array<Entry, 200> entries;
  std::vector<core::RequestPtr> requests;
  for (Entry& entry : entries) runs_.Add(entry, *requests.emplace_back(Request()));
  for (size_t i = 0; i < entries.size(); i += 2) runs_.Remove(entries[i]);
  for (const core::RequestPtr& request : requests) runs_.Cancel(*request);
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(i % 2, static_cast<size_t>(entries[i].cancelled)) << i;
    EXPECT_EQ(0, entries[i].references);
  }
}

TEST_F(EnsembleRunsTest, GivesUpWaitingAtTheDeadline) {
  const core::RequestPtr request = Request();
  Entry entry;
  EXPECT_TRUE(runs_.WaitUntilEmpty(base::TimePoint()));
  runs_.Add(entry, *request);
  EXPECT_FALSE(runs_.WaitUntilEmpty(base::TimePoint()));
}

TEST_F(EnsembleRunsTest, WaitsForTheLastToLeave) {
  std::array<Entry, 8> entries;
  std::vector<core::RequestPtr> requests;
  for (Entry& entry : entries) runs_.Add(entry, *requests.emplace_back(Request()));
  base::Thread leaving("leaving", [&] {
    for (Entry& entry : entries) runs_.Remove(entry);
  });
  EXPECT_TRUE(runs_.WaitUntilEmpty(base::TimePoint::max()));
  leaving.Join();
}

}  // namespace
}  // namespace nereid::schedule
