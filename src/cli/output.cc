// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/json_text.h"

namespace nereid::cli {
namespace {

void Write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

std::string OneLine(const rapidjson::Value& document) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  document.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

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
  if (ioctl(fd, TIOCGWINSZ, &size) == 0) traits.width = size.ws_col;
  return traits;
}

Output::Output(std::FILE* out, std::FILE* err, StreamTraits out_traits, StreamTraits err_traits)
    : out_(out), err_(err), out_traits_(out_traits), err_traits_(err_traits) {}

Output::Output() : Output(stdout, stderr, StreamTraits::Of(stdout), StreamTraits::Of(stderr)) {}

std::string Output::InStyle(Style style, std::string_view text) const {
  return out_traits_.has_colours ? Styled(style, text) : std::string(text);
}

void Output::PrintText(std::string_view text) { Write(out_, text); }

void Output::PrintTable(const Table& table) {
  Write(out_, table.Render(out_traits_.width, out_traits_.has_colours));
}

void Output::PrintJson(const rapidjson::Value& document) {
  const std::string line = OneLine(document);
  Write(out_, out_traits_.is_terminal ? Indented(line) : line);
  Write(out_, "\n");
}

void Output::Note(std::string_view text) { fmt::print(err_, "{}\n", text); }

void Output::Warn(std::string_view text) {
  fmt::print(err_, "{} {}\n",
             err_traits_.has_colours ? Styled(Style::kWarning, "warning:") : "warning:", text);
}

ExitCode Output::Fail(ExitCode code, std::string_view text) {
  // What was printed before the error stands before it where both streams are one file.
  std::fflush(out_);
  while (text.ends_with('\n')) text.remove_suffix(1);
  fmt::print(err_, "{} {}\n",
             err_traits_.has_colours ? Styled(Style::kBad, "error:") : "error:", text);
  if (wants_json_) Write(out_, base::JsonError(text) + "\n");
  return code;
}

bool Output::Flush() {
  const bool is_whole = std::fflush(out_) == 0 && std::ferror(out_) == 0;
  return std::fflush(err_) == 0 && is_whole;
}

}  // namespace nereid::cli
