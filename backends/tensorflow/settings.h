// SPDX-License-Identifier: Apache-2.0
// What a configuration and the command line say about TensorFlow, in Triton's words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/config.h"

namespace nereid::tensorflow {

// The options of --backend-config=tensorflow,... Immutable.
struct CommandLine {
  bool allow_soft_placement = true;
  double gpu_memory_fraction = 0;
  int default_max_batch_size = 4;

  // Parses the server's JSON for a backend; may be empty.
  static backend::Result<CommandLine> Parse(std::string_view json);
};

// The settings of a model. Immutable.
struct Settings {
  bool is_graph_def = false;      // otherwise SavedModel
  std::string model_filename;     // the default one, or what default_model_filename says
  std::vector<std::string> tags;  // of the graph in a SavedModel; "serve" by default
  std::string signature;          // empty: the default one
  // How many instances may share a session; nothing: any number, or one where the runs of sequences
  // change what a session keeps.
  std::optional<int> share_count;
  std::string init_ops_file;           // may be empty
  std::vector<std::string> libraries;  // with operations
  std::string session_config;          // a ConfigProto

  // Fails, with Triton's texts, for values that a parameter cannot have.
  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config,
                                              const CommandLine& flags, const std::string& model);
};

}  // namespace nereid::tensorflow
