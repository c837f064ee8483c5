// SPDX-License-Identifier: Apache-2.0
// Reads what the kernel tells in /proc and /sys, in files of a few lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::base {

// The files of a machine. Immutable; thread-safe.
class SystemFiles {
 public:
  // `root` is put in front of all paths: empty, or the folder of a made-up machine in tests.
  explicit SystemFiles(std::string root = {}) : root_(std::move(root)) {}

  // Returns the content without white space at the end; nothing if the file cannot be read.
  std::optional<std::string> Text(const std::string& path) const;
  // Returns the number that the file consists of.
  std::optional<uint64_t> Number(const std::string& path) const;
  // Returns the value of a line "NAME: value" or "NAME value".
  std::optional<std::string> Field(const std::string& path, std::string_view name) const;
  // Returns the names in a folder, sorted; none if there is no such folder.
  std::vector<std::string> Names(const std::string& folder) const;
  // Returns the target of a symbolic link.
  std::optional<std::string> Link(const std::string& path) const;
  bool Exists(const std::string& path) const;

 private:
  const std::string root_;
};

// Returns the lines of a text.
std::vector<std::string_view> Lines(std::string_view text);
// Returns the words of a line, which white space separates.
std::vector<std::string_view> Words(std::string_view line);
// Returns the number that a text consists of.
std::optional<uint64_t> ToNumber(std::string_view text, int base = 10);

}  // namespace nereid::base
