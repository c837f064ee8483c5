// SPDX-License-Identifier: Apache-2.0
#include "http1/request_receiver.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

using Step = RequestReceiver::Step;

// Plans bodies by the field "split" of their requests, and lends memory if the test provides some.
struct Handler final : HttpHandler {
  HttpBodyPlan PlanBody(const HttpHead& head, size_t max_bytes) override {
    HttpBodyPlan plan{.max_bytes = max_bytes};
    if (const auto split = head.FindHeader("split")) plan.split = std::stoul(std::string(*split));
    plan.is_unwanted = head.FindHeader("unwanted").has_value();
    return plan;
  }
  base::BufferRef BodyBuffer(const HttpHead&, const HttpBodyPlan&, size_t size) override {
    asked_bytes = size;
    return std::move(lent);
  }
  void Handle(HttpExchangePtr) override {}

  base::BufferRef lent;
  size_t asked_bytes = 0;
};

std::string Post(std::string_view body, std::string_view fields = "") {
  return "POST /p HTTP/1.1\r\nHost: h\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

struct RequestReceiverTest : testing::Test {
  RequestReceiver& receiver() {
    if (!made) made.emplace(request, handler, options);
    return *made;
  }
  // Moves bytes from the front of `bytes` to where the receiver wants them.
  void Bring(std::string_view& bytes, size_t most) {
    const std::span<std::byte> room = receiver().Room();
    const size_t count = std::min({room.size(), bytes.size(), most});
    ASSERT_GT(count, 0u);
    std::memcpy(room.data(), bytes.data(), count);
    receiver().Received(count);
    bytes.remove_prefix(count);
  }
  // Passes `bytes`, `most` at a time, until the receiver wants something else.
  Step Receive(std::string_view& bytes, size_t most = SIZE_MAX) {
    for (;;) {
      const Step step = receiver().Advance();
      if (step == Step::kContinue) {
        ++continues;
      } else if ((step != Step::kIdle && step != Step::kRead) || bytes.empty()) {
        return step;
      } else {
        Bring(bytes, most);
      }
    }
  }
  Step Receive(const std::string& text) {
    std::string_view bytes = text;
    return Receive(bytes);
  }
  // Describes what has arrived of a request.
  std::string Shown() const {
    return std::string(request.head.method_text()) + " " + std::string(request.head.target()) +
           " " + std::string(request.body);
  }

  HttpServerOptions options;
  Handler handler;
  HttpRequest request;
  std::optional<RequestReceiver> made;
  int continues = 0;
};

TEST_F(RequestReceiverTest, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string large(40'000, 'x');
  const std::string text = "\r\n\r\n" + Post("hello") + "GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n" +
                           "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n" +
                           Post(large, "Split: 10\r\n") + Post("", "X: y\r\n");
  const std::vector<std::string> expected = {"POST /p hello", "GET /a?b=c ", "POST /c abcde",
                                             "POST /p " + large, "POST /p "};
  for (const size_t most : {size_t{1}, size_t{2}, size_t{3}, size_t{50}, size_t{1000}, SIZE_MAX}) {
    std::string_view bytes = text;
    for (const std::string& one : expected) {
      ASSERT_EQ(Step::kRequest, Receive(bytes, most)) << most;
      ASSERT_EQ(one, Shown()) << most;
      receiver().Finish();
    }
    ASSERT_EQ(Step::kIdle, Receive(bytes, most)) << most;
  }
}

TEST_F(RequestReceiverTest, HasNoMemoryWhileItIsIdle) {
  EXPECT_EQ(Step::kRequest, Receive(Post("hello")));
  EXPECT_FALSE(receiver().Spare().empty());
  receiver().Finish();
  EXPECT_EQ(Step::kIdle, receiver().Advance());
  receiver().Release();
  EXPECT_TRUE(receiver().Spare().empty());
  EXPECT_EQ(Step::kRequest, Receive(Post("again")));
}

TEST_F(RequestReceiverTest, TheSplitOfABodyIsAlignedWhereverItsBytesCome) {
  for (const size_t split : {0u, 1u, 10u, 63u, 64u, 65u, 200u}) {
    for (const size_t size : {size_t{250}, size_t{5'000}, size_t{300'000}}) {
      std::string body(size, 'x');
      for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
      const std::string text = Post(body, "Split: " + std::to_string(split) + "\r\n");
      // The second one is at the position that the first one predicted; others follow it at once.
      for (const std::string& sent : {text, text, text + text}) {
        std::string_view bytes = sent;
        while (!bytes.empty() || receiver().has_more()) {
          ASSERT_EQ(Step::kRequest, Receive(bytes));
          EXPECT_EQ(body, request.body);
          EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(request.body.data() + split) % 64);
          receiver().Finish();
        }
      }
    }
  }
}

TEST_F(RequestReceiverTest, ABodyIsReceivedStraightIntoMemoryThatTheHandlerLends) {
  const std::string body(100'000, 'x');
  handler.lent = base::AcquireBuffer(body.size() + 64);
  const std::byte* const memory = handler.lent.data();
  ASSERT_EQ(Step::kRequest, Receive(Post(body, "Split: 10\r\n")));
  EXPECT_EQ(body.size() + 54, handler.asked_bytes);
  EXPECT_EQ(memory + 54, reinterpret_cast<const std::byte*>(request.body.data()));
  EXPECT_EQ(body, request.body);
}

TEST_F(RequestReceiverTest, ARequestStaysAsItIsWhileOthersArriveBehindIt) {
  ASSERT_EQ(Step::kRequest, Receive(Post("first", "X-Name: value\r\n")));
  const std::string shown = Shown();
  // More than fits after it.
  const std::string more = Post(std::string(100'000, 'y'));
  std::string_view bytes = more;
  for (int i = 0; i < 8; ++i) {
    Bring(bytes, 4'000);
    ASSERT_EQ(shown, Shown());
    ASSERT_EQ("value", request.head.Header("x-name"));
  }
  EXPECT_TRUE(receiver().has_more());
  receiver().Finish();
  ASSERT_EQ(Step::kRequest, Receive(bytes));
  EXPECT_EQ("POST /p " + std::string(100'000, 'y'), Shown());
}

TEST_F(RequestReceiverTest, ABodyLivesAsLongAsItsBuffer) {
  std::vector<std::pair<base::BufferRef, std::string_view>> kept;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Step::kRequest, Receive(Post("body " + std::to_string(i))));
    kept.emplace_back(request.body_buffer, request.body);
    receiver().Finish();
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ("body " + std::to_string(i), kept[static_cast<size_t>(i)].second);
  }
}

TEST_F(RequestReceiverTest, DiscardsOversizeRequestsAndContinues) {
  options.max_body_bytes = 1000;
  const std::string front = "0123456789";
  ASSERT_EQ(Step::kRequest, Receive(Post(front + std::string(500'000, 'x'), "Split: 10\r\n")));
  EXPECT_TRUE(request.body_truncated);
  EXPECT_EQ(500'010u, request.body_size);
  EXPECT_EQ(front, request.body);
  EXPECT_FALSE(receiver().leaves_rest());
  receiver().Finish();
  ASSERT_EQ(Step::kRequest, Receive(Post(std::string(1001, 'x'))));
  EXPECT_TRUE(request.body_truncated);
  EXPECT_EQ("", request.body);
  receiver().Finish();
  ASSERT_EQ(Step::kRequest, Receive(Post(std::string(1000, 'x'))));
  EXPECT_FALSE(request.body_truncated);
  EXPECT_EQ(1000u, request.body.size());
}

TEST_F(RequestReceiverTest, DoesNotReadWithoutEnd) {
  options.max_body_bytes = options.max_discard_bytes = 1000;
  ASSERT_EQ(Step::kRequest,
            Receive("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000000000000000\r\n\r\n"));
  EXPECT_TRUE(request.body_truncated);
  EXPECT_TRUE(receiver().leaves_rest());
  EXPECT_EQ(9'000'000'000'000'000'000u, request.body_size);
}

TEST_F(RequestReceiverTest, DoesNotWaitForABodyThatNobodyWants) {
  const std::string head = "POST /p HTTP/1.1\r\nHost: h\r\nUnwanted: yes\r\n";
  for (const std::string_view rest :
       {"Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n",
        "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"}) {
    made.reset();
    ASSERT_EQ(Step::kRequest, Receive(head + std::string(rest)));
    EXPECT_TRUE(request.body_truncated);
    EXPECT_TRUE(receiver().leaves_rest());
    EXPECT_EQ("POST /p ", Shown());
    EXPECT_EQ(0, continues);
  }
  made.reset();
  ASSERT_EQ(Step::kRequest, Receive(head + "Content-Length: 5\r\n\r\nhello"));
  EXPECT_EQ("POST /p ", Shown());  // even if it is there
}

TEST_F(RequestReceiverTest, LetsAClientThatWaitsForItSendItsBody) {
  const std::string head =
      "POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(Step::kRead, Receive(head));
  EXPECT_EQ(1, continues);
  EXPECT_EQ(Step::kRequest, Receive("hello"));
  EXPECT_EQ("POST /p hello", Shown());
  receiver().Finish();
  EXPECT_EQ(Step::kRequest, Receive(head + "hello"));
  EXPECT_EQ(1, continues);  // the body arrived with the head
}

TEST_F(RequestReceiverTest, RefusesWhatItCannotRead) {
  options.max_header_bytes = 20'000;
  options.max_body_bytes = options.max_discard_bytes = 100;
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, int> cases[] = {
      {"GET / HTTP/1.1\nHost: h\n\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'x'), 431},
      {"GET / HTTP/3.0\r\n\r\n", 505},
      {chunked + "zz\r\n", 400},
      {chunked + "1;" + std::string(20'000, 'x'), 400},
      {chunked + "ff\r\n" + std::string(255, 'x') + "\r\n", 413},
  };
  for (const auto& [text, status] : cases) {
    made.reset();
    ASSERT_EQ(Step::kRefused, Receive(text)) << text.substr(0, 80);
    EXPECT_EQ(status, receiver().refusal().status) << text.substr(0, 80);
    EXPECT_EQ(11, request.head.version());
  }
}

TEST_F(RequestReceiverTest, ReportsTheProgressOfARequest) {
  EXPECT_EQ(Step::kIdle, receiver().Advance());
  EXPECT_FALSE(receiver().is_in_head());
  EXPECT_EQ(Step::kRead, Receive("POST / HT"));
  EXPECT_TRUE(receiver().is_in_head());
  EXPECT_EQ(Step::kRead, Receive("TP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n123"));
  EXPECT_FALSE(receiver().is_in_head());
  EXPECT_TRUE(receiver().is_in_body());
  EXPECT_EQ(3u, receiver().arrived_body_bytes());
  EXPECT_EQ(Step::kRead, Receive("4567"));
  EXPECT_EQ(7u, receiver().arrived_body_bytes());
  EXPECT_EQ(Step::kRequest, Receive("890"));
  EXPECT_FALSE(receiver().is_in_body());
  EXPECT_LE(request.start_ns, request.received_ns);
}

TEST_F(RequestReceiverTest, CountsWhatItThrowsAwayAsArrived) {
  options.max_body_bytes = 10;
  EXPECT_EQ(Step::kRead,
            Receive("POST / HTTP/1.1\r\nHost: h\r\nSplit: 4\r\nContent-Length: 100\r\n\r\n"
                    "12345678"));
  EXPECT_EQ(8u, receiver().arrived_body_bytes());
}

TEST_F(RequestReceiverTest, TakesNoNoticeOfWhatComesAfterTheLastRequest) {
  EXPECT_EQ(Step::kRequest, Receive(Post("last")));
  receiver().Finish();
  receiver().IgnoreRest();
  EXPECT_EQ(Step::kRead, Receive(Post("another") + std::string(50'000, '\r')));
}

TEST_F(RequestReceiverTest, RefusesBodiesForWhichTheBudgetHasNoRoom) {
  base::Budget budget(64 << 10);
  options.received_bytes = &budget;
  EXPECT_EQ(Receive(Post(std::string(70 << 10, 'x'))), Step::kRefused);
  EXPECT_EQ(receiver().refusal().status, 413);
  made.reset();
  ASSERT_TRUE(budget.TryTake(60 << 10));
  EXPECT_EQ(Receive(Post(std::string(20 << 10, 'x'))), Step::kRefused);
  EXPECT_EQ(receiver().refusal().status, 503);
  made.reset();
  request = {};
  budget.Give(60 << 10);
  EXPECT_EQ(Receive(Post(std::string(20 << 10, 'x'))), Step::kRequest);
  made.reset();
  request = {};
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(RequestReceiverTest, CountsHeadsThatAreLargeAndIncomplete) {
  base::Budget budget(8 << 10);
  options.received_bytes = &budget;
  const std::string head = "GET /p HTTP/1.1\r\nHost: h\r\nx: ";
  EXPECT_EQ(Receive(head + std::string(2 << 10, 'y')), Step::kRead);
  EXPECT_EQ(budget.used(), 0u);
  made.reset();
  EXPECT_EQ(Receive(head + std::string(30 << 10, 'y')), Step::kRefused);
  EXPECT_EQ(receiver().refusal().status, 503);
  made.reset();
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace nereid::http1
