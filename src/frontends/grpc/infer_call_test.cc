// SPDX-License-Identifier: Apache-2.0
#include "grpc/infer_call.h"

#include <gtest/gtest.h>

#include "grpc/testing/frontend_fixture.h"

namespace nereid::grpc {
namespace {

using InferCallTest = FrontendTest;

TEST_F(InferCallTest, ReportsARequestThatIsReleasedWithoutAResponse) {
  service_->on_infer = [](core::RequestPtr request) { request.reset(); };
  Start();
  const http2::Reply reply = Infer();
  EXPECT_EQ(reply.status(), "13");
  EXPECT_EQ(reply.headers.at("grpc-message"), "expected a single response, got 0");
}

}  // namespace
}  // namespace nereid::grpc
