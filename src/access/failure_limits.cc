// SPDX-License-Identifier: Apache-2.0
#include "access/failure_limits.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <vector>

namespace nereid::access {

std::string NetworkOf(std::string_view address) {
  std::array<unsigned char, 16> bytes;
  std::string text(address);
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) != 1) return text;
  // An IPv4 address that is written as one of IPv6 stands for itself.
  constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(kMapped.begin(), kMapped.end(), bytes.begin())) return text;
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  std::array<char, INET6_ADDRSTRLEN> network;
  inet_ntop(AF_INET6, bytes.data(), network.data(), network.size());
  return std::string(network.data()) + "/64";
}

bool FailureLimits::Note(std::string_view address, uint64_t now_s) {
  base::MutexLock lock(mutex_);
  auto found = addresses_.find(address);
  if (found == addresses_.end()) {
    if (addresses_.size() >= kMaxAddresses) MakeRoom(now_s);
    found = addresses_.emplace(std::string(address), Failures{.since_s = now_s}).first;
  }
  Failures& failures = found->second;
  if (now_s - failures.since_s >= kWindowS) failures = {.count = 0, .since_s = now_s};
  return ++failures.count == kMaxFailures;
}

std::optional<uint64_t> FailureLimits::Blocks(std::string_view address, uint64_t now_s) const {
  base::MutexLock lock(mutex_);
  const auto found = addresses_.find(address);
  if (found == addresses_.end() || found->second.count < kMaxFailures) return std::nullopt;
  const uint64_t age_s = now_s - found->second.since_s;
  if (age_s >= kWindowS) return std::nullopt;
  return kWindowS - age_s;
}

size_t FailureLimits::size() const {
  base::MutexLock lock(mutex_);
  return addresses_.size();
}

void FailureLimits::MakeRoom(uint64_t now_s) {
  std::erase_if(addresses_,
                [now_s](const auto& each) { return now_s - each.second.since_s >= kWindowS; });
  if (addresses_.size() < kMaxAddresses) return;
  std::vector<uint64_t> times;
  for (const auto& [address, failures] : addresses_) times.push_back(failures.since_s);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  std::erase_if(addresses_,
                [latest = *middle](const auto& each) { return each.second.since_s <= latest; });
}

}  // namespace nereid::access
