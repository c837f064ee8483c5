// SPDX-License-Identifier: Apache-2.0
#include "backend_kit/response_line.h"

#include <gtest/gtest.h>

#include <future>

#include "backend_kit/testing/fake_host.h"

namespace nereid::backend {
namespace {

class ResponseLineTest : public testing::Test {
 protected:
  void Send(const std::string& error, bool is_final = false) {
    TRITONBACKEND_Response* response = nullptr;
    Error(TRITONBACKEND_ResponseNew(&response, &request_)).Ignore();
    line_->Send(response, is_final, Error::Internal(error));
  }
  // Waits until everything so far has been sent.
  void AwaitSent() {
    std::promise<void> sent;
    line_->Then([&sent] { sent.set_value(); });
    sent.get_future().wait();
  }
  std::vector<std::string> errors() const {
    std::vector<std::string> errors;
    for (const SentResponse& response : request_.answer.sent) errors.push_back(response.error);
    return errors;
  }

  std::promise<void> client_;  // reads once this has its value
  TRITONBACKEND_Request request_;
  BackgroundWork threads_;
  const std::shared_ptr<ResponseLine> line_ = std::make_shared<ResponseLine>(threads_);
};

TEST_F(ResponseLineTest, TheThreadSendsWhileTheClientReads) {
  Send("one");
  Send("two", true);
  EXPECT_EQ(errors(), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(request_.answer.sent[1].is_final);
  bool is_done = false;
  line_->Then([&is_done] { is_done = true; });
  EXPECT_TRUE(is_done);
  EXPECT_FALSE(line_->is_busy());
}

TEST_F(ResponseLineTest, TheThreadGoesOnWhileTheClientDoesNotRead) {
  Send("one");
  request_.reading = client_.get_future().share();
  Send("two");
  Send("three");
  std::promise<size_t> sent;
  line_->Then([&] { sent.set_value(request_.answer.sent.size()); });
  Send("four", true);
  EXPECT_TRUE(line_->is_busy());
  EXPECT_EQ(errors(), (std::vector<std::string>{"one"}));
  client_.set_value();
  EXPECT_EQ(sent.get_future().get(), 3u);
  AwaitSent();
  EXPECT_EQ(errors(), (std::vector<std::string>{"one", "two", "three", "four"}));
  EXPECT_TRUE(request_.answer.sent[3].is_final);
}

TEST_F(ResponseLineTest, OneClientThatDoesNotReadHoldsUpNoOther) {
  request_.reading = client_.get_future().share();
  Send("slow");
  TRITONBACKEND_Request other;
  TRITONBACKEND_Response* response = nullptr;
  Error(TRITONBACKEND_ResponseNew(&response, &other)).Ignore();
  const auto line = std::make_shared<ResponseLine>(threads_);
  line->Send(response, true, {});
  EXPECT_EQ(other.answer.sent.size(), 1u);
  EXPECT_TRUE(errors().empty());
  client_.set_value();
  AwaitSent();
}

}  // namespace
}  // namespace nereid::backend
