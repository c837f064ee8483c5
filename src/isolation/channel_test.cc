// SPDX-License-Identifier: Apache-2.0
// Both ends of the memory that server and worker share: a Channel, and the server's own code.
#include "isolation/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "base/thread.h"
#include "python_backend/call_ring.h"
#include "python_backend/mailboxes.h"

namespace nereid::isolation {
namespace {

using python::BlockHeader;
using python::Call;
using python::kBlockInUse;
using python::kBlocksBegin;
using python::Outcome;
using python::Work;

Message TextMessage(std::string_view text) {
  Message message;
  message.records.assign(text.begin(), text.end());
  return message;
}

std::string RandomText(std::mt19937& random, size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::unique_ptr<Channel> OpenChannel(const python::Region& region) {
  auto channel = Channel::Open(fcntl(region.fd(), F_DUPFD_CLOEXEC, 0));
  EXPECT_TRUE(channel.ok());
  return *std::move(channel);
}

class ChannelTest : public testing::Test {
 protected:
  std::string Payload(const Channel::Item& item) const {
    const std::span<const char> bytes = channel_->Payload(item);
    return {bytes.begin(), bytes.end()};
  }
  // Runs a worker that says that it is ready, then replies to each text with the same text in
  // brackets until it is told to finalize. A text that begins with '!' fails.
  base::Thread Echo() {
    return {"echo", [this] {
              Channel::Item item = channel_->FirstWork();
              while (item.kind != Work::kFinalize) {
                const std::string text = Payload(item);
                channel_->LetGo(item.offset);
                const Outcome outcome = text.starts_with('!') ? Outcome::kError : Outcome::kOk;
                item = channel_->NextWork(item, outcome, TextMessage("<" + text + ">"));
              }
              channel_->LetGo(item.offset);
              channel_->EndWork(item, Outcome::kOk, {});
            }};
  }
  // Takes a call, waiting for it if needed.
  python::CallBlock TakeCall() {
    for (;;) {
      const uint32_t bell = ring_.bell();
      auto taken = ring_.Take();
      EXPECT_TRUE(taken.ok());
      if (taken.value()) return *taken.value();
      ring_.WaitForBell(bell);
    }
  }

  std::unique_ptr<python::Region> region_ = std::move(python::Region::Create()).value();
  python::Control& control_ = region_->control();
  int kills_ = 0;
  python::Vitals vitals_{"model_0", control_, [this] { ++kills_; }, "Process"};
  python::CallRing ring_{*region_};
  python::BlockPool blocks_{*region_, {.begin = kBlocksBegin, .end = region_->inputs_begin()}};
  python::WorkLine work_{*region_, vitals_, blocks_, ring_};
  python::QuestionLine questions_{*region_, vitals_};
  std::unique_ptr<Channel> channel_ = OpenChannel(*region_);
};

TEST_F(ChannelTest, ReturnsEachTextOfAnyBytesAndLength) {
  base::Thread worker = Echo();
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const size_t most = round % 50 == 0 ? 3 << 20 : 300;
    const std::string text = "t" + RandomText(random, most);
    auto result = work_.RunText(Work::kComplete, text);
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result.value(), "<" + text + ">");
  }
  EXPECT_TRUE(work_.RunText(Work::kFinalize, "").ok());
}

TEST_F(ChannelTest, CarriesAFailureAsOneAndGoesOn) {
  base::Thread worker = Echo();
  auto failed = work_.RunText(Work::kInitialize, "!no such file");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(std::string(failed.TakeError().message()), "<!no such file>");
  auto next = work_.RunText(Work::kInitialize, "again");
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next.value(), "<again>");
  EXPECT_TRUE(work_.RunText(Work::kFinalize, "").ok());
}

TEST_F(ChannelTest, NeedsNoMoreMemoryForManyMessagesThanForFew) {
  base::Thread worker = Echo();
  const std::string text(1 << 20, 'x');
  uint64_t last = 0;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(work_.RunText(Work::kExecute, text).ok());
    last = std::max<uint64_t>(last, control_.done.offset);
  }
  EXPECT_LT(last, region_->worker_begin() + 16 * text.size());
  EXPECT_TRUE(work_.RunText(Work::kFinalize, "").ok());
}

TEST_F(ChannelTest, AnswersQuestionsWhileItWorks) {
  std::promise<void> finish;
  base::Thread worker("work", [&] {
    const Channel::Item item = channel_->FirstWork();
    finish.get_future().wait();
    channel_->EndWork(item, Outcome::kOk, TextMessage("done"));
  });
  base::Thread answers("answers", [&] {
    Channel::Item question{};
    for (int i = 0; i < 100; ++i) {
      question = channel_->NextQuestion(question.ticket);
      EXPECT_EQ(question.kind, Work::kCancel);
      EXPECT_EQ(question.size, uint64_t{1000} + i);
      channel_->Answer(question, i % 2 == 0 ? Outcome::kOk : Outcome::kError,
                       TextMessage("answer " + std::to_string(i)));
    }
  });
  work_.Begin(Work::kExecute, {}, 0);
  for (uint64_t i = 0; i < 100; ++i) {
    auto reply =
        questions_.Ask(Work::kCancel, std::chrono::steady_clock::time_point::max(), 1000 + i);
    EXPECT_EQ(reply.ok(), i % 2 == 0);
    EXPECT_EQ(reply.ok() ? reply.value() : std::string(reply.TakeError().message()),
              "answer " + std::to_string(i));
  }
  finish.set_value();
  auto result = work_.Wait();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(std::string(result.value().payload.data(), result.value().payload.size()), "done");
}

TEST_F(ChannelTest, BringsCallsOfManyThreadsOnceEachThoughTheRingIsSmaller) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 1500;  // together, several times what the ring has places for
  std::vector<base::Thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back("caller", [this, thread] {
      for (int i = 0; i < kCalls; ++i) {
        Message message;
        message.Append(uint64_t(thread) << 32 | uint64_t(i));
        channel_->Call(i % 2 == 0 ? Call::kSend : Call::kRelease, std::move(message));
      }
    });
  }
  std::vector<uint64_t> next(kThreads, 0);
  for (int i = 0; i < kThreads * kCalls; ++i) {
    const python::CallBlock call = TakeCall();
    ASSERT_EQ(call.payload.size(), sizeof(uint64_t));
    uint64_t number = 0;
    std::memcpy(&number, call.payload.data(), sizeof(number));
    const uint64_t thread = number >> 32;
    ASSERT_LT(thread, next.size());
    ASSERT_EQ(number & UINT32_MAX, next[thread]) << "calls of a thread arrive in order";
    EXPECT_EQ(call.kind, next[thread] % 2 == 0 ? Call::kSend : Call::kRelease);
    ++next[thread];
    python::Release(call.header);
    ring_.NoteHandled();
  }
  EXPECT_FALSE(ring_.HasOpenCalls());
}

TEST_F(ChannelTest, WaitsForTheReplyToTheQuestionWhetherAllIsSent) {
  std::promise<void> replied;
  base::Thread asker("asker", [this, &replied] {
    for (uint64_t i = 0; i < 100; ++i) channel_->AwaitSent(i);
    replied.set_value();
  });
  std::future<void> done = replied.get_future();
  for (uint64_t i = 0; i < 100; ++i) {
    const python::CallBlock call = TakeCall();
    EXPECT_EQ(call.kind, Call::kAwaitSent);
    uint64_t number = 0;
    ASSERT_EQ(call.payload.size(), sizeof(number));
    std::memcpy(&number, call.payload.data(), sizeof(number));
    EXPECT_EQ(number, i);
    EXPECT_EQ(done.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    python::Reply(call.header, Outcome::kOk);
    ring_.NoteHandled();
  }
  done.wait();
}

TEST_F(ChannelTest, KeepsTensorsUntilTheServerHasReleasedTheirMessage) {
  auto block = channel_->Allocate(100);
  ASSERT_TRUE(block.ok());
  std::memset(block->payload(), 'a', 100);
  const uint64_t at = block->payload_offset();
  Message message = TextMessage("first");
  message.tensors.push_back(*std::move(block));
  channel_->Call(Call::kSend, std::move(message));
  const python::CallBlock call = TakeCall();
  for (int i = 0; i < 20; ++i) {
    channel_->Call(Call::kSend, TextMessage("later"));
    auto other = channel_->Allocate(100);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->payload_offset(), at);
    std::memset(other->payload(), 'b', 100);
  }
  EXPECT_EQ(std::string(region_->At(at), 100), std::string(100, 'a'));
  EXPECT_EQ(call.header->state.load(), kBlockInUse);
  python::Release(call.header);
  channel_->Call(Call::kSend, TextMessage("last"));
  std::vector<python::BlockPool::Block> others;
  bool is_used_again = false;
  while (!is_used_again && others.size() < 100) {
    auto other = channel_->Allocate(100);
    ASSERT_TRUE(other.ok());
    is_used_again = other->payload_offset() == at;
    others.push_back(*std::move(other));
  }
  EXPECT_TRUE(is_used_again);
}

TEST_F(ChannelTest, HasNoBlockLargerThanItsMemory) {
  for (const uint64_t size :
       {region_->size(), region_->size() * 2, UINT64_MAX, UINT64_MAX - 4096}) {
    const auto block = channel_->Allocate(size);
    ASSERT_FALSE(block.ok()) << size;
    EXPECT_EQ(block.status().code(), base::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(channel_->Allocate(1 << 20).ok());
}

TEST_F(ChannelTest, IsNotOpenedForAnotherVersionOrAForeignFile) {
  control_.version = python::kProtocolVersion + 1;
  EXPECT_FALSE(Channel::Open(fcntl(region_->fd(), F_DUPFD_CLOEXEC, 0)).ok());
  EXPECT_FALSE(Channel::Open(memfd_create("small", MFD_CLOEXEC)).ok());
  EXPECT_FALSE(Channel::Open(-1).ok());
}

TEST_F(ChannelTest, WhoseWorkerVanishesDuringWorkEndsTheWait) {
  base::Thread worker("vanishes", [this] {
    const Channel::Item item = channel_->FirstWork();
    EXPECT_EQ(item.kind, Work::kExecute);
    vitals_.NoteExit("killed by signal 9");
  });
  auto result = work_.Run(Work::kExecute, {}, 0);
  ASSERT_FALSE(result.ok());
  const std::string why(result.TakeError().message());
  EXPECT_NE(why.find("model_0"), std::string::npos) << why;
  EXPECT_NE(why.find("killed by signal 9"), std::string::npos) << why;
  EXPECT_EQ(kills_, 0);
}

TEST_F(ChannelTest, WhoseWorkerIsCondemnedSaysWhyAndNotHowItThenEnded) {
  base::Thread worker("slow", [this] {
    channel_->FirstWork();
    vitals_.Condemn("it used 900 MiB of memory, and isolation_memory_mb is 500");
    vitals_.Condemn("it did not respond");
    vitals_.NoteExit("killed by signal 9");
  });
  auto result = work_.Run(Work::kExecute, {}, 0);
  ASSERT_FALSE(result.ok());
  const std::string why(result.TakeError().message());
  EXPECT_NE(why.find("900 MiB"), std::string::npos) << why;
  worker.Join();
  EXPECT_EQ(vitals_.DeathMessage().find("signal"), std::string::npos) << vitals_.DeathMessage();
  EXPECT_EQ(kills_, 1);
}

// A worker that was taken over writes whatever it likes; the server believes none of it.
class HostileWorkerTest : public ChannelTest {
 protected:
  // Ends new work with a result that claims to be there.
  void Claim(python::WorkLine& work, uint64_t offset, uint64_t size) {
    work.Begin(Work::kExecute, {}, 0);
    control_.done.kind = 0;
    control_.done.ticket = control_.work.word.load();
    control_.done.offset = offset;
    control_.done.size = size;
    control_.done.word.fetch_add(1);
  }
  // Returns an offset or a size as a worker would choose it.
  uint64_t Evil(std::mt19937_64& random) const {
    const uint64_t corners[] = {0,
                                1,
                                63,
                                64,
                                kBlocksBegin,
                                kBlocksBegin - 64,
                                region_->size(),
                                region_->size() - 64,
                                region_->size() - 128,
                                region_->size() + 64,
                                UINT64_MAX,
                                UINT64_MAX - 63,
                                uint64_t{1} << 63};
    if (random() % 4 == 0) return random() >> (random() % 64);
    return corners[random() % std::size(corners)] + (random() % 3 - 1) * 64;
  }
  bool IsInside(std::span<const char> bytes) const {
    return bytes.data() >= region_->base() + kBlocksBegin &&
           bytes.data() + bytes.size() <= region_->base() + region_->size();
  }
};

TEST_F(HostileWorkerTest, HasNoResultOutsideTheMemory) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    // A worker that was caught is dead, so each round has a new one.
    python::Vitals vitals("model_0", control_, [&refused] { ++refused; });
    python::WorkLine work(*region_, vitals, blocks_, ring_);
    const int before = refused;
    Claim(work, Evil(random), Evil(random));
    auto result = work.Wait();
    if (!result.ok()) {
      EXPECT_EQ(refused, before + 1);
      EXPECT_NE(std::string(result.TakeError().message()).find(python::kCorruption),
                std::string::npos);
    } else if (result.value().block != nullptr) {
      ASSERT_TRUE(IsInside(result.value().payload));
    }
  }
  EXPECT_GT(refused, 500);
}

TEST_F(HostileWorkerTest, HasNoCallOutsideTheMemory) {
  std::mt19937_64 random(2);
  int refused = 0;
  int taken = 0;
  for (int round = 0; round < 3000; ++round) {
    const uint64_t offset = Evil(random);
    if (region_->Holds(offset, sizeof(BlockHeader)) && offset % alignof(BlockHeader) == 0) {
      reinterpret_cast<BlockHeader*>(region_->At(offset))->size = Evil(random);
    }
    const uint32_t head = control_.ring_head.load();
    control_.ring[head % python::kRingCapacity] = offset;
    control_.ring_head.store(head + 1);
    auto call = ring_.Take();
    if (!call.ok()) {
      EXPECT_EQ(std::string(call.TakeError().message()), python::kCorruption);
      ++refused;
      continue;
    }
    ASSERT_TRUE(call.value().has_value());
    ASSERT_TRUE(IsInside(call.value()->payload));
    ++taken;
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(taken, 10);
}

TEST_F(HostileWorkerTest, CannotClaimMoreCallsThanTheRingHasPlaces) {
  for (const uint32_t head : {python::kRingCapacity + 1, uint64_t{1} << 31, uint64_t{UINT32_MAX}}) {
    control_.ring_head.store(static_cast<uint32_t>(head));
    auto call = ring_.Take();
    ASSERT_FALSE(call.ok()) << head;
    call.TakeError().Ignore();
  }
}

TEST_F(HostileWorkerTest, CannotPassAnOldResultForThatOfNewWork) {
  work_.Begin(Work::kExecute, {}, 0);
  for (uint32_t ticket = 0; ticket < 50; ++ticket) {
    if (ticket == control_.work.word.load()) continue;
    control_.done.ticket = ticket;
    control_.done.word.fetch_add(1);
    EXPECT_FALSE(work_.Look({}).has_value());
  }
}

TEST_F(HostileWorkerTest, CannotShrinkTheMemoryUnderTheServer) {
  EXPECT_NE(ftruncate(region_->fd(), 4096), 0);
  EXPECT_NE(ftruncate(region_->fd(), static_cast<off_t>(region_->size() * 2)), 0);
}

}  // namespace
}  // namespace nereid::isolation
