// SPDX-License-Identifier: Apache-2.0
#include "grpc/infer_call.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/object_pool.h"
#include "grpc/testing/frontend_fixture.h"
#include "http2/grpc_head.h"
#include "http2/grpc_stream.h"
#include "http2/testing/host.h"

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

TEST_F(InferCallTest, ReportsARequestThatIsReleasedAfterAResponseThatWasNotTheLast) {
  for (const bool is_released_first : {false, true}) {
    service_->on_infer = [&](core::RequestPtr request) {
      core::ResponseSink& sink = request->sink();
      core::ResponsePtr response = core::Response::Create(*request);
      if (is_released_first) request.reset();
      sink.Send(std::move(response), false);
    };
    Start();
    const http2::Reply reply = Infer();
    EXPECT_EQ(reply.status(), "13");
    EXPECT_EQ(reply.headers.at("grpc-message"),
              "the request was released without its last response");
    frontend_.reset();
  }
}

TEST_F(InferCallTest, ARequestWhoseReplyIsSentLeavesItsPlaceToTheNext) {
  core::Budgets budgets{{.requests = 1, .requests_per_model = 1}};
  service_->on_infer = [this](core::RequestPtr request) {
    Keep(*request);
    RespondBriefly(std::move(request));
  };
  Start({.budgets = &budgets});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Infer().status(), "0");
  EXPECT_EQ(budgets.requests.used(), 0u);
  EXPECT_EQ(service_->model().request_count(), 0u);
  LetGo();
}

// The thread that has loaded the model submits the request, while its deadline passes.
TEST_F(InferCallTest, CancelsARequestThatIsSubmittedWhileTheCallEnds) {
  service::Service::ModelWaiter loaded;
  service_->is_loaded = false;
  service_->on_await = [&](service::Service::ModelWaiter done) { loaded = std::move(done); };
  http2::TestHost host;
  CallContext context{.service = *service_, .rounds = rounds_};
  http2::GrpcStream* const stream = base::ObjectPool<http2::GrpcStream>::Take();
  stream->Begin(host, 1, base::NowNs());
  http2::GrpcCallEvents* const call =
      InferCall::Start(context, http2::GrpcCallRef(*stream), nullptr);
  const std::string message = EncodeRequest("x");
  call->OnMessage({}, message);
  call->OnHalfClose();
  service_->is_loaded = true;
  service_->on_direct = [&](core::Request&) { call->OnCancelled(); };
  bool was_cancelled = false;
  service_->on_infer = [&](core::RequestPtr request) {
    was_cancelled = request->is_cancelled();
    core::CompleteWithError(std::move(request), base::CancelledError("cancelled"));
  };
  loaded(service_->FindModel("m", ""));
  EXPECT_TRUE(was_cancelled);
  call->OnDone();
  stream->Unreference();
}

// The response alone keeps the call then, and the call what it sends to.
TEST_F(InferCallTest, MayGetItsResponsesAfterTheEndOfItsStream) {
  const std::vector<std::function<void(core::RequestPtr)>> ends = {
      RespondBriefly,
      [](core::RequestPtr request) {
        core::CompleteWithError(std::move(request), base::UnavailableError("late"));
      },
      [](core::RequestPtr request) {
        core::ResponseSink& sink = request->sink();
        sink.Send(core::Response::Create(*request), false);
        core::ResponsePtr last = core::Response::Create(*request);
        request.reset();
        sink.Send(std::move(last), true);
      },
      [](core::RequestPtr request) {
        core::ResponseSink& sink = request->sink();
        sink.Send(core::Response::Create(*request), false);
        sink.Send(nullptr, true);
      }};
  for (const auto& end : ends) {
    http2::TestHost host;
    CallContext context{.service = *service_, .rounds = rounds_};
    http2::GrpcStream* const stream = base::ObjectPool<http2::GrpcStream>::Take();
    stream->Begin(host, 1, base::NowNs());
    stream->SetHead(std::make_shared<const http2::GrpcHead>());
    http2::GrpcCallEvents* const call =
        InferCall::Start(context, http2::GrpcCallRef(*stream), nullptr);
    core::RequestPtr submitted;
    service_->on_infer = [&](core::RequestPtr request) { submitted = std::move(request); };
    const std::string message = EncodeRequest("x");
    call->OnMessage({}, message);
    call->OnHalfClose();
    call->OnCancelled();
    call->OnDone();
    stream->Unreference();
    end(std::move(submitted));
    const std::vector<http2::GrpcMessagePtr> orders = host.Take();
    ASSERT_EQ(orders.size(), 1u);
    orders[0]->order.stream->Unreference();
  }
}

}  // namespace
}  // namespace nereid::grpc
