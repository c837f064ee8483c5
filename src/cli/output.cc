// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/unique_fd.h"
#include "cli/json.h"
#include "cli/printable.h"

namespace nereid::cli {
namespace {

// Returns JSON without spaces on several lines, for people.
std::string Indented(std::string_view json) {
  std::string out;
  size_t depth = 0;
  const auto begin_line = [&] { out.append("\n").append(2 * depth, ' '); };
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      const size_t begin = i;
      while (json[++i] != '"') i += json[i] == '\\' ? 1 : 0;
      out += json.substr(begin, i - begin + 1);
    } else if (c == '{' || c == '[') {
      out += c;
      if (json[i + 1] == c + 2) {  // in ASCII, a bracket and the one that closes it
        out += json[++i];
      } else {
        ++depth;
        begin_line();
      }
    } else if (c == '}' || c == ']') {
      --depth;
      begin_line();
      out += c;
    } else {
      out += c;
      if (c == ',') begin_line();
      if (c == ':') out += ' ';
    }
  }
  return out;
}

// Line ends stay, other control characters do not.
std::string PrintableLines(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = text.find('\n');
    out += Printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

StreamTraits StreamTraits::Of(std::FILE* stream) {
  StreamTraits traits;
  const int fd = fileno(stream);
  traits.is_terminal = isatty(fd) == 1;
  if (!traits.is_terminal) return traits;
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  traits.has_colours = (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
                       std::string_view(terminal) != "dumb";
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
    traits.width = size.ws_col;
    traits.height = size.ws_row;
  }
  return traits;
}

Output::Output(std::FILE* out, std::FILE* err, StreamTraits out_traits, StreamTraits err_traits)
    : out_(out), err_(err), out_traits_(out_traits), err_traits_(err_traits) {}

Output::Output() : Output(stdout, stderr, StreamTraits::Of(stdout), StreamTraits::Of(stderr)) {}

void Output::KeepStandardOutput() {
  if (out_ != stdout) return;
  std::fflush(stdout);
  base::UniqueFd copy(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  // A standard output that is closed stays what it is, and so do the messages about it.
  if (!copy.valid()) return;
  kept_.reset(::fdopen(copy.get(), "w"));
  if (kept_ == nullptr) return;
  static_cast<void>(copy.Release());
  out_ = kept_.get();
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) return;
  // There is no standard error.
  const base::UniqueFd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDOUT_FILENO);
}

std::string Output::InStyle(Style style, std::string_view text) const {
  return out_traits_.has_colours ? Styled(style, text) : std::string(text);
}

void Output::Write(std::string_view text) {
  if (frame_) {
    *frame_ += text;
  } else if (std::fwrite(text.data(), 1, text.size(), out_) != text.size() && write_error_ == 0) {
    write_error_ = errno;
  }
}

void Output::FlushOut() {
  if (std::fflush(out_) != 0 && write_error_ == 0) write_error_ = errno;
}

void Output::WriteMessage(std::string_view text) { std::fwrite(text.data(), 1, text.size(), err_); }

std::string Output::ErrorLabel() const {
  return err_traits_.has_colours ? Styled(Style::kBad, "error:") : "error:";
}

void Output::PrintText(std::string_view text) { Write(text); }

void Output::PrintTable(const Table& table) {
  Write(table.Render(out_traits_.width, out_traits_.has_colours));
}

void Output::PrintJson(const rapidjson::Value& document) {
  const std::string line = WriteJson(document);
  Write(out_traits_.is_terminal && !frame_ ? Indented(line) : line);
  Write("\n");
}

void Output::Note(std::string_view text) { WriteMessage(fmt::format("{}\n", text)); }

void Output::Warn(std::string_view text) {
  WriteMessage(fmt::format(
      "{} {}\n", err_traits_.has_colours ? Styled(Style::kWarning, "warning:") : "warning:", text));
}

ExitCode Output::Fail(ExitCode code, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::string message = PrintableLines(text);
  if (frame_ && out_traits_.is_terminal && !wants_json_) {
    Write(fmt::format("{} {}\n", InStyle(Style::kBad, "error:"), message));
    return code;
  }
  // What was printed before the error stands before it where both streams are one file.
  FlushOut();
  WriteMessage(fmt::format("{} {}\n", ErrorLabel(), message));
  if (wants_json_) Write(base::JsonError(ValidUtf8(text)) + "\n");
  return code;
}

void Output::BeginFrame() { frame_.emplace(); }

void Output::DropFrame() { frame_.reset(); }

void Output::EndFrame() {
  std::string frame = std::move(*frame_);
  frame_.reset();
  if (out_traits_.is_terminal && !wants_json_) {
    // The last line stays empty, for the cursor.
    while (out_traits_.height > 1 && Rows(frame) >= out_traits_.height) {
      const size_t last = frame.rfind('\n', frame.size() - 2);
      frame.resize(last == std::string::npos ? 0 : last + 1);
    }
    // Up to the first line of the previous frame, and erase all from there.
    if (frame_rows_ > 0) Write(fmt::format("\x1b[{}A\r\x1b[J", frame_rows_));
    frame_rows_ = Rows(frame);
  } else if (has_frames_ && !wants_json_) {
    frame.insert(frame.begin(), '\n');
  }
  has_frames_ = true;
  Write(frame);
  FlushOut();
}

size_t Output::Rows(std::string_view text) const {
  size_t rows = 0;
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if (text[i] == '\n') {
      const size_t width = std::max<size_t>(out_traits_.width, 1);
      rows += out_traits_.width == 0 ? 1 : std::max<size_t>((columns + width - 1) / width, 1);
      columns = 0;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return rows;
}

bool Output::Flush() {
  FlushOut();
  std::fflush(err_);
  return write_error_ == 0;
}

ExitCode Output::Finish(ExitCode code) {
  if (Flush()) return code;
  WriteMessage(fmt::format("{} cannot write to the standard output: {}\n", ErrorLabel(),
                           std::strerror(write_error_)));
  std::fflush(err_);
  return code == ExitCode::kSuccess ? ExitCode::kFailure : code;
}

}  // namespace nereid::cli
