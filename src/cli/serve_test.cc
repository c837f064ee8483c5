// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/file_test.h"

namespace nereid::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PlanServeTest : public FileTest {
 protected:
  PlanServeTest() {
    Write("net.onnx");
    settings_ = {.models = {Path("net.onnx")}, .port = 0, .grpc_port = 0, .metrics_port = 0};
  }
  std::vector<std::string> Flags() {
    auto plan = PlanServe(settings_);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? plan->flags : std::vector<std::string>();
  }
  std::string WhyNot() { return std::string(PlanServe(settings_).status().message()); }

  ServeSettings settings_;
};

TEST_F(PlanServeTest, ListensOnThisMachineAlone) {
  EXPECT_THAT(Flags(), Contains("--http-address=127.0.0.1"));
  EXPECT_THAT(Flags(), Contains(StartsWith("--model-repository=")));
  EXPECT_THAT(Flags(), Contains("--http-port=0"));
}

TEST_F(PlanServeTest, FlagsOfTheUserComeLast) {
  settings_.server_flags = {"--http-port", "9123", "--log-info=true"};
  EXPECT_EQ(Flags().back(), "--log-info=true");
  EXPECT_THAT(Flags(), Not(Contains("--http-port=0")));
}

TEST_F(PlanServeTest, WatchingPollsAndStaysUpWithABrokenModel) {
  EXPECT_THAT(Flags(), Not(Contains("--model-control-mode=poll")));
  settings_.watch = true;
  EXPECT_THAT(Flags(), Contains("--model-control-mode=poll"));
  EXPECT_THAT(Flags(), Contains("--exit-on-error=false"));
}

TEST_F(PlanServeTest, OptionsForOneModelNeedOneModelFile) {
  settings_.max_batch_size = 4;
  EXPECT_EQ(WhyNot(), "");
  Write("other.onnx");
  settings_.models.push_back(Path("other.onnx"));
  EXPECT_THAT(WhyNot(), HasSubstr("--max-batch-size are for one model file"));
  settings_.max_batch_size.reset();
  settings_.name = "x";
  EXPECT_THAT(WhyNot(), HasSubstr("--name is for one model"));
}

TEST_F(PlanServeTest, MistakesNameTheOption) {
  settings_.inputs = {"x:FP33:1"};
  EXPECT_THAT(WhyNot(), StartsWith("--input 'x:FP33:1' is not a tensor"));
  settings_.inputs.clear();
  settings_.config = Path("nowhere.pbtxt");
  EXPECT_THAT(WhyNot(), HasSubstr("No such file"));
  Write("config.pbtxt", "max_batch_siez: 4");
  settings_.config = Path("config.pbtxt");
  EXPECT_THAT(WhyNot(), HasSubstr("config.pbtxt:1:1"));
}

TEST_F(PlanServeTest, ANameReplacesThatOfTheFile) {
  settings_.name = "better";
  EXPECT_NE(PlanServe(settings_)->served->Find("better"), nullptr);
}

TEST_F(PlanServeTest, ANameThatIsNoneIsRefusedAsSuch) {
  for (const char* name : {"x/y", "", "a b", "../x", "a=b"}) {
    settings_.name = name;
    EXPECT_EQ(WhyNot().rfind(fmt::format("'{}' cannot be the name of a model", name), 0), 0)
        << WhyNot();
  }
}

}  // namespace
}  // namespace nereid::cli
