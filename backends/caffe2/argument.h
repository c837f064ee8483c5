// SPDX-License-Identifier: Apache-2.0
// An argument of an operator in Caffe2's description of a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace nereid::caffe2 {

// An argument of an operator: a number, a text, or a list of them. Points into the file's bytes,
// where lists stay until they are asked for, because they may be weights. Immutable.
class Argument {
 public:
  // Returns nothing if `message` is not an argument.
  static std::optional<Argument> Parse(std::string_view message);

  std::string_view name() const { return name_; }
  // The value of the kind that is asked for; nothing if the argument has another kind.
  std::optional<int64_t> integer() const { return integer_; }
  std::optional<float> real() const { return real_; }
  std::optional<std::string_view> text() const { return text_; }
  std::vector<int64_t> Integers() const;
  std::vector<float> Reals() const;
  std::vector<std::string_view> Texts() const;

 private:
  std::string_view name_;
  std::string_view message_;
  std::optional<int64_t> integer_;
  std::optional<float> real_;
  std::optional<std::string_view> text_;
};

}  // namespace nereid::caffe2
