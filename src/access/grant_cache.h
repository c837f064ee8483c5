// SPDX-License-Identifier: Apache-2.0
// The credentials that a thread has lately found to be good, so that the next request with the same
// ones costs a comparison. Wrong ones are never kept, so they push nothing out.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "access/crypto.h"
#include "access/grant.h"

namespace nereid::access {

// Confined to a thread. Takes one megabyte at most.
class GrantCache {
 public:
  enum class Kind : uint8_t { kText, kCertificate };

  // Returns null if it is not known, or was found with other rules. Valid until the next Keep.
  const GrantRef* Find(Kind kind, std::string_view credential, uint64_t generation) {
    const auto is_it = [&](const Entry& entry) {
      return entry.generation == generation && entry.kind == kind &&
             IsSame(entry.credential, credential);
    };
    // Most clients send one request after the other, and a hash takes longer than a comparison.
    if (is_it(entries_[last_])) [[likely]]
      return &entries_[last_].grant;
    const size_t hash = Hash(credential);
    const size_t place = hash % kEntries;
    if (entries_[place].hash != hash || !is_it(entries_[place])) return nullptr;
    last_ = place;
    return &entries_[place].grant;
  }

  void Keep(Kind kind, std::string_view credential, uint64_t generation, GrantRef grant) {
    if (credential.size() > kMaxCredential) return;
    const size_t hash = Hash(credential);
    entries_[hash % kEntries] = {generation, hash, kind, std::string(credential), std::move(grant)};
  }

 private:
  static constexpr size_t kEntries = 128;
  static constexpr size_t kMaxCredential = size_t{8} << 10;

  struct Entry {
    uint64_t generation = 0;  // no rules have this one
    size_t hash = 0;
    Kind kind = Kind::kText;
    std::string credential;
    GrantRef grant;
  };
  static size_t Hash(std::string_view text) { return std::hash<std::string_view>()(text); }

  std::array<Entry, kEntries> entries_;
  size_t last_ = 0;  // the entry that was found last
};

}  // namespace nereid::access
