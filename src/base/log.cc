// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/mutex.h"

namespace nereid::base {
namespace log_internal {

std::atomic<uint32_t> enabled_mask{0b1111};
std::atomic<int> verbose_level{0};

}  // namespace log_internal

namespace {

// A message longer than this is cut: one client must not be able to fill a disk with one line.
constexpr size_t kMaxMessageBytes = 16 * 1024;
constexpr size_t kQueuedLines = 8192;

struct LogState {
  Mutex mutex;
  LogOptions options NEREID_GUARDED_BY(mutex);
  std::shared_ptr<spdlog::details::thread_pool> pool NEREID_GUARDED_BY(mutex);
  std::shared_ptr<spdlog::logger> logger NEREID_GUARDED_BY(mutex);
};

// Leaked on purpose: threads may log until the very end of the process.
LogState& State() {
  static LogState* const state = new LogState;
  return *state;
}

void AppendEscaped(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
}

constexpr char kLetters[] = {'E', 'W', 'I', 'I'};
constexpr const char* kNames[] = {"error", "warning", "info", "verbose"};

std::string FormatLine(LogFormat format, LogLevel level, const char* file, int line,
                       std::string_view message) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  const char* slash = std::strrchr(file, '/');
  const char* base = slash != nullptr ? slash + 1 : file;
  const auto index = static_cast<size_t>(level);
  if (message.size() > kMaxMessageBytes) message = message.substr(0, kMaxMessageBytes);
  std::string out;
  out.reserve(message.size() + 96);
  switch (format) {
    case LogFormat::kDefault:
      out = fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {} {}:{}] \"", kLetters[index],
                        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                        now.tv_nsec / 1000, getpid(), base, line);
      break;
    case LogFormat::kIso8601:
      out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z {}  {} {}:{}] \"", utc.tm_year + 1900,
                        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                        kLetters[index], getpid(), base, line);
      break;
    case LogFormat::kJson:
      out = fmt::format(
          "{{\"time\":\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z\",\"level\":\"{}\",\"pid\":{},"
          "\"source\":\"{}:{}\",\"message\":\"",
          utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
          now.tv_nsec / 1000, kNames[index], getpid(), base, line);
      break;
  }
  AppendEscaped(out, message);
  out += format == LogFormat::kJson ? "\"}" : "\"";
  return out;
}

std::shared_ptr<spdlog::logger> MakeLogger(std::shared_ptr<spdlog::details::thread_pool> pool,
                                           const std::string& file) {
  spdlog::sink_ptr sink;
  if (file.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
  }
  auto logger = std::make_shared<spdlog::async_logger>(
      "nereid", std::move(sink), std::move(pool), spdlog::async_overflow_policy::block);
  logger->set_pattern("%v");
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

}  // namespace

Status ConfigureLog(const LogOptions& options) {
  LogState& state = State();
  std::shared_ptr<spdlog::logger> old;  // destroyed outside the lock
  MutexLock lock(state.mutex);
  if (state.pool == nullptr) {
    state.pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  }
  if (state.logger == nullptr || options.file != state.options.file) {
    try {
      old = std::exchange(state.logger, MakeLogger(state.pool, options.file));
    } catch (const spdlog::spdlog_ex& error) {
      return InvalidArgumentError(
          fmt::format("unable to open log file '{}': {}", options.file, error.what()));
    }
  }
  state.options = options;
  const bool verbose = options.verbose_level > 0;
  log_internal::enabled_mask.store((options.error ? 1u : 0u) | (options.warning ? 2u : 0u) |
                                   (options.info ? 4u : 0u) | (verbose ? 8u : 0u));
  log_internal::verbose_level.store(options.verbose_level);
  return OkStatus();
}

LogOptions CurrentLogOptions() {
  LogState& state = State();
  MutexLock lock(state.mutex);
  return state.options;
}

void FlushLog() {
  LogState& state = State();
  std::shared_ptr<spdlog::details::thread_pool> pool;
  {
    MutexLock lock(state.mutex);
    // Dropping the pool joins its thread after the queue is empty; the next message makes another.
    state.logger.reset();
    pool = std::move(state.pool);
    state.pool = nullptr;
  }
}

namespace log_internal {

void Write(LogLevel level, const char* file, int line, std::string_view message) {
  LogState& state = State();
  std::shared_ptr<spdlog::logger> logger;
  LogOptions options;
  {
    MutexLock lock(state.mutex);
    options = state.options;
    logger = state.logger;
  }
  if (logger == nullptr) {
    if (!ConfigureLog(options).ok()) return;
    MutexLock lock(state.mutex);
    logger = state.logger;
  }
  if (logger != nullptr) logger->info(FormatLine(options.format, level, file, line, message));
}

}  // namespace log_internal
}  // namespace nereid::base
