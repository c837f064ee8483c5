// SPDX-License-Identifier: Apache-2.0
// Caffe2's description of a network: a list of operators that read and write named blobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "caffe2_backend/argument.h"

namespace nereid::caffe2 {

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
