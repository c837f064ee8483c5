// SPDX-License-Identifier: Apache-2.0
#include "core/execution_mark.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::core {
namespace {

using testing::HasSubstr;

class ExecutionMarkTest : public testing::Test {
 protected:
  RequestPtr MakeRequest(std::string_view id) {
    RequestPtr request = MakeFakeRequest(*model_, sink_, {1});
    request->id = id;
    return request;
  }
  static std::string Here() { return DescribeExecutionsOf(base::ThisThreadId()); }

  std::unique_ptr<Model> model_ = MakeFakeModel(0, {1});
  FakeSink sink_;
};

TEST_F(ExecutionMarkTest, NamesModelVersionInstanceAndRequestsWhileTheyAreExecuted) {
  const RequestPtr first = MakeRequest("abc");
  const RequestPtr second = MakeRequest("");
  Request* const requests[] = {first.get(), second.get()};
  ExecutionMark mark(ExecutionMark::Purpose::kExecuting, "m", 3, "m_0_1");
  EXPECT_EQ(Here(), "");
  mark.Begin(requests, 2);
  EXPECT_EQ(Here(),
            "executing model 'm' version 3, instance 'm_0_1', requests: 'abc', (without an id)");
  EXPECT_EQ(DescribeExecutionsOf(1), "");
  mark.End();
  EXPECT_EQ(Here(), "");
}

TEST_F(ExecutionMarkTest, NamesAModelThatIsBeingLoaded) {
  ExecutionMark mark(ExecutionMark::Purpose::kLoading, "m", 1);
  mark.Begin(nullptr, 0);
  EXPECT_EQ(Here(), "loading model 'm' version 1");
  mark.End();
}

TEST_F(ExecutionMarkTest, NamesAFewRequestsOfALargeBatch) {
  const RequestPtr request = MakeRequest("r");
  const std::vector<Request*> requests(1000, request.get());
  ExecutionMark mark(ExecutionMark::Purpose::kExecuting, "m", 1);
  mark.Begin(requests.data(), requests.size());
  EXPECT_THAT(Here(), HasSubstr("'r', 'r' and 992 more"));
  mark.End();
}

TEST_F(ExecutionMarkTest, KeepsIdsOnTheirLine) {
  const std::string long_id = "a\nb\x7f" + std::string(1000, 'c');
  const RequestPtr request = MakeRequest(long_id);
  Request* const requests[] = {request.get()};
  ExecutionMark mark(ExecutionMark::Purpose::kExecuting, "m", 1);
  mark.Begin(requests, 1);
  EXPECT_THAT(Here(), HasSubstr("'a?b?ccc"));
  EXPECT_LT(Here().size(), 200u);
  mark.End();
}

TEST_F(ExecutionMarkTest, SurvivesRequestsThatAreGone) {
  auto* const nowhere = reinterpret_cast<Request*>(uintptr_t{0x1000});
  Request* const requests[] = {nowhere};
  ExecutionMark mark(ExecutionMark::Purpose::kExecuting, "m", 1);
  mark.Begin(requests, 1);
  EXPECT_EQ(Here(), "executing model 'm' version 1, request: (unreadable)");
  mark.End();
}

TEST_F(ExecutionMarkTest, UsesTheMemoryOfAMarkThatIsGoneAgain) {
  const ExecutionMark::Slot* first = nullptr;
  {
    const ExecutionMark mark(ExecutionMark::Purpose::kExecuting, "first", 1);
    first = ExecutionMark::FirstSlot();
  }
  ExecutionMark mark(ExecutionMark::Purpose::kExecuting, "second", 1);
  EXPECT_EQ(ExecutionMark::FirstSlot(), first);
  mark.Begin(nullptr, 0);
  EXPECT_THAT(Here(), HasSubstr("'second'"));
  mark.End();
}

}  // namespace
}  // namespace nereid::core
