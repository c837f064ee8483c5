// SPDX-License-Identifier: Apache-2.0
#include "identity_backend/settings.h"

#include "backend_kit/shape.h"

namespace nereid::identity {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

constexpr std::string_view kInput = "INPUT";
constexpr std::string_view kOutput = "OUTPUT";

TRITONSERVER_DataType DataTypeOf(std::string_view config_name) {
  if (config_name.substr(0, 5) != "TYPE_") {
    return TRITONSERVER_TYPE_INVALID;
  }
  const std::string name(config_name.substr(5));
  return name == "STRING" ? TRITONSERVER_TYPE_BYTES : TRITONSERVER_StringToDataType(name.c_str());
}

Result<Pair> MakePair(const rapidjson::Value& input, const rapidjson::Value& output) {
  const std::string_view in_type = backend::StringMember(input, "data_type");
  const std::string_view out_type = backend::StringMember(output, "data_type");
  if (in_type != out_type) {
    return Error::InvalidArgument(
        StrCat("expected input and output datatype to match, got ", in_type, " and ", out_type));
  }
  std::vector<int64_t> in_shape = backend::ModelDims(input);
  const std::vector<int64_t> out_shape = backend::ModelDims(output);
  if (in_shape != out_shape) {
    return Error::InvalidArgument(StrCat("expected input and output shape to match, got ",
                                         backend::ShapeToString(in_shape), " and ",
                                         backend::ShapeToString(out_shape)));
  }
  Pair pair{.input = std::string(backend::StringMember(input, "name")),
            .output = std::string(backend::StringMember(output, "name")),
            .datatype = DataTypeOf(in_type),
            .absent_shape = std::nullopt};
  if (backend::BoolMember(input, "optional")) {
    std::replace(in_shape.begin(), in_shape.end(), int64_t{-1}, int64_t{1});
    pair.absent_shape = std::move(in_shape);
  }
  return pair;
}

Error CheckName(std::string_view name, std::string_view prefix, const char* what) {
  if (name.substr(0, prefix.size()) != prefix) {
    return Error::InvalidArgument(
        StrCat("expected ", what, " name to follow ", prefix, "<index> pattern, got '", name, "'"));
  }
  return {};
}

Result<std::vector<Pair>> PairsOf(const rapidjson::Value& config) {
  const auto inputs = backend::ArrayOf(config, "input");
  const auto outputs = backend::ArrayOf(config, "output");
  if (inputs.Size() != outputs.Size()) {
    return Error::InvalidArgument("model configuration must have equal input/output pairs");
  }
  for (rapidjson::SizeType i = 0; i < inputs.Size(); ++i) {
    NEREID_KIT_TRY(CheckName(backend::StringMember(inputs[i], "name"), kInput, "input"));
    NEREID_KIT_TRY(CheckName(backend::StringMember(outputs[i], "name"), kOutput, "output"));
  }
  std::vector<Pair> pairs;
  for (const rapidjson::Value& output : outputs) {
    const std::string_view index = backend::StringMember(output, "name").substr(kOutput.size());
    const rapidjson::Value* partner = nullptr;
    for (const rapidjson::Value& input : inputs) {
      if (backend::StringMember(input, "name").substr(kInput.size()) == index) {
        partner = &input;
      }
    }
    if (partner == nullptr) {
      return Error::InvalidArgument("expected input and output indices to match");
    }
    NEREID_KIT_ASSIGN(Pair pair, MakePair(*partner, output));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace

Result<Settings> Settings::FromConfig(const ModelConfig& config) {
  Settings settings;
  settings.supports_batching = config.max_batch_size() > 0;
  NEREID_KIT_ASSIGN(settings.pairs, PairsOf(config.json()));
  NEREID_KIT_ASSIGN(const int delay_ms, config.IntParameter("execute_delay_ms", 0));
  settings.execute_delay = std::chrono::milliseconds(std::max(delay_ms, 0));
  if (delay_ms > 0) {
    NEREID_KIT_ASSIGN(settings.instance_wise_delay_multiplier,
                      config.IntParameter("instance_wise_delay_multiplier", 0));
  }
  NEREID_KIT_ASSIGN(const int creation_sec, config.IntParameter("creation_delay_sec", 0));
  settings.creation_delay = std::chrono::seconds(std::max(creation_sec, 0));
  if (config.Parameter("enable_custom_tracing") == "true") {
    Tracing tracing;
    NEREID_KIT_ASSIGN(tracing.nested_span_count, config.IntParameter("nested_span_count", 0));
    NEREID_KIT_ASSIGN(tracing.single_activity_frequency,
                      config.IntParameter("single_activity_frequency", 1));
    tracing.single_activity_frequency = std::max(tracing.single_activity_frequency, 1);
    settings.tracing = tracing;
  }
  NEREID_KIT_ASSIGN(settings.response_parameters,
                    config.BoolParameter("response_parameters", false));
  NEREID_KIT_ASSIGN(settings.echo_parameters, config.BoolParameter("echo_parameters", false));
  return settings;
}

}  // namespace nereid::identity
