// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_sampler.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace nereid::observe {
namespace {

class TraceSamplerTest : public testing::Test {
 protected:
  ~TraceSamplerTest() override { std::filesystem::remove_all(folder_.path); }

  std::unique_ptr<TraceSampler> Make(TraceSettings settings, TraceMode mode = TraceMode::kTriton) {
    settings.levels = kTraceTimestamps;
    return std::make_unique<TraceSampler>(settings, mode, output_);
  }
  // Returns a character for each request: whether it is sampled.
  static std::string Taken(TraceSampler& sampler, int requests) {
    std::string taken;
    for (int i = 0; i < requests; ++i) taken += sampler.Sample(false) ? 'x' : '.';
    return taken;
  }
  // Returns the content of a file once everything is written; "-" if the file does not exist.
  std::string Written(const std::string& suffix = "") {
    output_.reset();
    std::ifstream file(path_ + suffix);
    if (!file) return "-";
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
  }

  const base::TemporaryFolder folder_ = std::move(*base::MakeTemporaryFolder("test"));
  const std::string path_ = folder_.path + "/trace";
  std::shared_ptr<TraceOutput> output_ = std::make_shared<TraceOutput>(path_);
};

TEST_F(TraceSamplerTest, TakesOneOfEachSoMany) {
  EXPECT_EQ(Taken(*Make({.rate = 1}), 3), "xxx");
  EXPECT_EQ(Taken(*Make({.rate = 4}), 9), "...x...x.");
}

TEST_F(TraceSamplerTest, StopsWhenTheCountIsUsedUp) {
  const auto sampler = Make({.rate = 2, .count = 2});
  EXPECT_EQ(Taken(*sampler, 8), ".x.x....");
  EXPECT_EQ(sampler->settings().count, 0);
  EXPECT_EQ(Taken(*Make({.rate = 1, .count = 0}), 3), "...");
}

TEST_F(TraceSamplerTest, TakesWhatItsClientTracesBesides) {
  const auto sampler = Make({.rate = 3, .count = 1}, TraceMode::kOpenTelemetry);
  EXPECT_TRUE(sampler->Sample(true));
  EXPECT_EQ(sampler->settings().count, 1);
  EXPECT_EQ(Taken(*sampler, 5), ".x...");
  EXPECT_TRUE(sampler->Sample(true));
  EXPECT_FALSE(Make({.rate = 0}, TraceMode::kOpenTelemetry)->Sample(false));
  EXPECT_TRUE(Make({.rate = 0}, TraceMode::kOpenTelemetry)->Sample(true));
}

TEST_F(TraceSamplerTest, SaysWhyNothingIsTaken) {
  EXPECT_STREQ(Make({.rate = 1})->WhyInvalid(), "");
  EXPECT_STREQ(Make({.rate = 0})->WhyInvalid(), "sample rate must be non-zero");
  EXPECT_FALSE(Make({.rate = 0})->is_on());
  const TraceSampler off({}, TraceMode::kTriton, output_);
  EXPECT_STREQ(off.WhyInvalid(), "tracing is disabled");
  EXPECT_FALSE(off.is_on());
  const auto nowhere = std::make_shared<TraceOutput>("");
  const TraceSettings settings{.levels = kTraceTimestamps};
  const TraceSampler no_file(settings, TraceMode::kTriton, nowhere);
  EXPECT_STREQ(no_file.WhyInvalid(), "trace file name is not given");
  EXPECT_FALSE(no_file.is_on());
  EXPECT_TRUE(TraceSampler(settings, TraceMode::kOpenTelemetry, nowhere).is_on());
}

TEST_F(TraceSamplerTest, WritesTheLastCountedTracesAsAFileOfTheirOwn) {
  {
    const auto sampler = Make({.rate = 1, .count = 2});
    EXPECT_EQ(Taken(*sampler, 2), "xx");
    sampler->Collect("1");
    sampler->Collect("2");
  }
  EXPECT_EQ(Written(".0"), "[1,2]");
  EXPECT_EQ(Written(), "-");
}

TEST_F(TraceSamplerTest, WritesAFileForSoManyTraces) {
  {
    const auto sampler = Make({.rate = 1, .log_frequency = 2});
    for (const char* records : {"1", "2", "3"}) sampler->Collect(records);
  }
  EXPECT_EQ(Written(".0"), "[1,2]");
  EXPECT_EQ(Written(".1"), "[3]");
}

TEST_F(TraceSamplerTest, GathersUncountedTracesInOneFile) {
  {
    const auto first = Make({.rate = 1});
    first->Collect("1");
    first->Collect("");
    first->Collect("2");
  }
  {
    const auto changed = Make({.rate = 2});
    changed->Collect("3");
  }
  EXPECT_EQ(Written(), "[1,2,3]");
}

TEST_F(TraceSamplerTest, WritesNoFileForNothing) {
  {
    Make({.rate = 1})->Collect("");
  }
  EXPECT_EQ(Written(), "-");
}

}  // namespace
}  // namespace nereid::observe
