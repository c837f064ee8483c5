// SPDX-License-Identifier: Apache-2.0
#include "net/connection_budget.h"

#include <netinet/in.h>

#include <cstring>

#include <fmt/format.h>

namespace nereid::net {
namespace {

using ClientAddress = std::array<uint8_t, 16>;

// The key of connections without an address, which is that of no client.
constexpr ClientAddress kNoAddress{};

// IPv4 addresses are written as in IPv6 (::ffff:1.2.3.4).
ClientAddress AddressOf(const sockaddr_storage& peer) {
  ClientAddress address{};
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    address[10] = address[11] = 0xff;
    std::memcpy(address.data() + 12, &v4.sin_addr, 4);
  } else if (peer.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
    std::memcpy(address.data(), &v6.sin6_addr, address.size());
    // A client has at least 2^64 addresses, so that only the network tells clients apart.
    if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && !IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) {
      std::memset(address.data() + 8, 0, 8);
    }
  }
  return address;
}

}  // namespace

ConnectionGrant& ConnectionGrant::operator=(ConnectionGrant&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(address_, other.address_);
  std::swap(is_extra_, other.is_extra_);
  std::swap(is_of_address_, other.is_of_address_);
  return *this;
}

ConnectionGrant::~ConnectionGrant() {
  if (budget_ != nullptr) budget_->Return(address_, is_extra_);
}

uint64_t ConnectionBudget::AddTo(const ClientAddress& address) {
  if (address == kNoAddress) return 0;
  base::MutexLock lock(mutex_);
  return counts_[address]++;
}

void ConnectionBudget::RemoveFrom(const ClientAddress& address) {
  if (address == kNoAddress) return;
  base::MutexLock lock(mutex_);
  const auto found = counts_.find(address);
  if (found != counts_.end() && --found->second == 0) counts_.erase(found);
}

void ConnectionBudget::Return(const ClientAddress& address, bool is_extra) {
  RemoveFrom(address);
  (is_extra ? extra_ : total_).Give(1);
}

ConnectionBudget::Admission ConnectionBudget::Admit(const sockaddr_storage& peer) {
  Admission admission;
  const ClientAddress address = AddressOf(peer);
  const uint64_t limit = of_address_.limit();
  const uint64_t before = AddTo(address);
  const bool is_within = before < limit;
  if (!is_within) of_address_.CountRefusal();
  bool is_extra = false;
  if (!is_within || !total_.TryTake(1)) {
    is_extra = (is_within || before - limit < kExtraOfAddress) && extra_.TryTake(1);
    if (!is_extra) {
      RemoveFrom(address);
      admission.refusal =
          is_within
              ? fmt::format("the server has {} connections, the most it accepts", total_.limit())
              : fmt::format("this address has {} connections, the most the server accepts", limit);
      return admission;
    }
  }
  admission.grant.budget_ = this;
  admission.grant.address_ = address;
  admission.grant.is_extra_ = is_extra;
  admission.grant.is_of_address_ = !is_within;
  return admission;
}

}  // namespace nereid::net
