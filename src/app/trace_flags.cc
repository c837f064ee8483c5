// SPDX-License-Identifier: Apache-2.0
// Names, defaults and texts follow Triton's server/src/command_line_parser.cc.
#include "app/trace_flags.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/core.h>

#include "app/flag_values.h"
#include "http_client/url.h"

namespace nereid::app {
namespace {

using base::InvalidArgumentError;
using base::OkStatus;
using base::Result;
using base::Status;
using observe::TraceMode;

constexpr int64_t kUintMax = std::numeric_limits<uint32_t>::max();
constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

Result<uint32_t> ReadLevel(std::string_view text) {
  const std::string level = Lower(text);
  if (level == "false" || level == "off") return uint32_t{observe::kTraceOff};
  // MIN and MAX are old names with the same meaning.
  if (level == "true" || level == "on" || level == "min" || level == "max" ||
      level == "timestamps") {
    return uint32_t{observe::kTraceTimestamps};
  }
  if (level == "tensors") return uint32_t{observe::kTraceTensors};
  return InvalidArgumentError(fmt::format(
      "invalid value for trace level option: {}, expected OFF, TIMESTAMPS or TENSORS", level));
}

Result<TraceMode> ReadMode(std::string_view text) {
  const std::string mode = Lower(text);
  if (mode == "triton") return TraceMode::kTriton;
  if (mode == "opentelemetry") return TraceMode::kOpenTelemetry;
  return InvalidArgumentError(
      fmt::format("invalid value for trace mode option: {}. Available options are \"triton\" and "
                  "\"opentelemetry\"",
                  mode));
}

Status AddLevel(std::string_view text, TraceFlags& flags) {
  NEREID_ASSIGN_OR_RETURN(const uint32_t level, ReadLevel(text));
  if (level == observe::kTraceOff) flags.is_off = true;
  flags.levels = flags.levels.value_or(observe::kTraceOff) | level;
  return OkStatus();
}

void WarnDeprecated(Options& options, std::string_view old, std::string_view now) {
  options.warnings.push_back(fmt::format(
      "Warning: '--{}' has been deprecated and will be removed in future releases. Please use "
      "'--trace-config {} instead.",
      old, now));
}

// New flags override old ones of the same meaning, with a warning.
void WarnOverridden(Options& options, bool is_overridden, std::string_view old,
                    std::string_view now) {
  if (!is_overridden) return;
  options.warnings.push_back(fmt::format(
      "Warning: Overriding deprecated '--{}' in favor of provided {} in --trace-config!", old,
      now));
}

Status BadOption(std::string_view option, const Status& status) {
  return InvalidArgumentError(fmt::format("Bad option: \"{}\".\n{}", option, status.message()));
}

Status ApplyServer(Options& options) {
  TraceFlags& flags = options.trace;
  observe::TraceOptions& trace = options.engine.trace;
  for (const auto& [name, value] : flags.server) {
    Status status;
    if (name == "rate") {
      WarnOverridden(options, flags.rate.has_value(), "trace-rate", "rate value");
      const auto rate = ReadInteger(value, 0, kIntMax);
      if (rate.ok()) trace.settings.rate = static_cast<uint32_t>(*rate);
      status = rate.status();
    } else if (name == "level") {
      WarnOverridden(options, trace.settings.levels != observe::kTraceOff && flags.levels,
                     "trace-level", "level");
      status = AddLevel(value, flags);
    } else if (name == "mode") {
      const auto mode = ReadMode(value);
      if (mode.ok()) trace.mode = *mode;
      status = mode.status();
    } else if (name == "count") {
      WarnOverridden(options, flags.count.has_value(), "trace-count", "count");
      const auto count = ReadInteger(value, -1, kIntMax);
      if (count.ok()) trace.settings.count = static_cast<int32_t>(*count);
      status = count.status();
    }
    if (!status.ok()) return BadOption("--trace-config " + name, status);
  }
  if (flags.levels) trace.settings.levels = flags.is_off ? 0 : *flags.levels;
  return OkStatus();
}

Status ApplyTriton(Options& options) {
  const TraceFlags& flags = options.trace;
  observe::TraceOptions& trace = options.engine.trace;
  for (const auto& [name, value] : flags.triton) {
    if (name == "file") {
      WarnOverridden(options, flags.file.has_value(), "trace-file", "file");
      trace.file = value;
    } else if (name == "log-frequency") {
      WarnOverridden(options, flags.log_frequency.has_value(), "trace-log-frequency",
                     "log-frequency");
      const auto frequency = ReadInteger(value, 0, kIntMax);
      if (!frequency.ok()) return BadOption("--trace-config triton," + name, frequency.status());
      trace.settings.log_frequency = static_cast<uint32_t>(*frequency);
    } else {
      trace.shown.emplace_back(name, value);
    }
  }
  return OkStatus();
}

// A setting of the span processor: from the flags, or else from the environment.
struct ProcessorSetting {
  const char* name;
  const char* variable;
  const char* fallback;
};
constexpr ProcessorSetting kProcessorSettings[] = {
    {"bsp_max_export_batch_size", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "512"},
    {"bsp_schedule_delay", "OTEL_BSP_SCHEDULE_DELAY", "5000"},
    {"bsp_max_queue_size", "OTEL_BSP_MAX_QUEUE_SIZE", "2048"},
};

void ApplyProcessor(std::string_view name, uint32_t value, observe::OtlpOptions& otlp) {
  if (name == "bsp_max_queue_size") {
    otlp.max_queue_size = value;
  } else if (name == "bsp_schedule_delay") {
    otlp.schedule_delay = std::chrono::milliseconds(value);
  } else {
    otlp.max_export_batch_size = std::max(value, 1u);
  }
}

Status ApplyOpenTelemetry(Options& options) {
  TraceFlags& flags = options.trace;
  observe::TraceOptions& trace = options.engine.trace;
  if (flags.file) {
    options.warnings.emplace_back(
        "Warning: '--trace-file' is deprecated and will be ignored with opentelemetry tracing "
        "mode.");
  }
  if (flags.log_frequency) {
    options.warnings.emplace_back(
        "Warning: '--trace-log-frequency' is deprecated and will be ignored with opentelemetry "
        "tracing mode.");
  }
  for (const auto& [name, value] : flags.opentelemetry) {
    if (name == "url") trace.otlp.url = value;
    if (name == "resource") {
      const auto pair = ReadPair(value, '=');
      if (!pair.ok()) return BadOption("--trace-config opentelemetry,resource", pair.status());
      trace.otlp.resource.push_back(*pair);
    }
    trace.shown.emplace_back(name, value);
  }
  for (const ProcessorSetting& setting : kProcessorSettings) {
    const auto given = std::ranges::find(flags.opentelemetry, setting.name,
                                         &decltype(trace.shown)::value_type::first);
    const bool is_given = given != flags.opentelemetry.end();
    const char* const variable = std::getenv(setting.variable);
    const std::string text = is_given              ? given->second
                             : variable != nullptr ? variable
                                                   : setting.fallback;
    const auto value = ReadInteger(text, 0, kUintMax);
    if (!value.ok()) {
      return BadOption(is_given ? fmt::format("--trace-config opentelemetry,{}", setting.name)
                                : std::string(setting.variable),
                       value.status());
    }
    ApplyProcessor(setting.name, static_cast<uint32_t>(*value), trace.otlp);
    if (!is_given) trace.shown.emplace_back(setting.name, text);
  }
  // OpenTelemetry's variables for the certificates of a collector.
  for (const char* const name :
       {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"}) {
    const char* const file = std::getenv(name);
    if (file != nullptr && trace.otlp.ca_file.empty()) trace.otlp.ca_file = file;
  }
  const auto url = http_client::ParseUrl(trace.otlp.url);
  return url.ok() ? OkStatus() : BadOption("--trace-config opentelemetry,url", url.status());
}

}  // namespace

Status AddTraceConfig(std::string_view value, Options& options) {
  const size_t equals = value.find('=');
  const size_t comma = value.substr(0, equals).find(',');
  if (comma == 0) {
    return InvalidArgumentError(
        fmt::format("No trace mode specified. --trace-config option format is <trace "
                    "mode>,<setting>=<value> or "
                    "<setting>=<value>. Got {}",
                    value));
  }
  const bool has_mode = comma != std::string_view::npos;
  TraceFlags::Settings* settings = &options.trace.server;
  if (has_mode) {
    NEREID_ASSIGN_OR_RETURN(const TraceMode mode, ReadMode(value.substr(0, comma)));
    settings = mode == TraceMode::kTriton ? &options.trace.triton : &options.trace.opentelemetry;
  }
  const auto setting = ReadPair(has_mode ? value.substr(comma + 1) : value, '=');
  if (!setting.ok() || setting->second.empty()) {
    return InvalidArgumentError(fmt::format(
        "--trace-config option format is '<trace mode>,<setting>=<value>'. Got {}", value));
  }
  settings->push_back(*setting);
  return OkStatus();
}

Status SetTraceFile(std::string_view value, Options& options) {
  WarnDeprecated(options, "trace-file", "triton,file=<filepath>");
  options.trace.file = options.engine.trace.file = std::string(value);
  return OkStatus();
}

Status SetTraceLevel(std::string_view value, Options& options) {
  WarnDeprecated(options, "trace-level", "level=<OFF|TIMESTAMPS|TENSORS>");
  NEREID_RETURN_IF_ERROR(AddLevel(value, options.trace));
  options.engine.trace.settings.levels = *options.trace.levels;
  return OkStatus();
}

Status SetTraceRate(std::string_view value, Options& options) {
  WarnDeprecated(options, "trace-rate", "rate=<rate value>");
  NEREID_ASSIGN_OR_RETURN(const int64_t rate, ReadInteger(value, 0, kIntMax));
  options.trace.rate = options.engine.trace.settings.rate = static_cast<uint32_t>(rate);
  return OkStatus();
}

Status SetTraceCount(std::string_view value, Options& options) {
  WarnDeprecated(options, "trace-count", "count=<count value>");
  NEREID_ASSIGN_OR_RETURN(const int64_t count, ReadInteger(value, -1, kIntMax));
  options.trace.count = options.engine.trace.settings.count = static_cast<int32_t>(count);
  return OkStatus();
}

Status SetTraceLogFrequency(std::string_view value, Options& options) {
  WarnDeprecated(options, "trace-log-frequency", "triton,log-frequency=<log frequency value>");
  NEREID_ASSIGN_OR_RETURN(const int64_t frequency, ReadInteger(value, 0, kIntMax));
  options.trace.log_frequency = options.engine.trace.settings.log_frequency =
      static_cast<uint32_t>(frequency);
  return OkStatus();
}

Status FinishTraceFlags(Options& options) {
  NEREID_RETURN_IF_ERROR(ApplyServer(options));
  return options.engine.trace.mode == TraceMode::kTriton ? ApplyTriton(options)
                                                         : ApplyOpenTelemetry(options);
}

}  // namespace nereid::app
