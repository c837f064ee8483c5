// SPDX-License-Identifier: Apache-2.0
// Counts the connections of a server over all its listeners, in all and from each address. A few
// connections beyond the limits are accepted for health requests only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "base/budget.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace nereid::net {

class ConnectionBudget;

// The place of one connection, given back when this is destroyed. Thread-compatible.
class ConnectionGrant {
 public:
  ConnectionGrant() = default;
  ConnectionGrant(ConnectionGrant&& other) noexcept { *this = std::move(other); }
  ConnectionGrant& operator=(ConnectionGrant&& other) noexcept;
  ~ConnectionGrant();

  // Whether the connection is beyond a limit and serves health requests only.
  bool is_extra() const { return is_extra_; }
  // Whether that limit is the one of its address, so that other clients have nothing to do with it.
  bool is_of_address() const { return is_of_address_; }

 private:
  friend class ConnectionBudget;
  using Address = std::array<uint8_t, 16>;

  ConnectionBudget* budget_ = nullptr;
  Address address_{};
  bool is_extra_ = false;
  bool is_of_address_ = false;
};

// A socket that was just accepted.
struct Accepted {
  base::UniqueFd socket;
  ConnectionGrant grant;
};

// Thread-safe. Outlives its grants.
class ConnectionBudget {
 public:
  // `total` counts the connections. `of_address` has the limit for each address and counts what it
  // refuses. Both outlive this.
  ConnectionBudget(base::Budget& total, base::Budget& of_address)
      : total_(total), of_address_(of_address) {}

  // The decision about a new connection.
  struct Admission {
    ConnectionGrant grant;
    std::string refusal;  // why the connection must be closed; empty: it is accepted
  };
  // IPv6 addresses count by their first 64 bits. Unix sockets have no address.
  Admission Admit(const sockaddr_storage& peer);

 private:
  friend class ConnectionGrant;
  using Address = ConnectionGrant::Address;
  // For health requests, in all and from one address.
  static constexpr uint64_t kExtra = 64;
  static constexpr uint64_t kExtraOfAddress = 8;

  void Return(const Address& address, bool is_extra);
  // Counts a connection from an address; returns how many there were before.
  uint64_t AddTo(const Address& address);
  void RemoveFrom(const Address& address);

  base::Budget& total_;
  base::Budget& of_address_;
  base::Budget extra_{kExtra};
  base::Mutex mutex_;
  std::map<Address, uint64_t> counts_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::net
