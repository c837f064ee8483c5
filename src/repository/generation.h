// SPDX-License-Identifier: Apache-2.0
// The generation file of a repository: by it, one command reaches all servers that serve the
// repository, those that start later included. It says which models are wanted, and has a number
// that grows with every change. Servers look at this one small file several times a second.
//
//   generation 7
//   load 5 resnet
//   unload 7 old model
//   end
//
// A line has the generation in which the model was last asked for, so that asking again is a
// change. Numbers are only compared for being equal; no clock is read. The last line tells a whole
// file from a torn one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "repository/store.h"

namespace nereid::repository {

// A scan takes only folders for models, so a file in the root of a repository is none.
inline constexpr std::string_view kGenerationFile = ".nereid-generation";
// Enough for ten thousand models, and little for a server to read.
inline constexpr size_t kMaxGenerationBytes = 1 << 20;

// What is asked for one model. A value type.
struct Wish {
  bool is_loaded = false;   // to be loaded, or else to be unloaded
  uint64_t generation = 0;  // when it was last asked for
  bool operator==(const Wish&) const = default;
};

// The contents of a generation file. A value type.
struct Generation {
  uint64_t number = 0;                 // 0: there is no file
  std::map<std::string, Wish> wishes;  // by the model's name
  bool operator==(const Generation&) const = default;
};

// INVALID_ARGUMENT for anything but a whole file.
base::Result<Generation> ParseGeneration(std::string_view text);
std::string PrintGeneration(const Generation& generation);

// Returns what the generation file of a repository says at this moment; one without a file asks for
// nothing.
base::Result<Generation> ReadGeneration(const Store& store, const std::string& repository,
                                        const std::stop_token& stop);

// Writes into the generation file that the model is wanted or not, and returns the file's new
// contents. What others write at the same time is kept, as far as the store can tell
// (Store::Replace). Fails if the repository has no such model; one that is not wanted need only be
// named in the file.
base::Result<Generation> Ask(const Store& store, const std::string& repository,
                             const std::string& model, bool is_loaded);

}  // namespace nereid::repository
