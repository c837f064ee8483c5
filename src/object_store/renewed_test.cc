// SPDX-License-Identifier: Apache-2.0
#include "object_store/renewed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace nereid::object_store {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class ARenewedToken : public testing::Test {
 protected:
  base::Result<Expiring<std::string>> Fetch() {
    ++fetches_;
    if (fails_) return base::UnavailableError("no");
    if (finds_none_) return Expiring<std::string>{"", minutes(10), base::UnavailableError("none")};
    return Expiring<std::string>{"token " + std::to_string(fetches_), lifetime_};
  }

  std::atomic<int> fetches_ = 0;
  bool fails_ = false;
  bool finds_none_ = false;
  seconds lifetime_{3600};
  base::TimePoint now_ = base::TimePoint() + std::chrono::hours(1);
  Renewed<std::string> token_{[this] { return Fetch(); }, [this] { return now_; }};
};

TEST_F(ARenewedToken, IsFetchedOnceAndAgainBeforeItExpires) {
  EXPECT_EQ(fetches_, 0);
  EXPECT_EQ(*token_.Get(), "token 1");
  now_ += minutes(54);
  EXPECT_EQ(*token_.Get(), "token 1");
  now_ += minutes(1);
  EXPECT_EQ(*token_.Get(), "token 2");
}

TEST_F(ARenewedToken, IsUsedWhileItsRenewalFailsButNotAfterItExpired) {
  EXPECT_EQ(*token_.Get(), "token 1");
  fails_ = true;
  now_ += minutes(56);
  EXPECT_EQ(*token_.Get(), "token 1");
  EXPECT_EQ(*token_.Get(), "token 1");
  EXPECT_EQ(fetches_, 2);  // not with every request
  now_ += seconds(31);
  EXPECT_EQ(*token_.Get(), "token 1");
  EXPECT_EQ(fetches_, 3);
  now_ += minutes(4);
  EXPECT_EQ(token_.Get().status().message(), "no");
  fails_ = false;
  EXPECT_EQ(*token_.Get(), "token 5");
}

TEST_F(ARenewedToken, IsNotReplacedByItsAbsence) {
  EXPECT_EQ(*token_.Get(), "token 1");
  finds_none_ = true;
  now_ += minutes(56);
  EXPECT_EQ(*token_.Get(), "token 1");
  EXPECT_EQ(*token_.Get(), "token 1");
  EXPECT_EQ(fetches_, 2);  // not with every request
  now_ += minutes(5);
  EXPECT_EQ(token_.Get().status().message(), "none");
  finds_none_ = false;
  EXPECT_EQ(*token_.Get(), "token 4");
  finds_none_ = true;
  now_ += seconds(10);
  EXPECT_TRUE(token_.Refuse());
  EXPECT_EQ(token_.Get().status().message(), "none");
}

TEST_F(ARenewedToken, IsEmptyWhereThereNeverWasOne) {
  finds_none_ = true;
  EXPECT_EQ(*token_.Get(), "");
  now_ += minutes(8);
  EXPECT_EQ(*token_.Get(), "");
  EXPECT_EQ(fetches_, 2);
  finds_none_ = false;
  now_ += minutes(8);
  EXPECT_EQ(*token_.Get(), "token 3");
}

TEST_F(ARenewedToken, IsNotFetchedAllTheTimeWhereItIsShortLived) {
  lifetime_ = seconds(100);
  EXPECT_EQ(*token_.Get(), "token 1");
  now_ += seconds(74);
  EXPECT_EQ(*token_.Get(), "token 1");
  now_ += seconds(1);
  EXPECT_EQ(*token_.Get(), "token 2");
}

TEST_F(ARenewedToken, IsFetchedAgainWhenItWasRefusedUnlessItIsNew) {
  EXPECT_FALSE(token_.Refuse());
  EXPECT_EQ(*token_.Get(), "token 1");
  EXPECT_FALSE(token_.Refuse());
  now_ += seconds(10);
  EXPECT_TRUE(token_.Refuse());
  EXPECT_EQ(*token_.Get(), "token 2");
}

TEST_F(ARenewedToken, LastsForEverWhereItSaysSo) {
  lifetime_ = seconds::max();
  EXPECT_EQ(*token_.Get(), "token 1");
  now_ += std::chrono::days(200);
  EXPECT_EQ(*token_.Get(), "token 1");
}

TEST_F(ARenewedToken, IsFetchedByOneOfSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] { EXPECT_EQ(*token_.Get(), "token 1"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fetches_, 1);
}

}  // namespace
}  // namespace nereid::object_store
