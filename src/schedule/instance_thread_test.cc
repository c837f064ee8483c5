// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_thread.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/no_more_threads.h"
#include "base/thread_reaper.h"

namespace nereid::schedule {
namespace {

// Records the calls, which must all come from the same thread.
class RecordedInstance final : public core::Instance {
 public:
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return false; }
  void Execute(std::span<core::RequestPtr> /*batch*/) override {}
  base::Status InitializeOnThread() override {
    Note("initialize");
    return initialized;
  }
  void FinalizeOnThread() override { Note("finalize"); }
  void Note(const std::string& call) {
    if (calls.empty()) thread_ = std::this_thread::get_id();
    EXPECT_EQ(std::this_thread::get_id(), thread_) << call;
    calls.push_back(call);
  }

  base::Status initialized;
  std::vector<std::string> calls;

 private:
  const std::string name_ = "instance";
  std::thread::id thread_;
};

using Calls = std::vector<std::string>;

class InstanceThreadTest : public testing::Test {
 protected:
  static constexpr auto kLong = std::chrono::hours(1);

  void Admit() {
    base::MutexLock lock(mutex_);
    thread_->Admit(mutex_);
  }
  void WakeOrStart() {
    base::MutexLock lock(mutex_);
    EXPECT_TRUE(thread_->WakeOrStart(mutex_));
  }
  // Waits until the thread waits, or has ended, for the `count`th time.
  void WaitForRests(int count) {
    base::MutexLock lock(mutex_);
    while (rests_ < count) rested_.Wait(mutex_);
  }
  void NoteRest() NEREID_REQUIRES(mutex_) {
    ++rests_;
    rested_.NotifyAll();
  }

  base::Mutex mutex_;
  base::CondVar rested_;
  int rests_ NEREID_GUARDED_BY(mutex_) = 0;
  RecordedInstance instance_;
  std::optional<InstanceThread> thread_;
};

TEST_F(InstanceThreadTest, InitialisesWarmsUpAndWorksOnceItIsAdmitted) {
  thread_.emplace(instance_, [this] { instance_.Note("work"); });
  auto started = thread_->Start(mutex_, [this](core::Instance& instance) {
    EXPECT_EQ(&instance, &instance_);
    instance_.Note("warm up");
    return base::OkStatus();
  });
  EXPECT_TRUE(started.get().ok());
  EXPECT_EQ(instance_.calls, (Calls{"initialize", "warm up"}));
  Admit();
  thread_->Join();
  EXPECT_EQ(instance_.calls, (Calls{"initialize", "warm up", "work"}));
}

TEST_F(InstanceThreadTest, FinalisesWithoutWorkWhenItIsDropped) {
  thread_.emplace(instance_, [this] { instance_.Note("work"); });
  EXPECT_TRUE(thread_->Start(mutex_, {}).get().ok());
  {
    base::MutexLock lock(mutex_);
    thread_->Drop(mutex_);
  }
  thread_->Join();
  EXPECT_EQ(instance_.calls, (Calls{"initialize", "finalize"}));
}

TEST_F(InstanceThreadTest, EndsWithTheErrorOfTheInitialisation) {
  instance_.initialized = base::InternalError("no room");
  thread_.emplace(instance_, [this] { instance_.Note("work"); });
  EXPECT_EQ(thread_->Start(mutex_, {}).get().message(), "no room");
  thread_->Join();
  EXPECT_EQ(instance_.calls, Calls{"initialize"});
}

TEST_F(InstanceThreadTest, FinalisesWhatDidNotWarmUp) {
  thread_.emplace(instance_, [this] { instance_.Note("work"); });
  auto started = thread_->Start(
      mutex_, [](core::Instance&) -> base::Status { return base::InternalError("cold"); });
  EXPECT_EQ(started.get().message(), "cold");
  thread_->Join();
  EXPECT_EQ(instance_.calls, (Calls{"initialize", "finalize"}));
}

TEST_F(InstanceThreadTest, StartsWhenItIsNeededAndSleepsUntilItIsWoken) {
  thread_.emplace(instance_, [this] {
    base::MutexLock lock(mutex_);
    EXPECT_TRUE(thread_->is_on_its_way(mutex_));
    NoteRest();
    thread_->Wait(mutex_, 0);
    instance_.Note("work");
    thread_->SetEnded(mutex_);
  });
  {
    base::MutexLock lock(mutex_);
    EXPECT_FALSE(thread_->exists(mutex_));
    thread_->Wake(mutex_);
    EXPECT_FALSE(thread_->exists(mutex_)) << "only a thread can be woken";
    EXPECT_FALSE(thread_->is_on_its_way(mutex_));
    EXPECT_TRUE(thread_->WakeOrStart(mutex_));
    EXPECT_TRUE(thread_->is_on_its_way(mutex_));
  }
  WaitForRests(1);
  {
    base::MutexLock lock(mutex_);
    EXPECT_FALSE(thread_->is_on_its_way(mutex_));
    EXPECT_EQ(instance_.calls, Calls{});
    EXPECT_TRUE(thread_->WakeOrStart(mutex_));
    EXPECT_TRUE(thread_->is_on_its_way(mutex_)) << "though it has not run yet";
  }
  thread_->Join();
  EXPECT_EQ(instance_.calls, Calls{"work"});
}

TEST_F(InstanceThreadTest, IsWokenUnderTheLockAndToldAfterwards) {
  thread_.emplace(instance_, [this] {
    base::MutexLock lock(mutex_);
    NoteRest();
    thread_->Wait(mutex_, 0);
    instance_.Note("work");
    thread_->SetEnded(mutex_);
  });
  WakeOrStart();
  WaitForRests(1);
  PendingWake wake;
  PendingWake other;
  {
    base::MutexLock lock(mutex_);
    thread_->Wake(mutex_, &wake);
    EXPECT_TRUE(wake.is_set());
    EXPECT_TRUE(thread_->is_on_its_way(mutex_)) << "though nobody has told it";
    thread_->Wake(mutex_, &other);
    EXPECT_FALSE(other.is_set()) << "once is enough";
  }
  wake.Send();
  thread_->Join();
  EXPECT_FALSE(wake.is_set());
  EXPECT_EQ(instance_.calls, Calls{"work"});
}

TEST_F(InstanceThreadTest, MayBeGoneWhenItIsToldToWakeUp) {
  const uint64_t soon_ns = base::NowNs() + 1;
  thread_.emplace(instance_, [this, soon_ns] {
    base::MutexLock lock(mutex_);
    NoteRest();
    thread_->Wait(mutex_, soon_ns);
    thread_->SetEnded(mutex_);
  });
  PendingWake wake;
  {
    base::MutexLock lock(mutex_);
    EXPECT_TRUE(thread_->WakeOrStart(mutex_));
    while (rests_ < 1) rested_.Wait(mutex_);
    thread_->Wake(mutex_, &wake);
  }
  thread_->Join();
  thread_.reset();
  wake.Send();
}

TEST_F(InstanceThreadTest, SaysUntilWhenItSleeps) {
  const uint64_t later_ns = base::NowNs() + uint64_t{3'600'000'000'000};
  thread_.emplace(instance_, [this, later_ns] {
    base::MutexLock lock(mutex_);
    NoteRest();
    thread_->Wait(mutex_, later_ns);
    EXPECT_EQ(thread_->looks_again_at_ns(mutex_), 0u);
    thread_->Wait(mutex_,
                  base::NowNs());  // returns at once
  });
  WakeOrStart();
  WaitForRests(1);
  {
    base::MutexLock lock(mutex_);
    EXPECT_EQ(thread_->looks_again_at_ns(mutex_), later_ns);
    thread_->Wake(mutex_);
  }
  thread_->Join();
}

TEST_F(InstanceThreadTest, LeavesWhenItIsNotWokenAndAnotherCanStartAtOnce) {
  base::ThreadReaper reaper;
  thread_.emplace(instance_, [this, &reaper] {
    mutex_.Lock();
    EXPECT_FALSE(thread_->WaitFor(mutex_, std::chrono::nanoseconds(1)));
    base::Thread self = thread_->Leave(mutex_);
    mutex_.Unlock();
    reaper.Leave(std::move(self));
    base::MutexLock lock(mutex_);
    NoteRest();
  });
  for (int count = 1; count <= 3; ++count) {
    WakeOrStart();
    WaitForRests(count);
    base::MutexLock lock(mutex_);
    EXPECT_FALSE(thread_->exists(mutex_));
  }
  reaper.WaitForLeft();
}

TEST_F(InstanceThreadTest, SaysWhenItCannotStartAndStartsWhenItCan) {
  thread_.emplace(instance_, [this] {
    base::MutexLock lock(mutex_);
    instance_.Note("work");
    thread_->SetEnded(mutex_);
  });
  {
    const base::NoMoreThreads limit;
    base::MutexLock lock(mutex_);
    EXPECT_FALSE(thread_->WakeOrStart(mutex_));
    EXPECT_FALSE(thread_->exists(mutex_)) << "or nobody would start it later";
    EXPECT_FALSE(thread_->is_on_its_way(mutex_));
  }
  WakeOrStart();
  thread_->Join();
  EXPECT_EQ(instance_.calls, Calls{"work"});
}

TEST_F(InstanceThreadTest, ReportsThatItCannotInitialiseTheInstance) {
  thread_.emplace(instance_, [] {});
  const base::NoMoreThreads limit;
  EXPECT_EQ(thread_->Start(mutex_, {}).get().message(),
            "could not start the thread 'instance': Resource temporarily unavailable");
  {
    base::MutexLock lock(mutex_);
    thread_->Drop(mutex_);
  }
  thread_->Join();
  EXPECT_EQ(instance_.calls, Calls{});
}

TEST_F(InstanceThreadTest, StaysWhenItIsWokenInTime) {
  bool is_woken = false;
  thread_.emplace(instance_, [this, &is_woken] {
    base::MutexLock lock(mutex_);
    NoteRest();
    is_woken = thread_->WaitFor(mutex_, kLong);
  });
  WakeOrStart();
  WaitForRests(1);
  WakeOrStart();
  thread_->Join();
  EXPECT_TRUE(is_woken);
}

}  // namespace
}  // namespace nereid::schedule
