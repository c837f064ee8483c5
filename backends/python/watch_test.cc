// SPDX-License-Identifier: Apache-2.0
#include "python_backend/watch.h"

#include <memory>

#include <gtest/gtest.h>

namespace nereid::python {
namespace {

class Counter final : public Watched {
 public:
  explicit Counter(std::atomic<int>& looks) : looks_(looks) {}
  bool Look() override {
    ++looks_;
    looks_.notify_all();
    return has_requests.load();
  }
  bool needs_looks() const override { return false; }

  std::atomic<bool> has_requests{false};

 private:
  std::atomic<int>& looks_;
};

void WaitForMore(const std::atomic<int>& looks) { looks.wait(looks.load()); }

TEST(Watch, LooksAgainAndAgainWhileThereAreRequests) {
  std::atomic<int> looks{0};
  const auto counter = std::make_shared<Counter>(looks);
  counter->has_requests.store(true);
  Watch watch;
  watch.Add(counter);
  for (int i = 0; i < 5; ++i) WaitForMore(looks);
  counter->has_requests.store(false);
}

TEST(Watch, LooksWhenItIsTold) {
  std::atomic<int> looks{0};
  const auto counter = std::make_shared<Counter>(looks);
  Watch watch;
  watch.Add(counter);
  for (int i = 0; i < 100; ++i) {
    counter->has_requests.store(true);
    watch.Wake();
    WaitForMore(looks);
    counter->has_requests.store(false);
  }
}

TEST(Watch, ForgetsWhatIsGone) {
  std::atomic<int> looks_at_first{0};
  std::atomic<int> looks_at_second{0};
  Watch watch;
  auto first = std::make_shared<Counter>(looks_at_first);
  first->has_requests.store(true);
  watch.Add(first);
  WaitForMore(looks_at_first);
  first.reset();
  const auto second = std::make_shared<Counter>(looks_at_second);
  second->has_requests.store(true);
  watch.Add(second);
  for (int i = 0; i < 3; ++i) WaitForMore(looks_at_second);
  const int before = looks_at_first.load();
  for (int i = 0; i < 3; ++i) WaitForMore(looks_at_second);
  EXPECT_EQ(looks_at_first.load(), before);
}

TEST(Watch, NeedsNothingToWatch) {
  Watch watch;
  watch.Wake();
}

}  // namespace
}  // namespace nereid::python
