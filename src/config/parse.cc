// SPDX-License-Identifier: Apache-2.0
#include "config/parse.h"

#include <limits>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include "config/proto_convert.h"
#include "config/text_check.h"
#include "config/text_diagnosis.h"

namespace nereid::config {
namespace {

// Real messages are less deeply nested; the limit keeps hostile text from exhausting the stack.
constexpr int kMaxNesting = 100;

// Keeps the parser's messages off standard error; text_diagnosis finds all errors again.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

base::Status TooLarge() {
  return base::InvalidArgumentError("model configuration is larger than 2147483647 bytes");
}

bool FitsInt(std::string_view text) {
  return text.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
}

// The message itself does not distinguish zero from an absent field.
const google::protobuf::FieldDescriptor* MaxBatchSizeField() {
  return inference::ModelConfig::descriptor()->FindFieldByNumber(
      inference::ModelConfig::kMaxBatchSizeFieldNumber);
}

// Whether JSON that was parsed as a configuration has the field, in one of its two spellings.
bool JsonGivesMaxBatchSize(std::string_view json) {
  google::protobuf::Struct object;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &object);
  const auto gives = [&object](const std::string& key) {
    const auto at = object.fields().find(key);
    return at != object.fields().end() && !at->second.has_null_value();
  };
  return parsed.ok() &&
         (gives(MaxBatchSizeField()->name()) || gives(MaxBatchSizeField()->json_name()));
}

}  // namespace

base::Result<ModelConfig> ParseModelConfigText(std::string_view text, std::string_view file) {
  if (!FitsInt(text)) return TooLarge();
  inference::ModelConfig message;
  FirstError first_error;
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMaxNesting);
  parser.RecordErrorsTo(&first_error);
  google::protobuf::TextFormat::ParseInfoTree places;
  parser.WriteLocationsTo(&places);
  if (parser.ParseFromString(std::string(text), &message)) {
    const std::string broken = FindBrokenText(message);
    if (broken.empty()) {
      ModelConfig config = FromProto(message);
      config.gives_max_batch_size = places.GetLocation(MaxBatchSizeField(), -1).line >= 0;
      return config;
    }
    return base::InternalError(
        fmt::format("failed to read text proto from {}\n  {}: {}: found bytes that are not UTF-8, "
                    "expected UTF-8 text",
                    file, file, broken));
  }

  // The parser decides what is accepted, but it stops at the first error.
  std::string report = fmt::format("failed to read text proto from {}", file);
  const std::vector<TextFault> faults = DiagnoseModelConfigText(text);
  for (const TextFault& fault : faults) {
    report +=
        fmt::format("\n  {}:{}:{}: {}found {}, expected {}", file, fault.line, fault.column,
                    fault.field.empty() ? "" : fault.field + ": ", fault.found, fault.expected);
  }
  if (faults.empty()) report += fmt::format("\n  {}:{}", file, first_error.text());
  return base::InternalError(std::move(report));
}

base::Result<ModelConfig> ParseModelConfigJson(std::string_view json, uint32_t config_version) {
  if (config_version != 1) {
    return base::InvalidArgumentError("model configuration version " +
                                      std::to_string(config_version) +
                                      " not supported, supported versions are: 1");
  }
  if (!FitsInt(json)) return TooLarge();
  inference::ModelConfig message;
  google::protobuf::util::JsonParseOptions options;
  options.case_insensitive_enum_parsing = true;
  options.ignore_unknown_fields = false;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &message, options);
  if (!parsed.ok()) return base::InvalidArgumentError(std::string(parsed.message()));
  if (const std::string broken = FindBrokenText(message); !broken.empty()) {
    return base::InvalidArgumentError(broken +
                                      ": found bytes that are not UTF-8, expected UTF-8 text");
  }
  ModelConfig config = FromProto(message);
  config.gives_max_batch_size = config.max_batch_size != 0 || JsonGivesMaxBatchSize(json);
  return config;
}

base::Result<ModelConfig> ParseModelConfigProto(std::string_view bytes) {
  if (!FitsInt(bytes)) return TooLarge();
  inference::ModelConfig message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return base::InvalidArgumentError("failed to parse model configuration message");
  }
  return FromProto(message);
}

}  // namespace nereid::config
