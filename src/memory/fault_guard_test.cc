// SPDX-License-Identifier: Apache-2.0
#include "memory/fault_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::memory {
namespace {

const auto kPage = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

// Memory that is shared with a client, which can take its pages away.
class Shared {
 public:
  explicit Shared(size_t size) : size_(size), fd_(::memfd_create("guarded", MFD_CLOEXEC)) {
    Resize(size);
    void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(data, MAP_FAILED);
    data_ = static_cast<unsigned char*>(data);
  }
  ~Shared() {
    ::munmap(data_, size_);
    ::close(fd_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void Resize(size_t size) const { EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }
  volatile unsigned char* data() const { return data_; }
  void* begin() const { return data_; }

 private:
  const size_t size_;
  const int fd_;
  unsigned char* data_ = nullptr;
};

TEST(FaultGuard, LeavesMemoryThatIsThereAlone) {
  const Shared shared(2 * kPage);
  const FaultGuard guard(shared.begin(), 2 * kPage);
  shared.data()[2 * kPage - 1] = 7;
  EXPECT_EQ(shared.data()[2 * kPage - 1], 7);
  EXPECT_FALSE(guard.is_broken());
}

TEST(FaultGuard, CoversTheLastByteOfItsLastPage) {
  const Shared shared(3 * kPage);
  const FaultGuard guard(shared.begin(), 2 * kPage + 1);
  shared.Resize(0);
  EXPECT_EQ(shared.data()[3 * kPage - 1], 0);
  EXPECT_TRUE(guard.is_broken());
}

TEST(FaultGuard, BreaksAloneAmongItsNeighbours) {
  constexpr size_t kCount = 64;
  std::mt19937 random(1);
  std::vector<std::unique_ptr<Shared>> memory;
  std::vector<std::unique_ptr<FaultGuard>> guards;
  for (size_t i = 0; i < kCount; ++i) {
    memory.push_back(std::make_unique<Shared>(2 * kPage));
    guards.push_back(std::make_unique<FaultGuard>(memory.back()->begin(), 2 * kPage));
    memory.back()->data()[0] = static_cast<unsigned char>(i + 1);
  }
  std::vector<bool> is_broken(kCount, false);
  for (int i = 0; i < 32; ++i) {
    const size_t one = random() % kCount;
    memory[one]->Resize(0);
    EXPECT_EQ(memory[one]->data()[kPage], 0);
    is_broken[one] = true;
  }
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(guards[i]->is_broken(), is_broken[i]) << i;
    EXPECT_EQ(memory[i]->data()[0], is_broken[i] ? 0 : i + 1) << i;
  }
  guards.clear();
}

TEST(FaultGuard, StaysBrokenThoughThePagesComeBack) {
  const Shared shared(kPage);
  const FaultGuard guard(shared.begin(), kPage);
  shared.Resize(0);
  EXPECT_EQ(shared.data()[0], 0);
  shared.Resize(kPage);
  shared.data()[0] = 1;
  EXPECT_EQ(shared.data()[0], 1);
  EXPECT_TRUE(guard.is_broken());
}

TEST(FaultGuard, ThatIsNewIsWholeThoughAnEarlierOneBroke) {
  for (int round = 0; round < 100; ++round) {
    const Shared shared(kPage);
    const FaultGuard guard(shared.begin(), kPage);
    EXPECT_FALSE(guard.is_broken()) << round;
    shared.Resize(0);
    EXPECT_EQ(shared.data()[0], 0);
    EXPECT_TRUE(guard.is_broken()) << round;
  }
}

TEST(FaultGuard, KeepsTheErrorNumberOfTheThreadThatMetTheFault) {
  const Shared shared(kPage);
  const FaultGuard guard(shared.begin(), kPage);
  shared.Resize(0);
  errno = ERANGE;
  shared.data()[0] = 1;
  EXPECT_EQ(errno, ERANGE);
}

TEST(FaultGuard, ServesThreadsThatMeetTheSameFaultWhileOthersComeAndGo) {
  const Shared shared(64 * kPage);
  const FaultGuard guard(shared.begin(), 64 * kPage);
  shared.Resize(0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&shared, i] {
      for (size_t page = i; page < 64; page += 4) shared.data()[page * kPage] = 9;
    });
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        const Shared other(kPage);
        const FaultGuard brief(other.begin(), kPage);
        EXPECT_FALSE(brief.is_broken());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(guard.is_broken());
}

TEST(FaultGuardDeathTest, DoesNotCoverItsMemoryAnyLongerThanItExists) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const Shared shared(kPage);
        std::optional<FaultGuard> guard(std::in_place, shared.begin(), kPage);
        guard.reset();
        shared.Resize(0);
        shared.data()[0] = 1;
      },
      "");
}

}  // namespace
}  // namespace nereid::memory
