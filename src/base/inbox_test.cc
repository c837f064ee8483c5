// SPDX-License-Identifier: Apache-2.0
#include "base/inbox.h"

#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread.h"

namespace nereid::base {
namespace {

constexpr int kWriters = 4;
constexpr int kEach = 5000;

// An object that a writer pushes: the writer's number and a sequence number.
struct Letter : Queueable {
  Letter() = default;
  Letter(int by, int count) : writer(by), number(count) {}

  int writer = 0;
  int number = 0;
};

std::vector<int> Numbers(Queue<Letter> queue) {
  std::vector<int> numbers;
  while (Letter* letter = queue.Pop()) numbers.push_back(letter->number);
  return numbers;
}

// Lets several threads push kEach letters each, and calls `on_true` when a push returns true.
template <typename OnTrue>
void WriteFromManyThreads(Inbox<Letter>& inbox, std::vector<Letter>& letters, OnTrue on_true) {
  std::latch start(kWriters);
  std::vector<Thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back("writer", [&, writer] {
      start.arrive_and_wait();
      for (int number = 0; number < kEach; ++number) {
        Letter& letter = letters[static_cast<size_t>(writer) * kEach + static_cast<size_t>(number)];
        letter.writer = writer;
        letter.number = number;
        if (inbox.Push(letter)) on_true();
      }
    });
  }
}

// Checks that each writer's letters come in order.
class OrderCheck {
 public:
  void See(Queue<Letter> queue) {
    while (Letter* letter = queue.Pop()) {
      EXPECT_EQ(next_[letter->writer]++, letter->number);
      ++count_;
    }
  }
  int count() const { return count_; }

 private:
  int next_[kWriters] = {};
  int count_ = 0;
};

TEST(Queue, IsFirstInFirstOut) {
  Letter letters[] = {{0, 1}, {0, 2}, {0, 3}};
  Queue<Letter> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(nullptr, queue.Pop());
  queue.Append(letters[0]);
  queue.Append(letters[1]);
  EXPECT_EQ(&letters[0], queue.Pop());
  queue.Append(letters[2]);
  queue.Append(letters[0]);
  EXPECT_EQ((std::vector{2, 3, 1}), Numbers(std::move(queue)));
}

TEST(Queue, TakesInAnotherQueueAtItsEnd) {
  Letter letters[] = {{0, 1}, {0, 2}, {0, 3}};
  Queue<Letter> first;
  Queue<Letter> second;
  first.Append(std::move(second));
  EXPECT_TRUE(first.empty());
  first.Append(letters[0]);
  second.Append(letters[1]);  // NOLINT(bugprone-use-after-move): taking it in empties it
  first.Append(std::move(second));
  first.Append(letters[2]);
  EXPECT_EQ((std::vector{1, 2, 3}), Numbers(std::move(first)));
}

TEST(Inbox, HandsOutWhatCameInOrderAndOnce) {
  Letter letters[] = {{0, 1}, {0, 2}, {0, 3}};
  Inbox<Letter> inbox;
  EXPECT_TRUE(inbox.IsEmpty());
  for (Letter& letter : letters) EXPECT_FALSE(inbox.Push(letter));
  EXPECT_FALSE(inbox.IsEmpty());
  EXPECT_EQ((std::vector{1, 2, 3}), Numbers(inbox.TakeAll()));
  EXPECT_TRUE(inbox.TakeAll().empty());
}

TEST(Inbox, TellsOnlyTheFirstWriterThatTheReaderRests) {
  Letter letters[] = {{0, 1}, {0, 2}};
  Inbox<Letter> inbox;
  EXPECT_TRUE(inbox.TryRest());
  EXPECT_TRUE(inbox.IsEmpty());
  EXPECT_TRUE(inbox.Push(letters[0]));
  EXPECT_FALSE(inbox.Push(letters[1]));
  EXPECT_FALSE(inbox.TryRest()) << "something has come";
  EXPECT_EQ((std::vector{1, 2}), Numbers(inbox.TakeAll()));
}

TEST(Inbox, EndsARestOnlyOnce) {
  Letter letter(0, 1);
  Inbox<Letter> inbox;
  EXPECT_FALSE(inbox.EndRest()) << "it does not rest";
  EXPECT_TRUE(inbox.TryRest());
  EXPECT_TRUE(inbox.TakeAll().empty());
  EXPECT_TRUE(inbox.EndRest()) << "looking in does not end a rest";
  EXPECT_FALSE(inbox.EndRest());
  EXPECT_FALSE(inbox.Push(letter)) << "nobody rests";
}

TEST(Inbox, WakesAReaderThatRestsWheneverSomethingComes) {
  Inbox<Letter> inbox;
  std::vector<Letter> letters(size_t{kWriters} * kEach);
  std::counting_semaphore<> wakes(0);
  OrderCheck seen;
  Thread reader("reader", [&] {
    while (seen.count() < kWriters * kEach) {
      // A missed or repeated wake-up would cause a hang, or a Push that returns true without a
      // rest.
      if (inbox.TryRest()) wakes.acquire();
      seen.See(inbox.TakeAll());
    }
  });
  WriteFromManyThreads(inbox, letters, [&] { wakes.release(); });
  reader.Join();
  EXPECT_EQ(kWriters * kEach, seen.count());
  EXPECT_FALSE(wakes.try_acquire()) << "woken without having rested";
}

TEST(Inbox, LetsTheWriterThatFindsNoReaderReadInItsPlace) {
  Inbox<Letter> inbox;
  std::vector<Letter> letters(size_t{kWriters} * kEach);
  OrderCheck seen;  // accessed by the current reader only
  std::atomic<int> readers{0};
  ASSERT_TRUE(inbox.TryRest());
  WriteFromManyThreads(inbox, letters, [&] {
    do {
      EXPECT_EQ(0, readers.fetch_add(1));
      seen.See(inbox.TakeAll());
      readers.fetch_sub(1);
    } while (!inbox.TryRest());
  });
  EXPECT_EQ(kWriters * kEach, seen.count());
}

}  // namespace
}  // namespace nereid::base
