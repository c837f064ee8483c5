// SPDX-License-Identifier: Apache-2.0
#include "common/admission.h"

#include <array>
#include <memory>

#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::common {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  core::ModelHandle Pin() {
    EXPECT_TRUE(model_->TryPin());
    return core::ModelHandle(*model_);
  }

  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {1});
  core::Budgets budgets_{{.requests = 3, .requests_per_model = 2}};
};

TEST_F(AdmissionTest, CountsRequestsAndNotWhoElseKeepsTheModelLoaded) {
  // For example the thread that writes its statistics, and the one that submits the first request.
  const core::ModelHandle other = Pin();
  core::ModelHandle first = Pin();
  base::UnitGrant first_grant;
  EXPECT_TRUE(Admit(&budgets_, first, 10, first_grant).ok());
  const core::ModelHandle submitter = first.Duplicate();

  core::ModelHandle second = Pin();
  base::UnitGrant second_grant;
  EXPECT_TRUE(Admit(&budgets_, second, 10, second_grant).ok());

  core::ModelHandle third = Pin();
  base::UnitGrant third_grant;
  EXPECT_EQ(
      Admit(&budgets_, third, 10, third_grant).message(),
      "model 'model' has 2 requests in flight, the most that --max-requests-per-model allows");
  EXPECT_EQ(budgets_.requests_per_model.refusals(), 1u);
  EXPECT_EQ(budgets_.requests.refusals(), 0u);

  // The model is free for another request while the memory of this one is still in use.
  EndFlight(first, first_grant);
  EXPECT_TRUE(Admit(&budgets_, third, 10, third_grant).ok());
  EXPECT_EQ(budgets_.requests.used(), 2u);
  EndFlight(first, first_grant);
  first.Reset();
  EXPECT_EQ(model_->request_count(), 2u);
  EXPECT_EQ(model_->request_bytes(), 20u);
  EXPECT_EQ(budgets_.requests.used(), 2u);
}

TEST_F(AdmissionTest, NamesTheLimitOfTheServerWhenThatIsReached) {
  std::array<base::UnitGrant, 3> grants;
  for (base::UnitGrant& grant : grants) ASSERT_TRUE(grant.Take(budgets_.requests));
  core::ModelHandle request = Pin();
  base::UnitGrant refused;
  EXPECT_EQ(Admit(&budgets_, request, 10, refused).message(),
            "the server has 3 requests in flight, the most that --max-requests allows");
  EXPECT_EQ(budgets_.requests_per_model.refusals(), 0u);
  // What was refused does not count once its handle is gone.
  request.Reset();
  EXPECT_EQ(model_->request_count(), 0u);
  EXPECT_EQ(model_->request_bytes(), 0u);
}

TEST_F(AdmissionTest, HasNoLimitWithoutBudgets) {
  std::array<core::ModelHandle, 5> requests;
  for (core::ModelHandle& request : requests) {
    request = Pin();
    base::UnitGrant grant;
    EXPECT_TRUE(Admit(nullptr, request, 10, grant).ok());
  }
}

}  // namespace
}  // namespace nereid::common
