// SPDX-License-Identifier: Apache-2.0
#include "schedule/wake_signal.h"

#include <optional>
#include <utility>

#include "gmock/gmock.h"

namespace nereid::schedule {
namespace {

TEST(WakeSignalTest, MayBeNotifiedWhenItsOwnerIsGone) {
  std::optional<WakeSignal> signal(std::in_place);
  PendingWake wake;
  wake.Set(*signal);
  signal.reset();
  wake.Send();
  EXPECT_FALSE(wake.is_set());
}

TEST(WakeSignalTest, IsUsedAgain) {
  std::optional<WakeSignal> signal(std::in_place);
  const base::CondVar* const first = &**signal;
  signal.reset();
  signal.emplace();
  EXPECT_EQ(&**signal, first);
}

TEST(WakeSignalTest, HasOneOwnerAtATime) {
  const WakeSignal one;
  const WakeSignal other;
  EXPECT_NE(&*one, &*other);
}

}  // namespace
}  // namespace nereid::schedule
