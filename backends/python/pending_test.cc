// SPDX-License-Identifier: Apache-2.0
#include "python_backend/pending.h"

#include <gtest/gtest.h>

#include <future>

#include "backend_kit/testing/fake_host.h"

namespace nereid::python {
namespace {

using backend::Error;

constexpr const char* kClosed = "Unable to send response. Response sender has been closed.";

class PendingTest : public testing::Test {
 protected:
  static ModelResponse Tensors() {
    static const std::string bytes = "abcd";
    return {.kind = ResponseKind::kTensors,
            .tensors = {{.name = "OUT",
                         .datatype = TRITONSERVER_TYPE_INT8,
                         .shape = {4},
                         .data = {bytes.data(), bytes.size()}}},
            .text = R"({"speed": 7})"};
  }
  static ModelResponse Failure(const std::string& text) {
    return {.kind = ResponseKind::kError, .code = TRITONSERVER_ERROR_INVALID_ARG, .text = text};
  }
  static std::string Text(Error error) { return error.message(); }

  const std::vector<SentResponse>& sent() const { return request_.answer.sent; }

  TRITONBACKEND_Request request_;
  const OutputRules rules_;
  backend::BackgroundWork threads_;
};

TEST_F(PendingTest, AClientGetsTensorsAndParametersOfAResponse) {
  Pending pending(&request_, false, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Tensors(), true)), "");
  EXPECT_TRUE(pending.is_closed());
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_TRUE(sent()[0].is_final);
  EXPECT_EQ(sent()[0].outputs.at("OUT").bytes, "abcd");
  EXPECT_EQ(sent()[0].parameters.at("speed"), "7");
}

TEST_F(PendingTest, AnErrorOfTheModelIsAResponse) {
  Pending pending(&request_, false, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Failure("no such word"), true)), "");
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(sent()[0].error, "no such word");
}

TEST_F(PendingTest, NothingFollowsAFinalResponse) {
  Pending pending(&request_, true, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
  EXPECT_EQ(Text(pending.Send(Tensors(), true)), "");
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), kClosed);
  EXPECT_EQ(Text(pending.End()), kClosed);
  pending.Fail(Error::Internal("too late"));
  pending.Abandon();
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_FALSE(sent()[0].is_final);
  EXPECT_TRUE(sent()[1].is_final);
}

TEST_F(PendingTest, AnEndHasNoResponse) {
  {
    Pending pending(&request_, true, rules_, threads_);
    EXPECT_EQ(Text(pending.End()), "");
    EXPECT_TRUE(pending.is_closed());
  }
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_TRUE(sent()[0].is_final);
  EXPECT_TRUE(sent()[0].outputs.empty());
  EXPECT_EQ(request_.answer.open_factories, 0);
}

TEST_F(PendingTest, AFailureIsTheLastResponse) {
  Pending pending(&request_, true, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
  pending.Fail(Error::Internal("the worker died"));
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_EQ(sent()[1].error, "the worker died");
  EXPECT_TRUE(sent()[1].is_final);
}

// The client of a model with one response has that already: an error would be a second one.
TEST_F(PendingTest, AFailureAfterTheOnlyResponseOfAModelIsItsEnd) {
  Pending pending(&request_, false, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
  pending.Fail(Error::Internal("the worker died"));
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_EQ(sent()[1].error, "");
  EXPECT_TRUE(sent()[1].is_final);
}

TEST_F(PendingTest, TheEndComesAfterTheResponsesForWhichTheClientIsTooSlow) {
  std::promise<void> client;
  request_.reading = client.get_future().share();
  Pending pending(&request_, true, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
  EXPECT_EQ(Text(pending.End()), "");
  EXPECT_TRUE(pending.waits_for_client());
  EXPECT_TRUE(sent().empty());
  client.set_value();
  std::promise<void> all;
  pending.WhenSent([&all] { all.set_value(); });
  all.get_future().wait();
  ASSERT_EQ(sent().size(), 3u);
  EXPECT_TRUE(sent()[2].is_final);
}

TEST_F(PendingTest, ADroppedRequestEndsOrFailsAsItsClientExpects) {
  TRITONBACKEND_Request plain, responded, decoupled;
  Pending(&plain, false, rules_, threads_).Abandon();
  {
    Pending pending(&responded, false, rules_, threads_);
    EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
    pending.Abandon();
  }
  Pending(&decoupled, true, rules_, threads_).Abandon();
  ASSERT_EQ(plain.answer.sent.size(), 1u);
  EXPECT_EQ(plain.answer.sent[0].error, "the model dropped the request without a response");
  ASSERT_EQ(responded.answer.sent.size(), 2u);
  EXPECT_EQ(responded.answer.sent[1].error, "");
  ASSERT_EQ(decoupled.answer.sent.size(), 1u);
  EXPECT_EQ(decoupled.answer.sent[0].error, "");
  EXPECT_TRUE(decoupled.answer.sent[0].is_final);
}

TEST_F(PendingTest, AReleasedRequestIsStillRespondedTo) {
  Pending pending(&request_, true, rules_, threads_);
  pending.Detach();
  EXPECT_EQ(request_.answer.open_factories, 1);
  EXPECT_EQ(Text(pending.Send(Tensors(), false)), "");
  EXPECT_EQ(Text(pending.End()), "");
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_EQ(sent()[0].outputs.at("OUT").bytes, "abcd");
}

TEST_F(PendingTest, ARequestThatIsOverNeedsNothingOfTheServerWhenItIsReleased) {
  Pending pending(&request_, false, rules_, threads_);
  EXPECT_EQ(Text(pending.Send(Tensors(), true)), "");
  pending.Detach();
  EXPECT_EQ(request_.answer.open_factories, 0);
}

TEST_F(PendingTest, CancellationIsSeenBeforeAndAfterTheRelease) {
  Pending pending(&request_, true, rules_, threads_);
  EXPECT_FALSE(pending.IsCancelled().value());
  request_.is_cancelled = true;
  EXPECT_TRUE(pending.IsCancelled().value());
  pending.Detach();
  EXPECT_TRUE(pending.IsCancelled().value());
  request_.is_cancelled = false;
  EXPECT_FALSE(pending.IsCancelled().value());
}

TEST_F(PendingTest, WhatARequestIsOwedIsKnownAfterItsReleaseToo) {
  auto config = backend::ModelConfig::Parse(
      R"({"output": [{"name": "OUT", "data_type": "TYPE_INT8", "dims": ["4"]},
                     {"name": "MORE", "data_type": "TYPE_INT8", "dims": ["1"]}]})");
  const OutputRules rules = OutputRules::Create("m", config.value(), true).value();
  request_.wanted = {"OUT", "MORE"};
  Pending pending(&request_, false, rules, threads_);
  const std::string lacking = "the response of model 'm' lacks output 'MORE'";
  EXPECT_EQ(Text(pending.Check(Tensors())), lacking);
  pending.Detach();
  request_.wanted.clear();
  EXPECT_EQ(Text(pending.Check(Tensors())), lacking);
}

TEST_F(PendingTest, OneOfManyThreadsHasTheLastWord) {
  for (int round = 0; round < 50; ++round) {
    TRITONBACKEND_Request request;
    Pending pending(&request, true, rules_, threads_);
    std::vector<std::future<void>> threads;
    for (int i = 0; i < 4; ++i) {
      threads.push_back(std::async(std::launch::async, [&pending, i] {
        if (i % 2 == 0) return pending.Fail(Error::Internal("failed"));
        pending.Abandon();
      }));
    }
    for (auto& thread : threads) thread.get();
    EXPECT_EQ(request.answer.sent.size(), 1u);
  }
}

TEST(PendingTable, FindsRequestsByTheirNumbersUntilTheyAreRemoved) {
  const OutputRules rules;
  backend::BackgroundWork threads;
  TRITONBACKEND_Request request;
  PendingTable table;
  const auto first = std::make_shared<Pending>(&request, false, rules, threads);
  const auto second = std::make_shared<Pending>(&request, false, rules, threads);
  const uint64_t one = table.Add(first);
  const uint64_t two = table.Add(second);
  EXPECT_NE(one, two);
  EXPECT_NE(one, 0u) << "zero stands for no request";
  EXPECT_EQ(table.Find(one), first);
  EXPECT_EQ(table.Find(two), second);
  table.Remove(one);
  EXPECT_EQ(table.Find(one), nullptr);
  EXPECT_EQ(table.Find(12345), nullptr);
  EXPECT_NE(table.Add(first), one) << "a worker may still use the old number";
}

TEST(PendingTable, FailsAllAndForgetsThem) {
  const OutputRules rules;
  backend::BackgroundWork threads;
  TRITONBACKEND_Request requests[3];
  PendingTable table;
  uint64_t last = 0;
  for (TRITONBACKEND_Request& request : requests) {
    last = table.Add(std::make_shared<Pending>(&request, false, rules, threads));
  }
  table.FailAll(Error::Unavailable("the model is unloaded"));
  for (const TRITONBACKEND_Request& request : requests) {
    ASSERT_EQ(request.answer.sent.size(), 1u);
    EXPECT_EQ(request.answer.sent[0].error, "the model is unloaded");
  }
  EXPECT_EQ(table.Find(last), nullptr);
}

}  // namespace
}  // namespace nereid::python
