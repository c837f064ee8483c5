// SPDX-License-Identifier: Apache-2.0
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "common/parameters.h"
#include "common/reactor_rounds.h"
#include "common/status_codes.h"

namespace nereid::common {
namespace {

using base::StatusCode;

TEST(StatusCodes, AreThoseOfTriton) {
  EXPECT_EQ(HttpStatus(StatusCode::kUnknown), 400);
  EXPECT_EQ(HttpStatus(StatusCode::kInternal), 500);
  EXPECT_EQ(HttpStatus(StatusCode::kNotFound), 404);
  EXPECT_EQ(HttpStatus(StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatus(StatusCode::kUnavailable), 503);
  EXPECT_EQ(HttpStatus(StatusCode::kUnsupported), 501);
  EXPECT_EQ(HttpStatus(StatusCode::kAlreadyExists), 400);
  EXPECT_EQ(HttpStatus(StatusCode::kCancelled), 400);
  EXPECT_EQ(GrpcStatus(StatusCode::kUnknown), 2);
  EXPECT_EQ(GrpcStatus(StatusCode::kInternal), 13);
  EXPECT_EQ(GrpcStatus(StatusCode::kNotFound), 5);
  EXPECT_EQ(GrpcStatus(StatusCode::kInvalidArgument), 3);
  EXPECT_EQ(GrpcStatus(StatusCode::kUnavailable), 14);
  EXPECT_EQ(GrpcStatus(StatusCode::kUnsupported), 12);
  EXPECT_EQ(GrpcStatus(StatusCode::kAlreadyExists), 6);
  EXPECT_EQ(GrpcStatus(StatusCode::kCancelled), 1);
}

TEST(StatusCodes, TellDeadlinesAndUsedUpSharesApart) {
  EXPECT_EQ(HttpStatus(StatusCode::kDeadlineExceeded), 504);
  EXPECT_EQ(HttpStatus(StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(GrpcStatus(StatusCode::kDeadlineExceeded), 4);
  EXPECT_EQ(GrpcStatus(StatusCode::kResourceExhausted), 8);
}

TEST(Parameters, KnowTheirReservedNames) {
  EXPECT_EQ(ClassifyParameter("sequence_id"), ParameterKey::kSequenceId);
  EXPECT_EQ(ClassifyParameter("timeout"), ParameterKey::kTimeout);
  EXPECT_EQ(ClassifyParameter("triton_"), ParameterKey::kReserved);
  EXPECT_EQ(ClassifyParameter("Triton_x"), ParameterKey::kForwarded);
  EXPECT_TRUE(CheckForwardedHeader("my-header").ok());
  EXPECT_EQ(CheckForwardedHeader("priority").message(),
            "Header 'priority' is reserved for Triton usage and cannot be forwarded.");
}

// Counts its runs and, once, schedules itself again.
struct Counter final : core::RoundTask {
  void RunRound() override {
    if (++runs == 1) rounds->RunAfterRound(*this);
    if (runs == 2) done.set_value();
  }
  core::RoundExecutor* rounds = nullptr;
  int runs = 0;
  std::promise<void> done;
};

TEST(ReactorRounds, RunsTasksAfterTheRoundAndAgainInALaterOne) {
  net::ReactorPool pool(1);
  const RoundExecutors executors(pool);
  Counter counter;
  EXPECT_EQ(executors.Here(), nullptr) << "this is no reactor's thread";
  int runs_inside = -1;
  pool.reactor(0).Post([&] {
    counter.rounds = executors.Here();
    counter.rounds->RunAfterRound(counter);
    runs_inside = counter.runs;
  });
  counter.done.get_future().wait();
  EXPECT_EQ(runs_inside, 0);
  EXPECT_EQ(counter.runs, 2);
}

}  // namespace
}  // namespace nereid::common
