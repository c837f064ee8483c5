// SPDX-License-Identifier: Apache-2.0
#include "app/budget_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

using testing::HasSubstr;

class BudgetFlagsTest : public CommandLineTest {
 protected:
  static std::string Given(const Flag& flag, std::string_view value) {
    return "--" + std::string(flag.name) + "=" + std::string(value);
  }
};

TEST_F(BudgetFlagsTest, RefuseWhatIsNoNumberAndNameTheFlag) {
  for (const Flag& flag : BudgetFlags()) {
    for (const char* const value : {"-1", "", "many", "1.5", "1e3", "0x10", "7 ", "1k",
                                    "9223372036854775808", "99999999999999999999"}) {
      EXPECT_THAT(WhyNot({Given(flag, value)}), HasSubstr(flag.name)) << value;
    }
  }
}

TEST_F(BudgetFlagsTest, TakeZeroOnlyWhereItMeansSomething) {
  const std::set<std::string_view> at_least_one = {
      "max-requests-per-connection", "max-stream-backlog",
      "write-timeout-secs",          "max-header-bytes",
      "max-resets-per-second",       "max-control-frames-per-second",
      "max-load-instances"};
  for (const Flag& flag : BudgetFlags()) {
    EXPECT_EQ(Parse({Given(flag, "0")}).ok(), !at_least_one.contains(flag.name)) << flag.name;
    EXPECT_TRUE(Parse({Given(flag, "2000")}).ok()) << flag.name;
  }
}

TEST_F(BudgetFlagsTest, EachChangeOneSettingAndNoOther) {
  const Options before = *Parse({});
  const auto limits = [](const Options& options) {
    const auto& budgets = options.engine.budgets;
    const auto& limits = options.limits;
    return std::vector<uint64_t>{budgets.connections,
                                 budgets.connections_per_address,
                                 budgets.requests,
                                 budgets.requests_per_model,
                                 budgets.request_bytes,
                                 budgets.unsent_bytes,
                                 budgets.load_bytes,
                                 budgets.load_instances,
                                 budgets.load_warm_up_runs,
                                 budgets.resets_per_second,
                                 budgets.control_frames_per_second,
                                 static_cast<uint64_t>(limits.requests),
                                 static_cast<uint64_t>(limits.stream_backlog_bytes),
                                 static_cast<uint64_t>(limits.min_read_rate),
                                 static_cast<uint64_t>(limits.write_timeout.count()),
                                 static_cast<uint64_t>(limits.header_bytes)};
  };
  const std::vector<uint64_t> usual = limits(before);
  std::set<size_t> changed;
  for (const Flag& flag : BudgetFlags()) {
    const std::vector<uint64_t> now = limits(*Parse({Given(flag, "4321")}));
    size_t changes = 0;
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i] == usual[i]) continue;
      EXPECT_EQ(now[i], 4321u) << flag.name;
      changed.insert(i);
      ++changes;
    }
    EXPECT_EQ(changes, 1u) << flag.name;
  }
  EXPECT_EQ(changed.size(), usual.size());
}

TEST_F(BudgetFlagsTest, GivenTwiceMeanTheLastOne) {
  const auto options = Parse({"--max-requests=5", "--max-requests=6"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->engine.budgets.requests, 6u);
}

}  // namespace
}  // namespace nereid::app
