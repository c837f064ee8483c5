// SPDX-License-Identifier: Apache-2.0
// Names and texts: server/src/http_server.cc and grpc/grpc_server.cc of Triton.
#include "common/trace_change.h"

#include <cerrno>
#include <cstdlib>
#include <limits>

namespace nereid::common {

base::Status ReadTraceLevels(std::span<const std::string_view> levels,
                             observe::TraceChange& change) {
  uint32_t sum = observe::kTraceOff;
  for (const std::string_view level : levels) {
    if (level == "OFF") {
      if (levels.size() != 1) {
        return base::InvalidArgumentError("Expect only one trace level 'OFF' is specified");
      }
      change.levels.value = observe::kTraceOff;
    } else if (level == "TIMESTAMPS" || level == "TENSORS") {
      sum |= level == "TENSORS" ? observe::kTraceTensors : observe::kTraceTimestamps;
      change.levels.value = sum;
    }
  }
  return base::OkStatus();
}

base::Status ReadTraceNumber(std::string_view name, const std::string& text,
                             observe::TraceChange& change, std::string_view after_got) {
  const bool is_count = name == "trace_count";
  const std::string start = "Unable to parse '" + std::string(name) + "'";
  errno = 0;
  char* end = nullptr;
  // As std::stoi does: leading blanks and what follows the digits are ignored.
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str()) return base::InvalidArgumentError(start + ", got: " + text);
  if (errno == ERANGE || number > std::numeric_limits<int32_t>::max() ||
      number < std::numeric_limits<int32_t>::min()) {
    return base::InvalidArgumentError(
        start + ", value is out of range [ " +
        (is_count ? "-1, " + std::to_string(std::numeric_limits<int32_t>::max())
                  : "0, " + std::to_string(std::numeric_limits<uint32_t>::max())) +
        " ], got: " + text);
  }
  if (number < (is_count ? -1 : 0)) {
    return base::InvalidArgumentError(start + ". Expecting value >= " + (is_count ? "-1" : "0") +
                                      ", got:" + std::string(is_count ? after_got : "") + text);
  }
  if (is_count) {
    change.count.value = static_cast<int32_t>(number);
  } else if (name == "trace_rate") {
    change.rate.value = static_cast<uint32_t>(number);
  } else {
    change.log_frequency.value = static_cast<uint32_t>(number);
  }
  return base::OkStatus();
}

void ClearTraceSetting(std::string_view name, observe::TraceChange& change) {
  if (name == "trace_level") change.levels.is_cleared = true;
  if (name == "trace_rate") change.rate.is_cleared = true;
  if (name == "trace_count") change.count.is_cleared = true;
  if (name == "log_frequency") change.log_frequency.is_cleared = true;
}

std::vector<std::string_view> TraceLevelNames(uint32_t levels) {
  std::vector<std::string_view> names;
  if (levels == observe::kTraceOff) names.emplace_back("OFF");
  if ((levels & observe::kTraceTimestamps) != 0) names.emplace_back("TIMESTAMPS");
  if ((levels & observe::kTraceTensors) != 0) names.emplace_back("TENSORS");
  return names;
}

std::vector<std::pair<std::string, std::string>> TraceSettingTexts(const observe::TraceView& view) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"trace_rate", std::to_string(view.settings.rate)},
      {"trace_count", std::to_string(view.settings.count)}};
  const bool is_triton = view.mode == observe::TraceMode::kTriton;
  if (is_triton) {
    texts.emplace_back("log_frequency", std::to_string(view.settings.log_frequency));
    texts.emplace_back("trace_file", view.file);
  }
  texts.emplace_back("trace_mode", is_triton ? "triton" : "opentelemetry");
  texts.insert(texts.end(), view.shown.begin(), view.shown.end());
  return texts;
}

}  // namespace nereid::common
