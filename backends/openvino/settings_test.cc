// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace nereid::openvino {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

backend::Result<Settings> Read(std::initializer_list<std::pair<const char*, const char*>> given,
                               const std::string& more = "", const std::string& cache_dir = "") {
  std::string parameters;
  for (const auto& [key, value] : given) {
    parameters += parameters.empty() ? "" : ",";
    parameters += backend::StrCat("\"", key, "\":{\"string_value\":\"", value, "\"}");
  }
  auto config =
      backend::ModelConfig::Parse(backend::StrCat("{\"parameters\":{", parameters, "}", more, "}"));
  return Settings::FromConfig(config.value(), cache_dir);
}

TEST(OpenVinoSettings, ComputeInTheModelsPrecisionWithoutBindingThreadsByDefault) {
  auto settings = Read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().model_filename, "model.xml");
  EXPECT_THAT(
      settings.value().properties,
      UnorderedElementsAre(Pair("INFERENCE_PRECISION_HINT", "f32"),
                           Pair("PERFORMANCE_HINT", "LATENCY"), Pair("ENABLE_CPU_PINNING", "NO")));
}

TEST(OpenVinoSettings, GiveEachOfSeveralInstancesAStream) {
  auto settings = Read({}, R"(,"instance_group":[{"count":2},{"count":1}])");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().properties.at("NUM_STREAMS"), "3");
}

TEST(OpenVinoSettings, LeaveStreamsToTheHintThatTheUserGives) {
  auto settings = Read({{"PERFORMANCE_HINT", "throughput"}}, R"(,"instance_group":[{"count":2}])");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().properties.at("PERFORMANCE_HINT"), "THROUGHPUT");
  EXPECT_FALSE(settings.value().properties.contains("NUM_STREAMS"));
}

TEST(OpenVinoSettings, TakeTritonsParametersInAnyCase) {
  auto settings = Read({{"NUM_STREAMS", "Auto"},
                        {"INFERENCE_NUM_THREADS", "3"},
                        {"COMPILATION_NUM_THREADS", "2"},
                        {"SKIP_OV_DYNAMIC_BATCHSIZE", "YES"},
                        {"RESHAPE_IO_LAYERS", "yes"},
                        {"TARGET_DEVICE", "AUTO:CPU"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().properties.at("NUM_STREAMS"), "AUTO");
  EXPECT_EQ(settings.value().properties.at("INFERENCE_NUM_THREADS"), "3");
  EXPECT_EQ(settings.value().properties.at("COMPILATION_NUM_THREADS"), "2");
  EXPECT_TRUE(settings.value().fixed_batch);
  EXPECT_TRUE(settings.value().reshape_inputs);
  EXPECT_EQ(settings.value().device, "AUTO:CPU");
}

TEST(OpenVinoSettings, TakeTheNamesOfOlderVersions) {
  auto settings = Read({{"CPU_THREADS_NUM", "5"},
                        {"CPU_THROUGHPUT_STREAMS", "numa"},
                        {"ENFORCE_BF16", "YES"},
                        {"CPU_BIND_THREAD", "YES"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().properties.at("INFERENCE_NUM_THREADS"), "5");
  EXPECT_EQ(settings.value().properties.at("NUM_STREAMS"), "NUMA");
  EXPECT_EQ(settings.value().properties.at("INFERENCE_PRECISION_HINT"), "bf16");
  EXPECT_EQ(settings.value().properties.at("ENABLE_CPU_PINNING"), "YES");
}

TEST(OpenVinoSettings, TakeTritonsHintToComputeInBfloat16) {
  EXPECT_EQ(Read({{"HINT_BF16", "YES"}}).value().properties.at("INFERENCE_PRECISION_HINT"), "bf16");
}

TEST(OpenVinoSettings, TakeTheParametersOfOnnxRuntimesProvider) {
  const auto with = [](const std::string& parameters) {
    return Read({}, R"(,"optimization":{"execution_accelerators":{"cpu_execution_accelerator":[)"
                    R"({"name":"openvino","parameters":{)" +
                        parameters + "}}]}}");
  };
  auto settings = with(R"("device_type":"CPU_FP16","num_of_threads":"3","num_streams":"2",)"
                       R"("cache_dir":"/cache","layout":"NCHW")");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().device, "CPU");
  EXPECT_THAT(settings.value().properties,
              testing::IsSupersetOf({Pair("INFERENCE_PRECISION_HINT", "f16"),
                                     Pair("INFERENCE_NUM_THREADS", "3"), Pair("NUM_STREAMS", "2"),
                                     Pair("CACHE_DIR", "/cache")}));
  EXPECT_EQ(with(R"("precision":"FP16")").value().properties.at("INFERENCE_PRECISION_HINT"), "f16");
  EXPECT_THAT(with(R"("num_of_threads":"many")").TakeError().message(),
              HasSubstr("'num_of_threads' to be a non-negative number, got many"));
  EXPECT_THAT(with(R"("precision":"INT8")").TakeError().message(),
              HasSubstr("FP32, FP16 or ACCURACY"));
}

TEST(OpenVinoSettings, PreferTheModelsFolderOfCompiledModels) {
  EXPECT_EQ(Read({}, "", "/all").value().properties.at("CACHE_DIR"), "/all");
  EXPECT_EQ(Read({{"CACHE_DIR", "/own"}}, "", "/all").value().properties.at("CACHE_DIR"), "/own");
  EXPECT_FALSE(Read({{"CACHE_DIR", ""}}, "", "/all").value().properties.contains("CACHE_DIR"));
}

TEST(OpenVinoSettings, RefuseOtherValuesWithTritonsTexts) {
  const auto message = [](const char* key, const char* value) {
    auto settings = Read({{key, value}});
    return settings.ok() ? std::string() : std::string(settings.TakeError().message());
  };
  EXPECT_EQ(message("INFERENCE_NUM_THREADS", "-1"),
            "expected the parameter 'INFERENCE_NUM_THREADS' to be a non-negative number, got -1");
  EXPECT_EQ(message("NUM_STREAMS", "many"),
            "expected the parameter 'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got many");
  EXPECT_EQ(message("HINT_BF16", "NO"), "expected the parameter 'HINT_BF16' to be YES, got no");
  EXPECT_THAT(message("PERFORMANCE_HINT", "fast"), HasSubstr("'PERFORMANCE_HINT'"));
  EXPECT_THAT(message("SKIP_OV_DYNAMIC_BATCHSIZE", "maybe"), HasSubstr("either YES or NO"));
  EXPECT_THAT(message("INFERENCE_PRECISION_HINT", "f64"), HasSubstr("f32, f16 or bf16"));
}

}  // namespace
}  // namespace nereid::openvino
