// SPDX-License-Identifier: Apache-2.0
#include "net/connection_budget.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <vector>

#include <gtest/gtest.h>

namespace nereid::net {
namespace {

sockaddr_storage Peer(const char* text) {
  sockaddr_storage peer{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(peer);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(peer);
  if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else if (::inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
  } else {
    peer.ss_family = AF_UNIX;
  }
  return peer;
}

using Admissions = std::vector<ConnectionBudget::Admission>;

// Admits connections until one is not served; returns how many were.
size_t Fill(ConnectionBudget& budget, const char* peer, Admissions& kept) {
  for (size_t served = 0;; ++served) {
    ConnectionBudget::Admission next = budget.Admit(Peer(peer));
    if (!next.refusal.empty() || next.grant.is_extra()) return served;
    kept.push_back(std::move(next));
  }
}

TEST(ConnectionBudget, LimitsAllConnectionsTogether) {
  base::Budget total(10);
  base::Budget of_address;
  ConnectionBudget budget(total, of_address);
  Admissions kept;
  EXPECT_EQ(Fill(budget, "10.0.0.1", kept), 10u);
  EXPECT_EQ(Fill(budget, "10.0.0.2", kept), 0u);
  EXPECT_EQ(total.used(), 10u);
  kept.clear();
  EXPECT_EQ(total.used(), 0u);
  EXPECT_EQ(Fill(budget, "10.0.0.2", kept), 10u);
}

TEST(ConnectionBudget, LimitsEachAddressSoThatOthersAreServed) {
  base::Budget total(100);
  base::Budget of_address(6);
  ConnectionBudget budget(total, of_address);
  Admissions kept;
  EXPECT_EQ(Fill(budget, "10.0.0.1", kept), 6u);
  EXPECT_EQ(Fill(budget, "10.0.0.2", kept), 6u);
  EXPECT_EQ(of_address.refusals(), 2u);
  kept.clear();
  EXPECT_EQ(Fill(budget, "10.0.0.1", kept), 6u);
}

TEST(ConnectionBudget, CountsTheNetworkOfIpv6AddressesAndTheSameIpv4AddressOnce) {
  base::Budget total(100);
  base::Budget of_address(2);
  ConnectionBudget budget(total, of_address);
  Admissions kept;
  EXPECT_EQ(Fill(budget, "2001:db8::1", kept), 2u);
  EXPECT_EQ(Fill(budget, "2001:db8::2", kept), 0u);
  EXPECT_EQ(Fill(budget, "2001:db8:0:1::1", kept), 2u);
  EXPECT_EQ(Fill(budget, "10.0.0.1", kept), 2u);
  EXPECT_EQ(Fill(budget, "::ffff:10.0.0.1", kept), 0u);
}

TEST(ConnectionBudget, HasNoLimitForAnAddressOfUnixSockets) {
  base::Budget total(20);
  base::Budget of_address(2);
  ConnectionBudget budget(total, of_address);
  Admissions kept;
  EXPECT_EQ(Fill(budget, "unix", kept), 20u);
}

TEST(ConnectionBudget, AcceptsAFewMoreForHealthAndThenRefusesWithTheReason) {
  base::Budget total(100);
  base::Budget of_address(3);
  ConnectionBudget budget(total, of_address);
  Admissions kept;
  std::string refusal;
  size_t extra = 0;
  while (refusal.empty()) {
    ConnectionBudget::Admission next = budget.Admit(Peer("10.0.0.1"));
    refusal = next.refusal;
    extra += next.grant.is_extra();
    kept.push_back(std::move(next));
  }
  EXPECT_EQ(extra, 8u);
  EXPECT_EQ(refusal, "this address has 3 connections, the most the server accepts");
  EXPECT_EQ(total.used(), 3u);
}

}  // namespace
}  // namespace nereid::net
