// SPDX-License-Identifier: Apache-2.0
#include "identity_backend/settings.h"

#include <gtest/gtest.h>

// The only function of the server that these tests need besides the kit's fakes.
extern "C" TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* name) {
  return std::string_view(name) == "FP32" ? TRITONSERVER_TYPE_FP32 : TRITONSERVER_TYPE_INVALID;
}

namespace nereid::identity {
namespace {

backend::Result<Settings> From(const char* json) {
  auto config = backend::ModelConfig::Parse(json);
  EXPECT_TRUE(config.ok());
  return Settings::FromConfig(config.value());
}

TEST(IdentitySettings, PairsInputsAndOutputsByIndexNotByOrder) {
  auto settings = From(R"({"max_batch_size":4,
    "input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[2]},
             {"name":"INPUT1","data_type":"TYPE_STRING","dims":[-1],"optional":true}],
    "output":[{"name":"OUTPUT1","data_type":"TYPE_STRING","dims":[-1]},
              {"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[2]}]})");
  ASSERT_TRUE(settings.ok());
  const Settings& s = settings.value();
  EXPECT_TRUE(s.supports_batching);
  ASSERT_NE(s.FindOutput("OUTPUT1"), nullptr);
  EXPECT_EQ(s.FindOutput("OUTPUT1")->input, "INPUT1");
  EXPECT_EQ(s.FindOutput("OUTPUT1")->datatype, TRITONSERVER_TYPE_BYTES);
  EXPECT_EQ(s.FindOutput("OUTPUT1")->absent_shape, std::vector<int64_t>{1});
  EXPECT_EQ(s.FindOutput("OUTPUT0")->absent_shape, std::nullopt);
  EXPECT_EQ(s.FindOutput("OTHER"), nullptr);
}

TEST(IdentitySettings, ComparesReshapedShapes) {
  EXPECT_TRUE(From(R"({"input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[4],
                                 "reshape":{"shape":[2,2]}}],
                       "output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[2,2]}]})")
                  .ok());
}

TEST(IdentitySettings, RefusesWhatDoesNotPairUp) {
  EXPECT_STREQ(From(R"({"input":[{"name":"IN","data_type":"TYPE_FP32","dims":[1]}],
                        "output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[1]}]})")
                   .TakeError()
                   .message(),
               "expected input name to follow INPUT<index> pattern, got 'IN'");
  EXPECT_STREQ(From(R"({"input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[1]}],
                        "output":[{"name":"OUTPUT0","data_type":"TYPE_INT8","dims":[1]}]})")
                   .TakeError()
                   .message(),
               "expected input and output datatype to match, got TYPE_FP32 and TYPE_INT8");
  EXPECT_STREQ(From(R"({"input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[1]}],
                        "output":[]})")
                   .TakeError()
                   .message(),
               "model configuration must have equal input/output pairs");
}

TEST(IdentitySettings, MultipliesTheDelayByTheInstance) {
  auto settings = From(R"({"parameters":{"execute_delay_ms":{"string_value":"10"},
                           "instance_wise_delay_multiplier":{"string_value":"2"}}})");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().DelayOf(0).count(), 10);
  EXPECT_EQ(settings.value().DelayOf(3).count(), 60);
}

}  // namespace
}  // namespace nereid::identity
