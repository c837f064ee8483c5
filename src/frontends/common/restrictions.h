// SPDX-License-Identifier: Apache-2.0
// Which kinds of request need a header that the operator chose (Triton's --http-restricted-api and
// --grpc-restricted-protocol). A dispatcher determines the category of a request and calls Refuses;
// without restrictions that is one branch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::common {

// The error for requests, except those for health, on one of the last possible connections.
inline constexpr std::string_view kCrowdedText =
    "too many connections: the last ones that --max-connections, --max-connections-per-address and "
    "'ulimit -n' allow are kept for questions of health";

// Every route and every RPC belongs to one of these.
enum class Category : uint8_t {
  kHealth,
  kMetadata,
  kInference,
  kSharedMemory,
  kModelConfig,
  kModelRepository,
  kStatistics,
  kTrace,
  kLogging,
};
inline constexpr size_t kCategoryCount = 9;

// Compares two texts in a time that depends only on the length of `presented`.
bool SameSecret(std::string_view expected, std::string_view presented);

// Filled while the command line is read, then immutable.
class Restrictions {
 public:
  // `rule` is "<category>[,<category>...]:<key>=<value>". Errors are those of Triton, and never
  // contain the value; `flag` and `what` ("api", "protocol") are words in them. The header's name
  // is `key_prefix` followed by the key.
  base::Status Add(std::string_view rule, std::string_view flag, std::string_view what,
                   std::string_view key_prefix);

  bool empty() const { return !any_; }
  // The header that requests of this category must have; empty if they need none.
  const std::string& key(Category category) const { return rules_[Index(category)].key; }
  // The same name in lower case, as in gRPC metadata.
  const std::string& lower_key(Category category) const {
    return rules_[Index(category)].lower_key;
  }
  // Returns true if `presented`, the value of that header ("" if absent), does not permit the
  // category.
  bool Refuses(Category category, std::string_view presented) const {
    return !SameSecret(rules_[Index(category)].value, presented);
  }
  bool IsRestricted(Category category) const { return !rules_[Index(category)].key.empty(); }

 private:
  // The header that one category of requests needs.
  struct Rule {
    std::string key;
    std::string lower_key;
    std::string value;
  };
  static size_t Index(Category category) { return static_cast<size_t>(category); }

  bool any_ = false;
  std::array<Rule, kCategoryCount> rules_;
};

}  // namespace nereid::common
