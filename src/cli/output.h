// SPDX-License-Identifier: Apache-2.0
// What a command writes: its result to the standard output, messages to the standard error.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <rapidjson/fwd.h>

#include "cli/table.h"

namespace nereid::cli {

// The exit status of the program. docs/commands.md documents the values.
enum class ExitCode {
  kSuccess = 0,
  kFailure = 1,      // the command failed, or found what it looks for: mistakes, a bad health
  kUsage = 2,        // the arguments are wrong
  kUnreachable = 3,  // there is no server at the address, or it did not reply in time
};

// What is known about a stream. A value type.
struct StreamTraits {
  bool is_terminal = false;
  bool has_colours = false;
  size_t width = 0;   // in columns; 0: unlimited
  size_t height = 0;  // in lines; 0: unlimited

  // Colours are on for terminals unless NO_COLOR is set or TERM is "dumb".
  static StreamTraits Of(std::FILE* stream);
};

// A command either prints text (PrintText, PrintTable) or, with --json, one JSON document
// (PrintJson); wants_json says which. Messages are for people in both cases. Confined to one
// thread.
class Output {
 public:
  // Writes to `out` and `err`, which must outlive this.
  Output(std::FILE* out, std::FILE* err, StreamTraits out_traits, StreamTraits err_traits);
  // Writes to stdout and stderr.
  Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Takes the standard output for this object alone: what others in this process and in its
  // children print there from now on, such as code of models, goes to the standard error. No thread
  // may exist. Without effect on other streams.
  void KeepStandardOutput();

  bool wants_json() const { return wants_json_; }
  void set_wants_json(bool wants) { wants_json_ = wants; }
  const StreamTraits& out() const { return out_traits_; }
  const StreamTraits& err() const { return err_traits_; }

  // Returns the text in the style if the standard output has colours.
  std::string InStyle(Style style, std::string_view text) const;

  // Each writes to the standard output. The text brings its own line ends.
  void PrintText(std::string_view text);
  void PrintTable(const Table& table);
  // Prints the document on several lines for a terminal, else, and in frames, on one. NaN and
  // Infinity are bare words, as in the responses of servers.
  void PrintJson(const rapidjson::Value& document);

  // Each writes one line to the standard error.
  void Note(std::string_view text);
  void Warn(std::string_view text);
  // Writes the error and, with --json, the document {"error": text} to the standard output. Returns
  // `code`, so that a command can end with it.
  ExitCode Fail(ExitCode code, std::string_view text);

  // What is printed between these, errors included, takes the place of the previous frame on a
  // terminal; elsewhere it follows the previous frame. DropFrame forgets it instead.
  void BeginFrame();
  void EndFrame();
  void DropFrame();

  // Sends what is buffered. Returns false if the standard output could not take everything so far.
  bool Flush();
  // Ends the output of a command that ends with `code`: flushes. If the standard output could not
  // take everything, the standard error says so, and the command has failed. Returns the exit
  // status.
  ExitCode Finish(ExitCode code);

 private:
  friend class Progress;

  struct CloseStream {
    void operator()(std::FILE* stream) const { std::fclose(stream); }
  };

  void Write(std::string_view text);
  void FlushOut();
  // Writes to the standard error; nobody is left to be told if that fails.
  void WriteMessage(std::string_view text);
  std::string ErrorLabel() const;
  // Returns how many lines of the terminal the text takes, lines that wrap included.
  size_t Rows(std::string_view text) const;

  std::unique_ptr<std::FILE, CloseStream> kept_;  // see KeepStandardOutput; null before
  std::FILE* out_;
  std::FILE* const err_;
  const StreamTraits out_traits_;
  const StreamTraits err_traits_;
  bool wants_json_ = false;
  std::optional<std::string> frame_;  // what was printed since BeginFrame
  bool has_frames_ = false;           // at least one frame is shown
  size_t frame_rows_ = 0;             // the lines of the terminal that the last frame takes
  int write_error_ = 0;               // the errno of the first write to `out_` that failed; 0: none
};

}  // namespace nereid::cli
