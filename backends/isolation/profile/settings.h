// SPDX-License-Identifier: Apache-2.0
// The parameters of an isolated model: its limits, and what its process may do.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend_kit/config.h"

namespace nereid::isolation {

// Where a model's process finds what it needs.
struct ModelPlaces {
  std::string model;                   // its folder
  std::vector<std::string> readable;   // folders of programs and libraries
  std::vector<std::string> libraries;  // opened before the process is confined
  std::string temporary;               // its folder for temporary files
};

// Immutable once parsed.
struct Settings {
  // The longest time without a response to a request; without it, any time.
  std::optional<std::chrono::milliseconds> timeout;
  uint64_t memory_bytes = 0;  // 0: no limit
  bool may_use_network = false;
  bool may_use_all_files = false;
  bool is_strict = false;
  std::vector<std::string> readable;
  std::vector<std::string> writable;

  static backend::Result<Settings> Parse(const backend::ModelConfig& config);

  // What the process may do, as confinement_text.h describes it.
  std::string ConfinementFor(const ModelPlaces& places) const;
};

}  // namespace nereid::isolation
