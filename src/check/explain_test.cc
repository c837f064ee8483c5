// SPDX-License-Identifier: Apache-2.0
#include "check/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "check/read_model.h"
#include "check/testing/repository_folder.h"

namespace nereid::check {
namespace {

using testing::IsSupersetOf;

// Reads the only model of a repository.
ModelView OnlyModel(const RepositoryFolder& repository) {
  const CheckOptions options{.repositories = {repository.path()}};
  const auto found = ScanRepositories(options);
  return ReadModel(found.models.begin()->second, options);
}

std::vector<std::string> Lines(const std::vector<ExplainedValue>& values) {
  std::vector<std::string> lines;
  for (const ExplainedValue& value : values) {
    lines.push_back(fmt::format("{} = {} from {}{}{}", value.field, value.value,
                                SourceName(value.source),
                                value.line == 0 ? "" : fmt::format(" line {}", value.line),
                                value.written.empty() ? "" : " instead of " + value.written));
  }
  return lines;
}

TEST(ExplainConfig, TellsFileNamesAndDefaultsApart) {
  const RepositoryFolder repository(
      {{"m/1/model.onnx", "x"},
       {"m/config.pbtxt",
        "max_batch_size: 4\n\nparameters { key: \"a\" value { string_value: \"1\" } }\n"
        "dynamic_batching { }\n"}});
  const ModelView model = OnlyModel(repository);
  EXPECT_THAT(
      Lines(ExplainConfig(model, *model.config)),
      IsSupersetOf({"name = m from names of the model's folder and files",
                    "platform = onnxruntime_onnx from names of the model's folder and files",
                    "max_batch_size = 4 from config.pbtxt line 1",
                    "version_policy.latest.num_versions = 1 from default of the server",
                    "parameters['a'].string_value = 1 from config.pbtxt line 3",
                    "dynamic_batching.preferred_batch_size[0] = 4 from default of the server"}));
}

TEST(ExplainConfig, NamesTheModelFileForWhatTheBackendAdds) {
  const RepositoryFolder repository(
      {{"m/1/model.onnx", "x"}, {"m/config.pbtxt", "max_batch_size: 4\n"}});
  const ModelView model = OnlyModel(repository);
  config::ModelConfig effective = *model.config;
  effective.max_batch_size = 2;
  effective.input = {{.name = "x", .data_type = tensor::DataType::kFp32, .dims = {-1}}};
  effective.instance_group = {
      {.name = "m_0", .kind = config::InstanceGroup::Kind::kCpu, .count = 2}};
  EXPECT_THAT(
      Lines(ExplainConfig(model, effective)),
      IsSupersetOf({"max_batch_size = 2 from model file, read by the backend line 1 instead of 4",
                    "input[0].name = x from model file, read by the backend",
                    "input[0].dims[0] = -1 from model file, read by the backend",
                    "instance_group[0].count = 2 from default of the server and the backend for "
                    "instances"}));
}

}  // namespace
}  // namespace nereid::check
