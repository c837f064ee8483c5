// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_connection.h"

#include <sys/mman.h>

#include <chrono>
#include <latch>

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

// Has no calls.
class Handler final : public GrpcHandler {
 public:
  GrpcCallEvents* OnCall(GrpcCallRef) override { return nullptr; }
};

TEST(GrpcConnection, IsDestroyedIfItsSocketCannotBeWatched) {
  net::ReactorPool pool(1);
  Handler handler;
  const GrpcServerOptions options;
  net::ConnectionGroup group(pool);
  std::latch is_started(1);
  pool.reactor(0).Post([&] {
    net::Accepted accepted;
    // Stands for a socket that the system refuses to watch: epoll takes no files.
    accepted.socket = base::UniqueFd(::memfd_create("a file", MFD_CLOEXEC));
    GrpcConnection::Start({options, handler, group, pool.reactor(0), pool.workers()},
                          std::move(accepted), nullptr);
    EXPECT_EQ(group.count(), 1u);  // it is never destroyed inside a call
    is_started.count_down();
  });
  is_started.wait();
  ASSERT_TRUE(group.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  group.Shutdown();
}

}  // namespace
}  // namespace nereid::http2
