// SPDX-License-Identifier: Apache-2.0
#include "grpc/stream_call.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "grpc/testing/frontend_fixture.h"
#include "net/compression.h"

namespace nereid::grpc {
namespace {

using StreamCallTest = FrontendTest;
using http2::Prefixed;

std::string Compressed(std::string_view message) {
  const iovec parts[] = {{const_cast<char*>(message.data()), message.size()}};
  const auto bytes = net::Compress(net::Compression::kGzip, parts);
  EXPECT_TRUE(bytes.ok());
  return bytes.ok() ? std::string(bytes->data) : std::string();
}

// Behind a proxy, all clients share a connection.
TEST_F(StreamCallTest, IdleStreamsLeaveTheBudgetOfTheirConnectionToOthers) {
  constexpr size_t kMessageBytes = size_t{240} << 10;
  service_->on_infer = RespondBriefly;
  Start({.server = {.connection_budget_bytes = 4 * kMessageBytes}});
  const std::string data(kMessageBytes, 'x');
  std::vector<int32_t> streams;
  for (int i = 0; i < 8; ++i) streams.push_back(OpenStream(data));
  for (const int32_t stream : streams) EXPECT_EQ(Response(stream, 0).error_message(), "");
  // A worker inflates it, and gets nothing while the connection is over its budget.
  const int32_t call =
      client_->Call(kUnaryPath, Prefixed(Compressed(EncodeRequest(http2::Noise(10'000, 1))), true),
                    {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(client_->Finish(call).status(), "0");
}

}  // namespace
}  // namespace nereid::grpc
