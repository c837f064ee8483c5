// SPDX-License-Identifier: Apache-2.0
// Caffe2's description of a network: a list of operators that read and write named blobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"

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

// An operator. Points into the file's bytes. Immutable.
struct Operator {
  std::string_view type;
  std::string_view name;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Argument> arguments;

  // Returns the argument called `name`, or null.
  const Argument* Find(std::string_view name) const;
};

// A network. Points into the file's bytes. Immutable.
struct NetDef {
  std::string_view name;
  std::vector<Operator> operators;
  std::vector<std::string_view> external_inputs;
  std::vector<std::string_view> external_outputs;

  // Parses the content of a file; `path` is for the error. `bytes` outlives the network.
  static backend::Result<NetDef> Parse(std::string_view bytes, const std::string& path);
};

}  // namespace nereid::caffe2
