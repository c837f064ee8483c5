// SPDX-License-Identifier: Apache-2.0
// What the process of a model may do, as the text in which the server says it on the command line
// of that process: keys and values in turn, each followed by kSeparator. A key may appear more than
// once.
#pragma once

#include <string>
#include <string_view>

namespace nereid::isolation {

inline constexpr char kSeparator = '\x1f';

namespace confine {
inline constexpr const char* kModel =
    "m";  // a folder that may be read, and what links in it lead to
inline constexpr const char* kReadable = "r";  // a file or folder that may be read
inline constexpr const char* kWritable = "w";  // one that may also be written
inline constexpr const char* kLibrary =
    "l";  // one that is opened before; its libraries may be read
inline constexpr const char* kNetwork = "net";  // "1": sockets may be made
inline constexpr const char* kFiles = "files";  // "1": any file may be opened
inline constexpr const char* kMemory = "mem";   // the limit on the process's data, in bytes
inline constexpr const char* kStrict = "must";  // "1": a part that the kernel cannot do is an error
}  // namespace confine

// A list of keys and values in the making, each followed by a separator.
class TextList {
 public:
  explicit TextList(char separator) : separator_(separator) {}

  void Add(std::string_view key, std::string_view value) {
    for (const std::string_view text : {key, value}) {
      text_ += text;
      text_ += separator_;
    }
  }
  const std::string& text() const { return text_; }

 private:
  const char separator_;
  std::string text_;
};

}  // namespace nereid::isolation
