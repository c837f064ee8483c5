// SPDX-License-Identifier: Apache-2.0
// What a sender of requests may do, in the terms of operators: scopes, and lists of models.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::access {

// Every route and every RPC needs one of these. All but kHealth can be granted.
enum class Scope : uint8_t {
  kHealth,        // liveness and readiness; usually open to everybody
  kInfer,         // inference, streams, generate
  kMetadata,      // what there is: metadata, configurations, statistics, the repository's index
  kMetrics,       // the metrics page
  kModelControl,  // loading and unloading
  kSharedMemory,  // clients' shared memory regions
  kTraceLog,      // the settings of traces and of the log
  kAdmin,         // everything
};
inline constexpr size_t kScopeCount = 8;

// Returns "infer", "model-control" and so on.
std::string_view ScopeName(Scope scope);
// Returns nothing for a name that no scope has, and for "health".
std::optional<Scope> FindScope(std::string_view name);
// The names that FindScope knows, for messages.
std::span<const std::string_view> GrantableScopes();

// Whether requests of this scope change how the server serves others.
constexpr bool IsControl(Scope scope) {
  return scope == Scope::kModelControl || scope == Scope::kTraceLog || scope == Scope::kAdmin;
}

// Whether such requests, unless they only read, get a line in the log each.
constexpr bool IsAudited(Scope scope) { return IsControl(scope) || scope == Scope::kSharedMemory; }

// A set of scopes. A value type.
class ScopeSet {
 public:
  constexpr ScopeSet() = default;
  constexpr ScopeSet(std::initializer_list<Scope> scopes) {
    for (const Scope scope : scopes) Add(scope);
  }
  constexpr void Add(Scope scope) { bits_ |= Bit(scope); }
  constexpr void Add(ScopeSet other) { bits_ |= other.bits_; }
  // kAdmin contains all others.
  constexpr bool Allows(Scope scope) const {
    return (bits_ & (Bit(scope) | Bit(Scope::kAdmin))) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const ScopeSet&) const = default;

 private:
  static constexpr uint32_t Bit(Scope scope) { return 1U << static_cast<unsigned>(scope); }
  uint32_t bits_ = 0;
};

// Whether `text` fits `pattern`, in which * stands for any characters and ? for one. Takes time
// proportional to the product of the lengths at most.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// The models that a sender may use, as patterns. Immutable once filled.
class ModelPatterns {
 public:
  // No pattern at all: every model.
  ModelPatterns() = default;
  explicit ModelPatterns(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

  bool allows_all() const { return patterns_.empty(); }
  // Blanks around the name do not count.
  bool Allows(std::string_view model) const;
  const std::vector<std::string>& patterns() const { return patterns_; }

 private:
  std::vector<std::string> patterns_;
};

}  // namespace nereid::access
