// SPDX-License-Identifier: Apache-2.0
// The process log. Messages are formatted only when their level is on, escaped (no client string
// can forge a line), and written by a background thread. If nobody reads the log, or its disk
// hangs, messages are lost and counted; nobody waits for it for long. The log is process-wide
// state; ARCHITECTURE.md lists what else is.
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

// Which messages are logged, in which format, and where to.
struct LogOptions {
  bool info = true;
  bool warning = true;
  bool error = true;
  int verbose_level = 0;  // 0 is off; a message of verbosity v is written if v <= verbose_level
  LogFormat format = LogFormat::kDefault;
  std::string file;  // empty: standard output, and standard error from warnings on
};

// "default", "ISO8601" or "json".
std::string_view LogFormatName(LogFormat format);
std::optional<LogFormat> ParseLogFormat(std::string_view name);

// Applies `options` from the next message on. Fails if the file cannot be opened; the old sink
// stays in use.
Status ConfigureLog(const LogOptions& options);

// The log settings that may change while the server runs; absent ones stay as they are.
struct LogChange {
  std::optional<bool> info, warning, error;
  std::optional<int> verbose_level;
  std::optional<LogFormat> format;
};
void ChangeLog(const LogChange& change);
LogOptions CurrentLogOptions();
// Waits until everything logged so far has been written. Returns false if the log takes no more:
// nothing was written for a second.
bool FlushLog();

namespace log_internal {
extern std::atomic<uint32_t> enabled_mask;  // one bit per LogLevel
extern std::atomic<int> verbose_level;
void Write(LogLevel level, const char* file, int line, std::string_view message);
void WriteLines(LogLevel level, const char* file, int line, std::span<const std::string> lines);
}  // namespace log_internal

inline bool LogEnabled(LogLevel level) {
  return log_internal::enabled_mask.load(std::memory_order_relaxed) &  // lone setting
         (1u << static_cast<unsigned>(level));
}
inline bool VerboseEnabled(int verbosity) {
  return verbosity <= log_internal::verbose_level.load(std::memory_order_relaxed);  // lone setting
}

}  // namespace nereid::base

// Example: NEREID_LOG(kInfo, "loaded {} in {} ms", name, ms)
#define NEREID_LOG(level, ...)                                                                 \
  do {                                                                                         \
    if (::nereid::base::LogEnabled(::nereid::base::LogLevel::level)) {                         \
      ::nereid::base::log_internal::Write(::nereid::base::LogLevel::level, __FILE__, __LINE__, \
                                          ::fmt::format(__VA_ARGS__));                         \
    }                                                                                          \
  } while (false)

// Logs one message of several lines, for tables: NEREID_LOG_LINES(kInfo, table.Lines()). The lines
// follow the usual head of a message, and nothing in them can end a line.
#define NEREID_LOG_LINES(level, ...)                                                      \
  do {                                                                                    \
    if (::nereid::base::LogEnabled(::nereid::base::LogLevel::level)) {                    \
      ::nereid::base::log_internal::WriteLines(::nereid::base::LogLevel::level, __FILE__, \
                                               __LINE__, __VA_ARGS__);                    \
    }                                                                                     \
  } while (false)

// Example: NEREID_VLOG(2, "...") is written at --log-verbose=2 and above.
#define NEREID_VLOG(verbosity, ...)                                                               \
  do {                                                                                            \
    if (::nereid::base::VerboseEnabled(verbosity)) {                                              \
      ::nereid::base::log_internal::Write(::nereid::base::LogLevel::kVerbose, __FILE__, __LINE__, \
                                          ::fmt::format(__VA_ARGS__));                            \
    }                                                                                             \
  } while (false)
