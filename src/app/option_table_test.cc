// SPDX-License-Identifier: Apache-2.0
#include "app/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class OptionTableTest : public CommandLineTest {
 protected:
  // Returns the table with single spaces, so that the widths of columns do not matter.
  std::string Table(std::vector<std::string> arguments) {
    const service::ServerMetadata metadata{"mine", "2.73.0", {"classification", "sequence"}};
    std::string narrow;
    for (const std::string& line : OptionTable(*Parse(std::move(arguments)), metadata).Lines()) {
      for (const char c : line) {
        if (c != ' ' || !narrow.ends_with(' ')) narrow += c;
      }
      narrow += '\n';
    }
    return narrow;
  }
};

TEST_F(OptionTableTest, ShowsWhatTheServerStartedWith) {
  const std::string table =
      Table({"--model-repository=/s", "--model-control-mode=explicit", "--load-model=b",
             "--load-model=a", "--rate-limit=execution_count", "--rate-limit-resource=R:3:1",
             "--exit-timeout-secs=9", "--cache-config=local,size=64", "--strict-readiness=false"});
  for (const char* row :
       {"| server_id | mine |", "| server_version | 2.73.0 |",
        "| server_extensions | classification sequence |", "| model_repository_path[0] | /r |",
        "| model_repository_path[1] | /s |", "| model_control_mode | MODE_EXPLICIT |",
        "| startup_models_0 | a |", "| startup_models_1 | b |", "| rate_limit | EXEC_COUNT |",
        R"(| rate_limit_resource[0] | {"name":"R", "count":3 "device":1} |)",
        "| exit_timeout | 9 |", "| cache_enabled | 1 |", "| strict_readiness | 0 |"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
}

TEST_F(OptionTableTest, ShowsDefaults) {
  const std::string table = Table({});
  for (const char* row :
       {"| model_control_mode | MODE_NONE |", "| strict_model_config | 0 |", "| rate_limit | OFF |",
        "| pinned_memory_pool_byte_size | 268435456 |", "| strict_readiness | 1 |",
        "| exit_timeout | 30 |", "| cache_enabled | 0 |"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
  EXPECT_THAT(table, Not(HasSubstr("startup_models")));
  EXPECT_THAT(Table({"--model-control-mode=poll"}), HasSubstr("| MODE_POLL |"));
}

}  // namespace
}  // namespace nereid::app
