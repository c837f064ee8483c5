// SPDX-License-Identifier: Apache-2.0
#include "cli/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<ServicePort> Services(std::optional<int> http = {}, std::optional<int> grpc = {}) {
  return {{"HTTP", "--port", 8000, http}, {"gRPC", "--grpc-port", 8001, grpc}};
}

base::Result<ChosenPorts> Choose(const std::vector<ServicePort>& services,
                                 std::set<int> taken = {}) {
  return ChoosePorts(services, [&](uint16_t port) { return !taken.contains(port); });
}

TEST(Ports, AreTheUsualOnesIfTheseAreFree) {
  EXPECT_THAT(Choose(Services())->ports, ElementsAre(8000, 8001));
  EXPECT_THAT(Choose(Services())->notes, IsEmpty());
}

TEST(Ports, ATakenUsualPortIsReplacedByTheNextThatNoServiceHas) {
  const auto chosen = Choose(Services(), {8000, 8002});
  EXPECT_THAT(chosen->ports, ElementsAre(8003, 8001));
  EXPECT_THAT(chosen->notes,
              ElementsAre("port 8000 is taken by another program: HTTP is on port 8003"));
}

TEST(Ports, TwoTakenPortsGetDifferentOnes) {
  EXPECT_THAT(Choose(Services(), {8000, 8001})->ports, ElementsAre(8002, 8003));
}

TEST(Ports, AChosenPortThatIsTakenIsAnErrorWithTheNextFreeOne) {
  const auto chosen = Choose(Services(9000), {9000, 9001});
  EXPECT_EQ(chosen.status().message(),
            "port 9000 is taken by another program; the next free one is 9002: --port 9002");
}

TEST(Ports, AServiceMakesRoomForAChosenPort) {
  const auto chosen = Choose(Services(8001));
  EXPECT_THAT(chosen->ports, ElementsAre(8001, 8002));
  EXPECT_THAT(chosen->notes, IsEmpty());
}

TEST(Ports, ZeroLeavesTheChoiceToTheSystem) {
  EXPECT_THAT(Choose(Services(0, 0), {0})->ports, ElementsAre(0, 0));
}

TEST(Ports, NumbersThatAreNoPortsAreRefused) {
  EXPECT_THAT(std::string(Choose(Services(70000)).status().message()), HasSubstr("--port 70000"));
  EXPECT_THAT(std::string(Choose(Services({}, -1)).status().message()), HasSubstr("--grpc-port"));
}

TEST(Ports, APortWithAListenerIsNotFree) {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), any, size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), any, &size), 0);
  EXPECT_FALSE(IsPortFree("127.0.0.1", ntohs(address.sin_port)));
  EXPECT_FALSE(IsPortFree("0.0.0.0", ntohs(address.sin_port)));
  EXPECT_TRUE(IsPortFree("127.0.0.1", 0));
}

}  // namespace
}  // namespace nereid::cli
