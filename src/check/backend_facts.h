// SPDX-License-Identifier: Apache-2.0
// What is known of the backends that come with the server, so that a configuration can be checked
// without opening them. Nothing is assumed about other backends.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/model_config.h"

namespace nereid::check {

// The kinds of values that parameters have.
enum class ParameterType { kText, kInteger, kBool };

struct ParameterFact {
  std::string_view name;
  ParameterType type = ParameterType::kText;
};

// One backend.
struct BackendFacts {
  std::string_view name;
  bool needs_model_file = true;
  // All parameters that it reads; a name that ends in '*' stands for all that begin so.
  std::span<const ParameterFact> parameters;
  bool takes_any_parameter = false;
  // The names of its execution accelerators; empty: it has none.
  std::span<const std::string_view> accelerators;
  // Completes also single members of listed tensors.
  bool fills_members = false;
  // Which members of `optimization` it reads.
  bool reads_graph_level = false;
  bool reads_cuda = false;
  bool reads_priority = false;
};

// Returns null for a backend that does not come with the server.
const BackendFacts* FactsOf(std::string_view backend);

// What a backend fills in with auto-completion. `script` is the text of a Python model's file.
struct Completion {
  bool inputs = true;   // if the configuration lists none
  bool outputs = true;  // if the configuration lists none
  bool members = true;  // also types and dimensions of listed tensors
};
Completion CompletionBy(const config::ModelConfig& config, std::string_view script);

// Whether a backend of this server understands `value`; texts are always understood.
bool Understands(ParameterType type, std::string_view value);

}  // namespace nereid::check
