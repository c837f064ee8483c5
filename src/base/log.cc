// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include <fmt/ranges.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/mutex.h"
#include "base/recent_log.h"
#include "base/reopen_log.h"

namespace nereid::base {
namespace log_internal {

std::atomic<uint32_t> enabled_mask{0b1111};
std::atomic<int> verbose_level{0};

}  // namespace log_internal

namespace {

// A message longer than this is cut: one client must not be able to fill a disk with one line.
constexpr size_t kMaxMessageBytes = 16 * 1024;
// Each queued line takes 400 bytes of memory from the start, used or not.
constexpr size_t kQueuedLines = 512;
// How long a thread that finds the queue full waits for the writer. After that its message is lost,
// and nobody waits until half of the queue has been written.
constexpr std::chrono::milliseconds kQueuePatience{100};
constexpr std::chrono::seconds kFlushPatience{1};

// How far the writer of the log has come, and how many lines wait for it. Thread-safe.
class LogProgress {
 public:
  // Calls `post` for a line that goes to the queue, at once or when there is room, with the number
  // of lines that were lost before it. Calls nothing if this line is lost, too.
  void Post(const std::function<void(uint64_t lost)>& post) {
    MutexLock lock(mutex_);
    if (is_behind_ && queued_ <= kQueuedLines / 2) is_behind_ = false;
    const TimePoint deadline = std::chrono::steady_clock::now() + kQueuePatience;
    while (!is_behind_ && queued_ >= kQueuedLines) {
      is_behind_ = !changed_.WaitUntil(mutex_, deadline) && queued_ >= kQueuedLines;
    }
    if (queued_ >= kQueuedLines) {
      ++lost_;
      return;
    }
    ++queued_;
    if (lost_ > 0) ++queued_;  // the line about them
    post(std::exchange(lost_, 0));
  }
  // Calls `post` for the line about lost ones, if there are any, with their number.
  void PostLost(const std::function<void(uint64_t lost)>& post) {
    MutexLock lock(mutex_);
    if (lost_ == 0 || queued_ >= kQueuedLines) return;
    ++queued_;
    post(std::exchange(lost_, 0));
  }
  void NoteWritten() {
    MutexLock lock(mutex_);
    --queued_;
    ++written_;
    changed_.NotifyAll();
  }
  // Waits until nothing is queued; returns false if nothing is written for kFlushPatience.
  bool WaitUntilWritten() {
    MutexLock lock(mutex_);
    while (queued_ > 0) {
      const uint64_t before = written_;
      const TimePoint deadline = std::chrono::steady_clock::now() + kFlushPatience;
      while (written_ == before) {
        if (!changed_.WaitUntil(mutex_, deadline) && written_ == before) return false;
      }
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t queued_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t written_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t lost_ NEREID_GUARDED_BY(mutex_) = 0;  // since the last line that was queued
  bool is_behind_ NEREID_GUARDED_BY(mutex_) = false;
};

// Passes lines on to another sink and tells when each is written.
class NotingSink final : public spdlog::sinks::sink {
 public:
  NotingSink(spdlog::sink_ptr sink, std::shared_ptr<LogProgress> progress)
      : sink_(std::move(sink)), progress_(std::move(progress)) {}

  void log(const spdlog::details::log_msg& line) override {
    // A disk may be full; spdlog says so on standard error.
    const std::unique_ptr<LogProgress, Note> note(progress_.get());
    sink_->log(line);
    sink_->flush();
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override { sink_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    sink_->set_formatter(std::move(formatter));
  }

 private:
  struct Note {
    void operator()(LogProgress* progress) const { progress->NoteWritten(); }
  };

  const spdlog::sink_ptr sink_;
  const std::shared_ptr<LogProgress> progress_;
};

// The thread that writes the lines, and its queue. Whoever is writing a message keeps it: a logger
// alone throws when its pool has gone.
class LogThread {
 public:
  explicit LogThread(std::promise<void> ended) : ended_(std::move(ended)) {}
  ~LogThread() {
    // Joins the thread once the queue is empty.
    pool_.reset();
    ended_.set_value();
  }
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

  const std::shared_ptr<spdlog::details::thread_pool>& pool() const { return pool_; }
  const std::shared_ptr<LogProgress>& progress() const { return progress_; }

 private:
  std::promise<void> ended_;
  const std::shared_ptr<LogProgress> progress_ = std::make_shared<LogProgress>();
  // Has room for the line about lost ones, and for what ends the thread, so that it never waits.
  std::shared_ptr<spdlog::details::thread_pool> pool_ =
      std::make_shared<spdlog::details::thread_pool>(kQueuedLines + 2, 1);
};

// The state of the process log.
struct LogState {
  // Triton's variable: with "0", messages are written without escapes. JSON lines are always
  // escaped.
  const bool escapes = [] {
    const char* const text = std::getenv("TRITON_SERVER_ESCAPE_LOG_MESSAGES");
    return text == nullptr || std::string_view(text) != "0";
  }();
  Mutex mutex;
  LogOptions options NEREID_GUARDED_BY(mutex);
  std::shared_ptr<LogThread> thread NEREID_GUARDED_BY(mutex);
  std::shared_future<void> ended NEREID_GUARDED_BY(mutex);  // of that thread, or the one before
  // The loggers of information and of errors (from warnings on). They are the same when logging to
  // a file.
  std::shared_ptr<spdlog::logger> logger NEREID_GUARDED_BY(mutex);
  std::shared_ptr<spdlog::logger> error_logger NEREID_GUARDED_BY(mutex);

  std::shared_ptr<spdlog::logger> LoggerFor(LogLevel level) const NEREID_REQUIRES(mutex) {
    return level <= LogLevel::kWarning ? error_logger : logger;
  }
};

// Leaked on purpose: threads may log until the process ends.
LogState& State() {
  static LogState* const state = new LogState;
  return *state;
}

// One character decoded from UTF-8.
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;  // in bytes; 0 if not UTF-8
};

CodePoint DecodeUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const uint32_t lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length == 0 || text.size() < length) return {};
  if (length == 1) return {lead, 1};
  uint32_t value = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> kMinValues = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kMinValues[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return {};
  return {value, length};
}

// Whether a terminal or a viewer would act on the character: control characters (also those of C1)
// and line separators.
bool IsControl(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x2028 ||
         code_point == 0x2029;
}

// Moves what `text` begins with, and what is printed as it is everywhere, to the end of `out`.
void MovePlain(std::string& out, std::string_view& text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  const auto end = std::find_if_not(text.begin(), text.end(), is_plain);
  const auto size = static_cast<size_t>(end - text.begin());
  out += text.substr(0, size);
  text.remove_prefix(size);
}

// Appends the inside of a JSON string, whatever bytes `text` holds.
void AppendEscaped(std::string& out, std::string_view text) {
  for (MovePlain(out, text); !text.empty(); MovePlain(out, text)) {
    const CodePoint next = DecodeUtf8(text);
    const char c = text.front();
    const std::string_view bytes = text.substr(0, next.length);
    text.remove_prefix(std::max<size_t>(next.length, 1));
    if (next.length == 0) {
      out += "\\ufffd";
      continue;
    }
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
        if (IsControl(next.value)) {
          out += fmt::format("\\u{:04x}", next.value);
        } else {
          out += bytes;
        }
    }
  }
}

// Appends `text` without what a terminal would act on. Quotes are kept, unlike in AppendEscaped.
void AppendVisible(std::string& out, std::string_view text) {
  for (MovePlain(out, text); !text.empty(); MovePlain(out, text)) {
    const CodePoint next = DecodeUtf8(text);
    if (next.length == 0) {
      out += "\\ufffd";
    } else if (IsControl(next.value)) {
      out += fmt::format("\\u{:04x}", next.value);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(std::max<size_t>(next.length, 1));
  }
}

constexpr char kLetters[] = {'E', 'W', 'I', 'I'};
constexpr const char* kNames[] = {"error", "warning", "info", "verbose"};

// If the cut leaves an incomplete character at the end, the escaping drops it.
constexpr std::string_view kCut = "... (cut)";

// The format of a line.
struct Line {
  LogFormat format = LogFormat::kDefault;
  bool escapes = true;
};

const char* BaseName(const char* file) {
  const char* const slash = std::strrchr(file, '/');
  return slash != nullptr ? slash + 1 : file;
}

std::string FormatLine(Line how, LogLevel level, const char* file, int line,
                       std::string_view message) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  const char* const base = BaseName(file);
  const auto index = static_cast<size_t>(level);
  const bool is_cut = message.size() > kMaxMessageBytes;
  if (is_cut) message = message.substr(0, kMaxMessageBytes);
  const char* const quote = how.escapes ? "\"" : "";
  std::string out;
  out.reserve(message.size() + 96);
  switch (how.format) {
    case LogFormat::kDefault:
      out = fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {} {}:{}] {}", kLetters[index],
                        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                        now.tv_nsec / 1000, getpid(), base, line, quote);
      break;
    case LogFormat::kIso8601:
      out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z {} {} {}:{}] {}", utc.tm_year + 1900,
                        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                        kLetters[index], getpid(), base, line, quote);
      break;
    case LogFormat::kJson:
      out = fmt::format(
          "{{\"time\":\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z\",\"level\":\"{}\",\"pid\":{},"
          "\"source\":\"{}:{}\",\"message\":\"",
          utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
          now.tv_nsec / 1000, kNames[index], getpid(), base, line);
      break;
  }
  if (how.format == LogFormat::kJson || how.escapes) {
    AppendEscaped(out, message);
  } else {
    out += message;
  }
  if (is_cut) out += kCut;
  out += how.format == LogFormat::kJson ? "\"}" : quote;
  return out;
}

std::shared_ptr<spdlog::logger> MakeLogger(const LogThread& thread, const std::string& file,
                                           bool is_for_errors) {
  spdlog::sink_ptr sink;
  if (file.empty() && is_for_errors) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else if (file.empty()) {
    sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
  }
  auto logger = std::make_shared<spdlog::async_logger>(
      "nereid", std::make_shared<NotingSink>(std::move(sink), thread.progress()), thread.pool(),
      spdlog::async_overflow_policy::block);
  logger->set_pattern("%v");
  logger->set_level(spdlog::level::trace);
  return logger;
}

}  // namespace

namespace {

void ApplyLevels(const LogOptions& options) {
  const bool verbose = options.verbose_level > 0;
  log_internal::enabled_mask.store((options.error ? 1u : 0u) | (options.warning ? 2u : 0u) |
                                   (options.info ? 4u : 0u) | (verbose ? 8u : 0u));
  log_internal::verbose_level.store(options.verbose_level);
}

constexpr std::array<std::string_view, 3> kFormatNames = {"default", "ISO8601", "json"};

}  // namespace

std::string_view LogFormatName(LogFormat format) {
  return kFormatNames[static_cast<size_t>(format)];
}

std::optional<LogFormat> ParseLogFormat(std::string_view name) {
  for (size_t i = 0; i < kFormatNames.size(); ++i) {
    if (kFormatNames[i] == name) return static_cast<LogFormat>(i);
  }
  return std::nullopt;
}

Status OpenLog(LogState& state, const LogOptions& options, std::shared_ptr<spdlog::logger>& old)
    NEREID_REQUIRES(state.mutex) {
  if (state.thread == nullptr) {
    std::promise<void> ended;
    state.ended = ended.get_future().share();
    state.thread = std::make_shared<LogThread>(std::move(ended));
  }
  try {
    std::shared_ptr<spdlog::logger> opened = MakeLogger(*state.thread, options.file, false);
    state.error_logger =
        options.file.empty() ? MakeLogger(*state.thread, options.file, true) : opened;
    old = std::exchange(state.logger, std::move(opened));
  } catch (const spdlog::spdlog_ex& error) {
    return InvalidArgumentError(
        fmt::format("unable to open log file '{}': {}", options.file, error.what()));
  }
  return OkStatus();
}

Status ReopenLog() {
  LogState& state = State();
  std::shared_ptr<spdlog::logger> old;  // destroyed outside the lock
  MutexLock lock(state.mutex);
  if (state.logger == nullptr || state.options.file.empty()) return OkStatus();
  return OpenLog(state, state.options, old);
}

Status ConfigureLog(const LogOptions& options) {
  LogState& state = State();
  std::shared_ptr<spdlog::logger> old;  // destroyed outside the lock
  MutexLock lock(state.mutex);
  if (state.logger == nullptr || options.file != state.options.file) {
    NEREID_RETURN_IF_ERROR(OpenLog(state, options, old));
  }
  state.options = options;
  ApplyLevels(options);
  return OkStatus();
}

void ChangeLog(const LogChange& change) {
  LogState& state = State();
  MutexLock lock(state.mutex);
  LogOptions& options = state.options;
  options.info = change.info.value_or(options.info);
  options.warning = change.warning.value_or(options.warning);
  options.error = change.error.value_or(options.error);
  options.verbose_level = change.verbose_level.value_or(options.verbose_level);
  options.format = change.format.value_or(options.format);
  ApplyLevels(options);
}

LogOptions CurrentLogOptions() {
  LogState& state = State();
  MutexLock lock(state.mutex);
  return state.options;
}

namespace {

// Where and how to write a message.
struct Sink {
  std::shared_ptr<LogThread> thread;
  std::shared_ptr<spdlog::logger> logger;  // null: the log could not be opened
  LogFormat format = LogFormat::kDefault;
  bool escapes = true;

  void Post(const std::string& line) const {
    thread->progress()->Post([&](uint64_t lost) {
      if (lost > 0) LogLost(lost);
      logger->info(line);
    });
  }
  void PostLost() const {
    if (logger == nullptr) return;
    thread->progress()->PostLost([&](uint64_t lost) { LogLost(lost); });
  }
  void LogLost(uint64_t lost) const {
    const std::string line = fmt::format(
        "{} messages were lost here, because the log was not written or read fast enough", lost);
    logger->info(FormatLine({format, escapes}, LogLevel::kWarning, __FILE__, __LINE__, line));
  }
};

Sink FindSink(LogLevel level) {
  LogState& state = State();
  std::shared_ptr<spdlog::logger> old;  // null: a log that is open is not opened again
  MutexLock lock(state.mutex);
  if (state.logger == nullptr && !OpenLog(state, state.options, old).ok()) return {};
  return {state.thread, state.LoggerFor(level), state.options.format, state.escapes};
}

}  // namespace

bool FlushLog() {
  LogState& state = State();
  std::shared_ptr<LogThread> thread;
  std::shared_future<void> ended;
  {
    MutexLock lock(state.mutex);
    thread = state.thread;
    ended = state.ended;
  }
  if (thread != nullptr) {
    // A thread that hangs stays.
    if (!thread->progress()->WaitUntilWritten()) return false;
    FindSink(LogLevel::kWarning).PostLost();
    if (!thread->progress()->WaitUntilWritten()) return false;
  }
  {
    MutexLock lock(state.mutex);
    if (state.thread == thread) {
      state.logger.reset();
      state.error_logger.reset();
      state.thread.reset();
    }
  }
  // The last one who writes a message lets the thread go. The next message starts another.
  thread.reset();
  if (ended.valid()) ended.wait();
  return true;
}

namespace {

std::atomic<bool> keeps_recent{false};

RecentLog& Recent() {
  // Leaked on purpose, like the log's state.
  static RecentLog* const recent = new RecentLog;
  return *recent;
}

// Returns `message` as valid UTF-8 and without control characters, but with its lines.
std::string ShownLines(std::string_view message) {
  std::string shown;
  for (;;) {
    const size_t end = message.find('\n');
    AppendVisible(shown, message.substr(0, end));
    if (end == std::string_view::npos) return shown;
    shown += '\n';
    message.remove_prefix(end + 1);
  }
}

void Keep(LogLevel level, const char* file, int line, std::string_view message) {
  if (!keeps_recent.load(std::memory_order_relaxed)) return;  // lone setting
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  Recent().Add(level, fmt::format("{}:{}", BaseName(file), line), ShownLines(message),
               static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000);
}

}  // namespace

void KeepRecentLog() { keeps_recent.store(true); }
const RecentLog& RecentLogOfProcess() { return Recent(); }

namespace log_internal {

void Write(LogLevel level, const char* file, int line, std::string_view message) {
  Keep(level, file, line, message);
  const Sink sink = FindSink(level);
  if (sink.logger == nullptr) return;
  sink.Post(FormatLine({sink.format, sink.escapes}, level, file, line, message));
}

void WriteLines(LogLevel level, const char* file, int line, std::span<const std::string> lines) {
  Keep(level, file, line, fmt::format("{}", fmt::join(lines, "\n")));
  const Sink sink = FindSink(level);
  if (sink.logger == nullptr) return;
  std::string text;
  if (sink.format == LogFormat::kJson) {
    for (const std::string& entry : lines) text += entry + '\n';
    sink.Post(FormatLine({sink.format, true}, level, file, line, text));
    return;
  }
  text = FormatLine({sink.format, false}, level, file, line, "");
  for (const std::string& entry : lines) {
    text += '\n';
    AppendVisible(text, entry);
  }
  text += '\n';  // an empty line after the table
  sink.Post(text);
}

}  // namespace log_internal
}  // namespace nereid::base
