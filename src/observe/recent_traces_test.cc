// SPDX-License-Identifier: Apache-2.0
#include "observe/recent_traces.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "observe/trace.h"

namespace nereid::observe {
namespace {

RecentTrace Numbered(uint64_t id) { return {.id = id}; }

TEST(RecentTraces, KeepsTheNewestFirst) {
  RecentTraces traces;
  for (uint64_t id = 1; id <= RecentTraces::kMaxTraces + 2; ++id) traces.Add(Numbered(id));
  const auto all = traces.All();
  ASSERT_EQ(all.size(), RecentTraces::kMaxTraces);
  EXPECT_EQ(all.front()->id, RecentTraces::kMaxTraces + 2);
  EXPECT_EQ(all.back()->id, 3u);
  EXPECT_NE(traces.Find(3), nullptr);
  EXPECT_EQ(traces.Find(2), nullptr);
}

TEST(RecentTraceBuilder, PutsTheClientsRequestFirst) {
  RecentTraceBuilder builder;
  builder.Describe(8, 7, "step", 1, "");
  builder.Add(8, "REQUEST_START", 20);
  builder.Add(7, "HTTP_RECV_START", 10);
  builder.Describe(7, 0, "pipeline", 2, "mine");
  const RecentTrace trace = builder.Take(7, 99);
  EXPECT_EQ(trace.unix_ms, 99);
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[0].model, "pipeline");
  EXPECT_EQ(trace.requests[0].request_id, "mine");
  EXPECT_EQ(trace.requests[0].moments.size(), 1u);
  EXPECT_EQ(trace.requests[1].parent_id, 7u);
  EXPECT_FALSE(trace.is_cut);
  EXPECT_TRUE(builder.Take(7, 0).requests.empty());
}

TEST(RecentTraceBuilder, IsBoundedAndStillKnowsTheEnd) {
  RecentTraceBuilder builder;
  builder.Describe(1, 0, std::string(1000, 'm'), 1, std::string(1000, 'i'));
  for (uint64_t ns = 0; ns < 10'000; ++ns) builder.Add(1, "INFER_RESPONSE_COMPLETE", ns);
  for (uint64_t id = 2; id < 10'000; ++id) builder.Describe(id, 1, "m", 1, "");
  for (uint64_t ns = 0; ns < 3; ++ns) builder.Add(1, "REQUEST_END", 20'000 + ns);
  const RecentTrace trace = builder.Take(1, 0);
  EXPECT_TRUE(trace.is_cut);
  ASSERT_EQ(trace.requests.size(), 1u);
  EXPECT_LE(trace.requests[0].moments.size(), RecentTraceBuilder::kMaxMoments + 1);
  EXPECT_EQ(trace.requests[0].moments.back().name, "REQUEST_END");
  EXPECT_EQ(trace.requests[0].moments.back().ns, 20'000u);
  EXPECT_EQ(trace.requests[0].model.size(), RecentTraceBuilder::kMaxText);
}

class TracingTest : public testing::Test {
 protected:
  ~TracingTest() override { std::filesystem::remove_all(folder_.path); }

  void Trace() {
    const auto trace = tracing_.Start("m", {});
    trace->Describe("m", 3, "x");
    trace->Report(TraceActivity::kRequestStart, 5);
    const auto step = trace->SpawnChild();
    step->Describe("inner", 1, "");
    step->Report(TraceActivity::kRequestStart, 6);
    step->Report(TraceActivity::kRequestEnd, 8);
    trace->ReportFrontend("HTTP_SEND_START", 9);
    trace->Report(TraceActivity::kRequestEnd, 10);
  }

  const base::TemporaryFolder folder_ = base::MakeTemporaryFolder("traces").value();
  Tracing tracing_{TraceOptions{.settings = {.levels = kTraceTimestamps, .rate = 1},
                                .file = folder_.path + "/trace"}};
};

TEST_F(TracingTest, KeepsTracesOnceItIsAsked) {
  Trace();
  EXPECT_TRUE(tracing_.recent().All().empty());
  tracing_.recent().Start();
  Trace();
  const auto all = tracing_.recent().All();
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0]->requests.size(), 2u);
  const TracedRequest& client = all[0]->requests[0];
  EXPECT_EQ(client.model, "m");
  EXPECT_EQ(client.version, 3);
  EXPECT_EQ(client.request_id, "x");
  ASSERT_EQ(client.moments.size(), 3u);
  EXPECT_EQ(client.moments[1].name, "HTTP_SEND_START");
  EXPECT_EQ(client.moments[1].ns, 9u);
  EXPECT_EQ(all[0]->requests[1].parent_id, client.id);
  EXPECT_EQ(tracing_.recent().Find(client.id), all[0]);
}

}  // namespace
}  // namespace nereid::observe
