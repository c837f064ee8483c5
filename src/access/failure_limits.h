// SPDX-License-Identifier: Apache-2.0
// Counts the failed attempts of each address, so that somebody who tries out credentials is cut
// short.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace nereid::access {

// The part of an address that counts: that of IPv6 is the network, because a client has any number
// of addresses in it; ports do not count.
std::string NetworkOf(std::string_view address);

// Thread-safe. Times are seconds of the monotonic clock.
class FailureLimits {
 public:
  static constexpr uint32_t kMaxFailures = 30;  // of one address, in one window
  static constexpr uint64_t kWindowS = 60;
  // More addresses than this are not told apart: the older half of them is forgotten.
  static constexpr size_t kMaxAddresses = 4096;

  // Counts a failure. Returns true for the one that reaches the limit.
  bool Note(std::string_view address, uint64_t now_s);
  // Returns the seconds until the address may try again; nothing if it may now.
  std::optional<uint64_t> Blocks(std::string_view address, uint64_t now_s) const;
  size_t size() const;

 private:
  struct Failures {
    uint32_t count = 0;
    uint64_t since_s = 0;
  };
  void MakeRoom(uint64_t now_s) NEREID_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::map<std::string, Failures, std::less<>> addresses_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::access
