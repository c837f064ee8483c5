// SPDX-License-Identifier: Apache-2.0
// Tests requests through the C API: ownership, and when callbacks run.
#include <atomic>
#include <thread>

#include "embedding.h"
#include "triton/core/tritonbackend.h"

namespace embedding {
namespace {

const std::vector<float> kValues = {1, 2, 3, 4};

TEST(Inference, ReadsTheCallersBuffersAndWritesIntoTheAllocators) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  Allocator allocator;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator)
      .Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 4}, kValues);
  EXPECT_OK(TRITONSERVER_InferenceRequestSetId(request.get(), "seven"));
  ASSERT_EQ(request.Submit(), "");
  const std::vector<Reply>& replies = outcome.Wait();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error, "");
  EXPECT_TRUE(replies[0].is_final);
  EXPECT_EQ(replies[0].id, "seven");
  EXPECT_EQ(replies[0].model, "model");
  EXPECT_EQ(replies[0].version, 1);
  ASSERT_EQ(replies[0].outputs.size(), 1u);
  EXPECT_EQ(replies[0].outputs[0].name, "OUTPUT0");
  EXPECT_EQ(replies[0].outputs[0].type, TRITONSERVER_TYPE_FP32);
  EXPECT_EQ(replies[0].outputs[0].shape, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(replies[0].outputs[0].As<float>(), kValues);
  EXPECT_EQ(outcome.releases(), 1);
}

TEST(Inference, SeveralPiecesOfDataAreOneInput) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  Allocator allocator;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator)
      .Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 8}, kValues);
  EXPECT_OK(TRITONSERVER_InferenceRequestAppendInputData(request.get(), "INPUT0", kValues.data(),
                                                         16, TRITONSERVER_MEMORY_CPU, 0));
  ASSERT_EQ(request.Submit(), "");
  EXPECT_EQ(outcome.Wait()[0].outputs[0].As<float>(), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(Inference, ARequestCanBeUsedAgainAfterItsRelease) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  Allocator allocator;
  Request request(server, "model");
  std::vector<float> values = kValues;
  request.Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 4}, values);
  for (int i = 0; i < 100; ++i) {
    Outcome outcome;
    values[0] = static_cast<float>(i);
    request.SendResponsesTo(outcome, allocator);
    ASSERT_EQ(request.Submit(), "");
    EXPECT_EQ(outcome.Wait()[0].outputs[0].As<float>(), values);
  }
}

TEST(Inference, WhatDoesNotFitTheModelIsRefusedAtOnceAndStaysTheCallers) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  Allocator allocator;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator)
      .Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 5}, kValues);
  EXPECT_EQ(request.Submit(),
            "Invalid argument: [request id: <id_unknown>] input byte size mismatch for input "
            "'INPUT0' for model 'model'. Expected 20, got 16");
  EXPECT_EQ(outcome.releases(), 0);
  EXPECT_EQ(outcome.replies(), 0u);
  // The error can be corrected.
  EXPECT_OK(TRITONSERVER_InferenceRequestRemoveInput(request.get(), "INPUT0"));
  request.Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 4}, kValues);
  ASSERT_EQ(request.Submit(), "");
  EXPECT_EQ(outcome.Wait()[0].error, "");
}

TEST(Inference, AFullQueueRefusesAtOnceAndCallsNoCallback) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model", R"(max_batch_size: 1
                      dynamic_batching { default_queue_policy { max_queue_size: 1 } }
                      parameters { key: "execute_delay_ms" value: { string_value: "300" } })")
                    .path());
  Allocator allocator;
  std::vector<Outcome> outcomes(8);
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<bool> accepted;
  for (Outcome& outcome : outcomes) {
    requests.push_back(std::make_unique<Request>(server, "model"));
    requests.back()
        ->SendResponsesTo(outcome, allocator)
        .Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 4}, kValues);
    const std::string error = requests.back()->Submit();
    accepted.push_back(error.empty());
    if (!error.empty()) {
      EXPECT_EQ(error, "Unavailable: [request id: <id_unknown>] Exceeds maximum queue size");
    }
  }
  EXPECT_FALSE(accepted.back());
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (accepted[i]) {
      EXPECT_EQ(outcomes[i].Wait()[0].error, "");
    } else {
      EXPECT_EQ(outcomes[i].releases(), 0);
      EXPECT_EQ(outcomes[i].replies(), 0u);
    }
  }
}

TEST(Inference, ACancelledRequestLeavesTheQueue) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model", R"(max_batch_size: 0
                      parameters { key: "execute_delay_ms" value: { string_value: "500" } })")
                    .path());
  Allocator allocator;
  Outcome running, waiting;
  Request first(server, "model"), second(server, "model");
  bool is_cancelled = false;
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestIsCancelled(second.get(), &is_cancelled)),
            "Internal: It is not possible to query cancellation status before calling "
            "TRITONSERVER_InferAsync.");
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestCancel(second.get())),
            "Internal: It is not possible to cancel an inference request before calling "
            "TRITONSERVER_InferAsync.");
  first.SendResponsesTo(running, allocator).Input("INPUT0", TRITONSERVER_TYPE_FP32, {4}, kValues);
  second.SendResponsesTo(waiting, allocator).Input("INPUT0", TRITONSERVER_TYPE_FP32, {4}, kValues);
  ASSERT_EQ(first.Submit(), "");
  ASSERT_EQ(second.Submit(), "");
  EXPECT_OK(TRITONSERVER_InferenceRequestCancel(second.get()));
  EXPECT_OK(TRITONSERVER_InferenceRequestIsCancelled(second.get(), &is_cancelled));
  EXPECT_TRUE(is_cancelled);
  EXPECT_EQ(waiting.Wait()[0].error, "Cancelled: [request id: <id_unknown>] Request cancelled");
  EXPECT_EQ(running.Wait()[0].error, "");
}

// In Triton a TRITONSERVER_InferenceRequest is a TRITONBACKEND_Request, and some code casts one to
// the other.
TEST(Inference, AResponseFactoryOfTheCallersRequestFollowsItsCancellation) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model", R"(max_batch_size: 0
                      parameters { key: "execute_delay_ms" value: { string_value: "200" } })")
                    .path());
  Allocator allocator;
  Outcome outcome;
  Request request(server, "model");
  auto* const as_backend = reinterpret_cast<TRITONBACKEND_Request*>(request.get());
  const auto is_cancelled = [](TRITONBACKEND_ResponseFactory* factory) {
    bool is = false;
    EXPECT_OK(TRITONBACKEND_ResponseFactoryIsCancelled(factory, &is));
    return is;
  };
  request.SendResponsesTo(outcome, allocator).Input("INPUT0", TRITONSERVER_TYPE_FP32, {4}, kValues);
  ASSERT_EQ(request.Submit(), "");
  TRITONBACKEND_ResponseFactory* running = nullptr;
  EXPECT_OK(TRITONBACKEND_ResponseFactoryNew(&running, as_backend));
  EXPECT_OK(TRITONBACKEND_RequestRelease(as_backend, TRITONSERVER_REQUEST_RELEASE_ALL));
  EXPECT_FALSE(is_cancelled(running));
  EXPECT_OK(TRITONSERVER_InferenceRequestCancel(request.get()));
  EXPECT_TRUE(is_cancelled(running));
  outcome.Wait();
  EXPECT_EQ(outcome.releases(), 1);
  EXPECT_TRUE(is_cancelled(running));
  EXPECT_OK(TRITONBACKEND_ResponseFactoryDelete(running));
  // A factory made after the request's end reports the same, and cannot respond.
  TRITONBACKEND_ResponseFactory* late = nullptr;
  EXPECT_OK(TRITONBACKEND_ResponseFactoryNew(&late, as_backend));
  EXPECT_TRUE(is_cancelled(late));
  EXPECT_EQ(
      Take(TRITONBACKEND_ResponseFactorySendFlags(late, TRITONSERVER_RESPONSE_COMPLETE_FINAL)),
      "Internal: [request id: <id_unknown>] the final response of the request has been sent "
      "already");
  EXPECT_OK(TRITONBACKEND_ResponseFactoryDelete(late));
  EXPECT_EQ(outcome.replies(), 1u);
  // A new submission is not cancelled. Cancelling it also affects its factory, even after the
  // response.
  Outcome again;
  request.SendResponsesTo(again, allocator);
  ASSERT_EQ(request.Submit(), "");
  again.Wait();
  EXPECT_OK(TRITONBACKEND_ResponseFactoryNew(&late, as_backend));
  EXPECT_FALSE(is_cancelled(late));
  EXPECT_OK(TRITONSERVER_InferenceRequestCancel(request.get()));
  EXPECT_TRUE(is_cancelled(late));
  EXPECT_OK(TRITONBACKEND_ResponseFactoryDelete(late));
}

TEST(Inference, ARequestCanNotBeDeletedWhileTheServerHasIt) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model", R"(
                      parameters { key: "execute_delay_ms" value: { string_value: "200" } })")
                    .path());
  Allocator allocator;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator).Input("INPUT0", TRITONSERVER_TYPE_FP32, {4}, kValues);
  ASSERT_EQ(request.Submit(), "");
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestDelete(request.get())),
            "Invalid argument: [request id: <id_unknown>] the request can not be deleted before it "
            "is released");
  EXPECT_EQ(request.Submit(),
            "Internal: [request id: <id_unknown>] Invalid request state transition from PENDING "
            "to INITIALIZED");
  EXPECT_EQ(outcome.Wait()[0].error, "");
}

TEST(Inference, DecoupledModelsSendManyResponsesAndThenAnEnd) {
  Repository repository;
  repository.Add("repeat", R"(
    backend: "repeat"
    max_batch_size: 0
    model_transaction_policy { decoupled: true }
    input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
            { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
            { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
    output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
             { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ])");
  Server server(repository.path());
  uint32_t flags = 0;
  EXPECT_OK(
      TRITONSERVER_ServerModelTransactionProperties(server.get(), "repeat", -1, &flags, nullptr));
  EXPECT_EQ(flags, static_cast<uint32_t>(TRITONSERVER_TXN_DECOUPLED));
  Allocator allocator;
  Outcome outcome;
  Request request(server, "repeat");
  const std::vector<int32_t> values = {5, 6, 7};
  const std::vector<uint32_t> delays = {0, 0, 0}, wait = {0};
  request.SendResponsesTo(outcome, allocator)
      .Input("IN", TRITONSERVER_TYPE_INT32, {3}, values)
      .Input("DELAY", TRITONSERVER_TYPE_UINT32, {3}, delays)
      .Input("WAIT", TRITONSERVER_TYPE_UINT32, {1}, wait);
  ASSERT_EQ(request.Submit(), "");
  const std::vector<Reply>& replies = outcome.Wait();
  ASSERT_EQ(replies.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(replies[i].is_final);
    EXPECT_EQ(replies[i].outputs.at(0).As<int32_t>(), std::vector<int32_t>{values[i]});
  }
  EXPECT_FALSE(replies[3].has_response);
  EXPECT_TRUE(replies[3].is_final);
}

TEST(Inference, TheShapeOfARawInputFollowsFromItsBytes) {
  Repository repository;
  repository.AddIdentity("numbers").Add("text", R"(
    backend: "identity" max_batch_size: 4
    input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]
    output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] } ])");
  Server server(repository.path());
  Allocator allocator;
  for (const bool is_text : {false, true}) {
    Outcome outcome;
    Request request(server, is_text ? "text" : "numbers");
    request.SendResponsesTo(outcome, allocator);
    EXPECT_OK(TRITONSERVER_InferenceRequestAddRawInput(request.get(), "raw"));
    EXPECT_OK(TRITONSERVER_InferenceRequestAppendInputData(request.get(), "raw", kValues.data(), 16,
                                                           TRITONSERVER_MEMORY_CPU, 0));
    ASSERT_EQ(request.Submit(), "");
    const Output& output = outcome.Wait()[0].outputs.at(0);
    EXPECT_EQ(output.shape, (std::vector<int64_t>{1, is_text ? 1 : 4}));
    EXPECT_EQ(output.bytes.size(), is_text ? 20u : 16u);
  }
}

TEST(Inference, ParametersOfAResponseAreReadable) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model", R"(max_batch_size: 8
                      parameters { key: "test_response_parameters" value: { string_value: "true" } }
                    )")
                    .path());
  Allocator allocator;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator)
      .Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 4}, kValues);
  EXPECT_OK(TRITONSERVER_InferenceRequestSetIntParameter(request.get(), "count", 3));
  EXPECT_OK(TRITONSERVER_InferenceRequestSetStringParameter(request.get(), "name", "value"));
  EXPECT_OK(TRITONSERVER_InferenceRequestSetBoolParameter(request.get(), "flag", true));
  EXPECT_OK(TRITONSERVER_InferenceRequestSetDoubleParameter(request.get(), "share", 0.5));
  ASSERT_EQ(request.Submit(), "");
  EXPECT_EQ(outcome.Wait()[0].error, "");
}

TEST(Inference, WhatIsSetCanBeRead) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model", R"(max_batch_size: 8
                      dynamic_batching { priority_levels: 4 default_priority_level: 2 })")
                    .path());
  Request request(server, "model");
  uint64_t number = 0;
  const char* text = nullptr;
  EXPECT_OK(TRITONSERVER_InferenceRequestPriorityUInt64(request.get(), &number));
  EXPECT_EQ(number, 2u);
  EXPECT_OK(TRITONSERVER_InferenceRequestSetPriority(request.get(), 3));
  EXPECT_OK(TRITONSERVER_InferenceRequestPriorityUInt64(request.get(), &number));
  EXPECT_EQ(number, 3u);
  EXPECT_OK(TRITONSERVER_InferenceRequestSetPriorityUInt64(request.get(), 99));
  EXPECT_OK(TRITONSERVER_InferenceRequestPriorityUInt64(request.get(), &number));
  EXPECT_EQ(number, 2u);
  EXPECT_OK(TRITONSERVER_InferenceRequestSetCorrelationIdString(request.get(), "sequence"));
  EXPECT_OK(TRITONSERVER_InferenceRequestCorrelationIdString(request.get(), &text));
  EXPECT_STREQ(text, "sequence");
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestCorrelationId(request.get(), &number)),
            "Invalid argument: given request's correlation id is not an unsigned int");
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestSetCorrelationIdString(
                request.get(), std::string(129, 'x').c_str())),
            "Unsupported: string correlation ID cannot be longer than 128 characters");
  EXPECT_OK(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request.get(), 77));
  EXPECT_OK(TRITONSERVER_InferenceRequestTimeoutMicroseconds(request.get(), &number));
  EXPECT_EQ(number, 77u);
  EXPECT_OK(TRITONSERVER_InferenceRequestAddRequestedOutput(request.get(), "OUTPUT0"));
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestAddRequestedOutput(request.get(), "OUTPUT0")),
            "Invalid argument: [request id: <id_unknown>] output 'OUTPUT0' already exists in "
            "request");
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestRemoveInput(request.get(), "INPUT0")),
            "Invalid argument: [request id: <id_unknown>] input 'INPUT0' does not exist in "
            "request");
}

// A request of a program that makes one for each inference and deletes it in the callback.
struct Forgotten {
  static void OnRelease(TRITONSERVER_InferenceRequest* request, uint32_t, void*) {
    EXPECT_OK(TRITONSERVER_InferenceRequestDelete(request));
  }
  static void OnResponse(TRITONSERVER_InferenceResponse* response, uint32_t, void* left) {
    EXPECT_OK(TRITONSERVER_InferenceResponseDelete(response));
    static_cast<std::atomic<int>*>(left)->fetch_sub(1);
  }
};

TEST(Inference, ManyThreadsMayAskAtOnceAndDeleteInTheReleaseCallback) {
  Repository repository;
  Server server(repository
                    .AddIdentity("model",
                                 "max_batch_size: 8 dynamic_batching { } "
                                 "instance_group { kind: KIND_CPU count: 2 }")
                    .path());
  Allocator allocator;
  constexpr int kThreads = 4, kEach = 500;
  std::atomic<int> left{kThreads * kEach};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        TRITONSERVER_InferenceRequest* request = nullptr;
        const int64_t shape[] = {1, 4};
        EXPECT_OK(TRITONSERVER_InferenceRequestNew(&request, server.get(), "model", -1));
        EXPECT_OK(TRITONSERVER_InferenceRequestAddInput(request, "INPUT0", TRITONSERVER_TYPE_FP32,
                                                        shape, 2));
        EXPECT_OK(TRITONSERVER_InferenceRequestAppendInputData(request, "INPUT0", kValues.data(),
                                                               16, TRITONSERVER_MEMORY_CPU, 0));
        EXPECT_OK(TRITONSERVER_InferenceRequestSetReleaseCallback(request, Forgotten::OnRelease,
                                                                  nullptr));
        EXPECT_OK(TRITONSERVER_InferenceRequestSetResponseCallback(
            request, allocator.get(), nullptr, Forgotten::OnResponse, &left));
        EXPECT_OK(TRITONSERVER_ServerInferAsync(server.get(), request, nullptr));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (left.load() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace embedding
