// SPDX-License-Identifier: Apache-2.0
// The process log. Messages are formatted only when their level is on, escaped (no client string
// can forge a line), and written by a background thread. The sink belongs to the process;
// ARCHITECTURE.md lists what else does.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/status.h"

namespace nereid::base {

enum class LogLevel : uint8_t { kError = 0, kWarning = 1, kInfo = 2, kVerbose = 3 };

enum class LogFormat : uint8_t { kDefault, kIso8601, kJson };

// What is logged, in which form, and where to.
struct LogOptions {
  bool info = true;
  bool warning = true;
  bool error = true;
  int verbose_level = 0;  // 0 is off; a message of verbosity v is written when v <= verbose_level
  LogFormat format = LogFormat::kDefault;
  std::string file;  // empty: standard output; from warnings on, standard error
};

// "default", "ISO8601" or "json".
std::string_view LogFormatName(LogFormat format);
std::optional<LogFormat> ParseLogFormat(std::string_view name);

// Applies from the next message on. An error when the file cannot be opened; the old sink stays.
Status ConfigureLog(const LogOptions& options);

// What may change while the server runs; what is absent stays as it is.
struct LogChange {
  std::optional<bool> info, warning, error;
  std::optional<int> verbose_level;
  std::optional<LogFormat> format;
};
void ChangeLog(const LogChange& change);
LogOptions CurrentLogOptions();
// Waits until everything logged so far is written.
void FlushLog();

namespace log_internal {
extern std::atomic<uint32_t> enabled_mask;  // bit per LogLevel
extern std::atomic<int> verbose_level;
void Write(LogLevel level, const char* file, int line, std::string_view message);
void WriteLines(LogLevel level, const char* file, int line, std::span<const std::string> lines);
}  // namespace log_internal

inline bool LogEnabled(LogLevel level) {
  return log_internal::enabled_mask.load(std::memory_order_relaxed) &
         (1u << static_cast<unsigned>(level));
}
inline bool VerboseEnabled(int verbosity) {
  return verbosity <= log_internal::verbose_level.load(std::memory_order_relaxed);
}

}  // namespace nereid::base

// NEREID_LOG(kInfo, "loaded {} in {} ms", name, ms)
#define NEREID_LOG(level, ...)                                                                 \
  do {                                                                                         \
    if (::nereid::base::LogEnabled(::nereid::base::LogLevel::level)) {                         \
      ::nereid::base::log_internal::Write(::nereid::base::LogLevel::level, __FILE__, __LINE__, \
                                          ::fmt::format(__VA_ARGS__));                         \
    }                                                                                          \
  } while (false)

// One message of several lines, for tables: NEREID_LOG_LINES(kInfo, table.Lines()). They stand
// below the usual start of a line, and what they hold can end none of them.
#define NEREID_LOG_LINES(level, ...)                                                      \
  do {                                                                                    \
    if (::nereid::base::LogEnabled(::nereid::base::LogLevel::level)) {                    \
      ::nereid::base::log_internal::WriteLines(::nereid::base::LogLevel::level, __FILE__, \
                                               __LINE__, __VA_ARGS__);                    \
    }                                                                                     \
  } while (false)

// NEREID_VLOG(2, "...") is written from --log-verbose=2 on.
#define NEREID_VLOG(verbosity, ...)                                                               \
  do {                                                                                            \
    if (::nereid::base::VerboseEnabled(verbosity)) {                                              \
      ::nereid::base::log_internal::Write(::nereid::base::LogLevel::kVerbose, __FILE__, __LINE__, \
                                          ::fmt::format(__VA_ARGS__));                            \
    }                                                                                             \
  } while (false)
