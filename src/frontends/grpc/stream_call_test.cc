// SPDX-License-Identifier: Apache-2.0
#include "grpc/stream_call.h"

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
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

TEST_F(StreamCallTest, ReportsARequestThatIsReleasedWithoutAResponse) {
  service_->on_infer = [](core::RequestPtr request) { request.reset(); };
  Start();
  const int32_t stream = OpenStream();
  EXPECT_EQ(Response(stream, 0).error_message(), "expected a single response, got 0");
  // The stream goes on, and ends.
  client_->SendMore(stream, Prefixed(EncodeRequest("x", "second")), /*open=*/false);
  const auto second = Response(stream, 1);
  EXPECT_EQ(second.error_message(), "expected a single response, got 0");
  EXPECT_EQ(second.infer_response().id(), "second");
  EXPECT_EQ(client_->Finish(stream).status(), "0");
}

TEST_F(StreamCallTest, EndsARequestThatIsReleasedAfterAResponseThatWasNotTheLast) {
  service_->on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    core::ResponsePtr first = core::Response::Create(*request);
    core::ResponsePtr second = core::Response::Create(*request);
    request.reset();
    sink.Send(std::move(first), false);
    sink.Send(std::move(second), false);
  };
  Start();
  const int32_t stream = OpenStream();
  EXPECT_EQ(Response(stream, 0).infer_response().model_name(), "m");
  client_->SendMore(stream, "", /*open=*/false);
  const http2::Reply reply = client_->Finish(stream);
  EXPECT_EQ(reply.status(), "0");
  EXPECT_EQ(reply.messages().size(), 1u);
}

TEST_F(StreamCallTest, ARequestWhoseResponseIsSentLeavesItsPlaceToTheNext) {
  for (const bool is_decoupled : {false, true}) {
    if (is_decoupled) UseDecoupledModel();
    core::Budgets budgets{{.requests = 1, .requests_per_model = 1}};
    service_->on_infer = [&](core::RequestPtr request) {
      Keep(*request);
      if (!is_decoupled) return RespondBriefly(std::move(request));
      // Its end is of its own, and here without a message.
      request->sink().Send(core::Response::Create(*request), false);
      request->sink().Send(nullptr, true);
    };
    Start({.budgets = &budgets});
    const int32_t stream = OpenStream();
    EXPECT_EQ(Response(stream, 0).error_message(), "");
    for (size_t i = 1; i < 3; ++i) {
      client_->SendMore(stream, Prefixed(EncodeRequest("x")), /*open=*/true);
      EXPECT_EQ(Response(stream, i).error_message(), "");
    }
    client_->SendMore(stream, "", /*open=*/false);
    EXPECT_EQ(client_->Finish(stream).status(), "0");
    EXPECT_EQ(budgets.requests.used(), 0u);
    EXPECT_EQ(service_->model().request_count(), 0u);
    LetGo();
    frontend_.reset();
  }
}

TEST_F(StreamCallTest, AModelThatWaitsForTheClientGoesOnWhenTheStreamEnds) {
  UseDecoupledModel();
  std::promise<core::RequestPtr> received;
  service_->on_infer = [&](core::RequestPtr request) { received.set_value(std::move(request)); };
  Start({.max_unsent_responses = 1}, /*window=*/10);
  const int32_t stream = OpenStream();
  core::RequestPtr request = received.get_future().get();
  std::promise<void> sent_all;
  std::thread model([&] {
    for (int i = 0; i < 10; ++i) {
      request->sink().Send(core::Response::Create(*request), false);
    }
    sent_all.set_value();
    core::CompleteWithError(std::move(request), base::CancelledError("cancelled"));
  });
  std::future<void> is_done = sent_all.get_future();
  EXPECT_TRUE(client_->Until([&] { return !client_->reply(stream).body.empty(); }));
  // No request.
  client_->SendMore(stream, Prefixed("\xff"), /*open=*/true);
  EXPECT_EQ(is_done.wait_for(http2::Client::kLong), std::future_status::ready);
  model.join();
}

// With triton_grpc_error, the error of one request ends the stream, and thereby the others: also
// one that another thread is submitting.
TEST_F(StreamCallTest, CancelsARequestThatIsSubmittedWhileTheStreamEnds) {
  core::RequestPtr first;
  std::promise<bool> second_was_cancelled;
  int requests = 0;
  service_->on_infer = [&](core::RequestPtr request) {
    if (++requests == 1) {
      first = std::move(request);
    } else {
      second_was_cancelled.set_value(request->is_cancelled());
      core::CompleteWithError(std::move(request), base::CancelledError("cancelled"));
    }
  };
  service_->on_direct = [&](core::Request&) {
    if (first != nullptr) core::CompleteWithError(std::move(first), base::InternalError("broken"));
  };
  Start();
  const int32_t stream = OpenStream("x", {{"triton_grpc_error", "true"}});
  client_->SendMore(stream, Prefixed(EncodeRequest("x")), /*open=*/true);
  EXPECT_EQ(client_->Finish(stream).headers.at("grpc-message"), "broken");
  EXPECT_TRUE(second_was_cancelled.get_future().get());
}

// A model may end that way when it sees that its request was cancelled.
TEST_F(StreamCallTest, EndsThoughACancelledRequestOfADecoupledModelIsReleasedWithoutAResponse) {
  UseDecoupledModel();
  std::promise<void> received;
  core::RequestPtr waiting;
  service_->on_infer = [&](core::RequestPtr request) {
    waiting = std::move(request);
    received.set_value();
  };
  std::promise<void> cancelled;
  service_->on_cancel = [&](core::Request&) {
    waiting.reset();
    cancelled.set_value();
  };
  Start();
  const int32_t stream = OpenStream();
  received.get_future().wait();
  client_->Reset(stream);
  cancelled.get_future().wait();
  EXPECT_TRUE(frontend_->Drain(std::chrono::steady_clock::now() + http2::Client::kLong));
}

}  // namespace
}  // namespace nereid::grpc
