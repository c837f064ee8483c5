// SPDX-License-Identifier: Apache-2.0
#include "schedule/sequence_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

constexpr uint64_t kIdleNs = 1000;

class SequenceTableTest : public testing::Test {
 protected:
  void Make(size_t instances, size_t slots) {
    table_ = std::make_unique<SequenceTable>(SequenceTable::Options{
        .instance_count = instances, .slots_per_instance = slots, .idle_ns = kIdleNs});
  }
  core::RequestPtr Request(uint64_t id, uint32_t flags, uint64_t timeout_us = 0) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 1});
    request->correlation_id = id;
    request->flags = flags;
    request->timeout_us = timeout_us;
    return request;
  }
  // Returns null if a sequence must be started first.
  Sequence* Push(uint64_t id, uint32_t flags = 0, uint64_t now_ns = 0, uint64_t timeout_us = 0) {
    Sequence* const sequence = table_->Find(id, (flags & core::kSequenceStart) != 0);
    if (sequence == nullptr) return nullptr;
    core::RequestPtr request = Request(id, flags, timeout_us);
    sequence_of_[request.get()] = sequence;
    table_->Admit(*sequence, std::move(request), now_ns);
    return sequence;
  }
  // Runs the next request of `sequence` from its dispatch to its last response.
  void Run(Sequence& sequence, uint64_t now_ns = 0) {
    core::RequestPtr request = table_->Dispatch(sequence);
    table_->OnReleased(sequence, *request, now_ns);
    request.reset();
    table_->OnGone(sequence, now_ns);
  }

  static constexpr uint32_t kStart = core::kSequenceStart;
  static constexpr uint32_t kEnd = core::kSequenceEnd;

  core::FakeSink sink_;
  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(8, {1});
  std::unique_ptr<SequenceTable> table_;
  std::map<const core::Request*, Sequence*> sequence_of_;
};

TEST_F(SequenceTableTest, WantsAStartFirst) {
  Make(1, 2);
  EXPECT_EQ(Push(7), nullptr);
  EXPECT_NE(Push(7, kStart), nullptr);
  EXPECT_NE(Push(7), nullptr);
}

TEST_F(SequenceTableTest, KnowsSinceWhenTheOldestRequestWaits) {
  Make(1, 1);
  EXPECT_EQ(table_->OldestNs(), UINT64_MAX);
  const auto admit = [&](uint64_t id, uint32_t flags, uint64_t since_ns) {
    core::RequestPtr request = Request(id, flags, /*timeout_us=*/0);
    request->times.queue_start_ns = since_ns;
    Sequence& sequence = *table_->Find(id, (flags & kStart) != 0);
    table_->Admit(sequence, std::move(request), since_ns);
    return &sequence;
  };
  Sequence* const with_slot = admit(1, kStart, 30);
  admit(1, 0, 40);
  admit(2, kStart, 35);  // in the backlog
  EXPECT_EQ(table_->OldestNs(), 30u);
  Run(*with_slot);
  EXPECT_EQ(table_->OldestNs(), 35u);
}

TEST_F(SequenceTableTest, SlotsOfANewInstanceGoToTheBacklogFirst) {
  Make(1, 1);
  Push(1, kStart);
  Sequence* const waiting = Push(2, kStart);
  EXPECT_EQ(waiting->slot(), Sequence::kNoSlot);
  table_->AddInstance(1, 5);
  EXPECT_EQ(table_->at(1, 0), waiting);
  EXPECT_EQ(table_->backlog_count(), 0u);
  EXPECT_EQ(waiting->ready_since_ns(), 5u);
  EXPECT_EQ(table_->free_slot_count(), 0u);
}

TEST_F(SequenceTableTest, SequencesKeepTheSlotsOfARetiredInstanceAndNoOthersGetThem) {
  Make(2, 2);
  Sequence* const kept = Push(1, kStart);
  ASSERT_EQ(table_->at(0, 0), kept);
  table_->RetireInstance(0);
  EXPECT_FALSE(table_->IsUnused(0));
  EXPECT_EQ(table_->free_slot_count(), 2u);
  Run(*kept);
  for (uint64_t id = 2; id <= 4; ++id) Push(id, kStart);
  EXPECT_EQ(table_->at(0, 1), nullptr);
  EXPECT_EQ(table_->backlog_count(), 1u);
  Push(1, kEnd);
  Run(*kept);
  EXPECT_TRUE(table_->IsUnused(0));
  EXPECT_EQ(table_->at(0, 0), nullptr);
  EXPECT_EQ(table_->backlog_count(), 1u) << "the free slot is not given away";
  table_->AddInstance(0, 0);
  EXPECT_NE(table_->at(0, 0), nullptr);
  EXPECT_EQ(table_->free_slot_count(), 1u);
}

TEST_F(SequenceTableTest, FillsTheLowestPositionsOfAllInstancesFirst) {
  Make(2, 2);
  Push(1, kStart);
  Push(2, kStart);
  Push(3, kStart);
  EXPECT_NE(table_->at(0, 0), nullptr);
  EXPECT_NE(table_->at(1, 0), nullptr);
  EXPECT_NE(table_->at(0, 1), nullptr);
  EXPECT_EQ(table_->at(1, 1), nullptr);
}

TEST_F(SequenceTableTest, KeepsTextsAndNumbersApart) {
  Make(1, 4);
  const std::string text = "7";
  Sequence* const number = table_->Find(uint64_t{7}, true);
  Sequence* const named = table_->Find(std::string_view(text), true);
  EXPECT_NE(number, named);
  EXPECT_EQ(table_->Find(std::string_view("7"), false), named);
  table_->Admit(*number, Request(7, kStart), 0);
  table_->Admit(*named, Request(7, kStart), 0);
}

TEST_F(SequenceTableTest, RunsOneRequestOfASequenceAtATime) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  Push(1);
  core::RequestPtr first = table_->Dispatch(sequence);
  EXPECT_FALSE(sequence.is_ready());
  table_->OnReleased(sequence, *first, 0);
  EXPECT_TRUE(sequence.is_ready());
}

TEST_F(SequenceTableTest, AssignsASlotOnlyWhenTheLastResponseIsGone) {
  Make(1, 1);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(2, kStart);
  EXPECT_EQ(second.slot(), Sequence::kNoSlot);
  EXPECT_EQ(table_->backlog_count(), 1u);
  core::RequestPtr request = table_->Dispatch(first);
  table_->OnReleased(first, *request, 0);
  request.reset();
  EXPECT_EQ(second.slot(), Sequence::kNoSlot);
  table_->OnGone(first, 0);
  EXPECT_EQ(second.slot(), 0u);
  EXPECT_TRUE(second.is_ready());
  EXPECT_EQ(table_->backlog_count(), 0u);
}

TEST_F(SequenceTableTest, ServesTheBacklogInOrder) {
  Make(1, 1);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(2, kStart | kEnd);
  Sequence& third = *Push(3, kStart | kEnd);
  Run(first);
  EXPECT_EQ(second.slot(), 0u);
  EXPECT_EQ(third.slot(), Sequence::kNoSlot);
  Run(second);
  EXPECT_EQ(third.slot(), 0u);
  Run(third);
  EXPECT_EQ(table_->free_slot_count(), 1u);
  EXPECT_EQ(table_->sequence_count(), 0u);
}

TEST_F(SequenceTableTest, AnIdWhoseEndArrivedIsUnknown) {
  Make(1, 2);
  Push(1, kStart | kEnd);
  EXPECT_EQ(Push(1), nullptr);
}

TEST_F(SequenceTableTest, ASecondSequenceOfAnIdWaitsForTheFirst) {
  Make(1, 2);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(1, kStart);
  EXPECT_NE(&first, &second);
  EXPECT_FALSE(second.is_ready());
  EXPECT_EQ(table_->backlog_count(), 0u);
  EXPECT_EQ(table_->free_slot_count(), 1u) << "it gets the slot of the first";
  Run(first);
  EXPECT_TRUE(second.is_ready());
  EXPECT_EQ(table_->at(0, 0), &second);
  EXPECT_EQ(table_->free_slot_count(), 1u);
  // The name belongs to the second sequence now.
  EXPECT_EQ(table_->Find(uint64_t{1}, false), &second);
}

TEST_F(SequenceTableTest, AThirdSequenceOfAnIdWaitsForTheFirstWhenTheSecondIsGivenUp) {
  Make(1, 3);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(1, kStart | kEnd);
  Sequence& third = *Push(1, kStart | kEnd);
  SequenceTable::Refused refused;
  table_->Abort(second, 0, refused);
  ASSERT_EQ(refused.size(), 1u);
  refused.clear();
  table_->OnGone(second, 0);
  EXPECT_FALSE(third.is_ready());
  Run(first);
  EXPECT_TRUE(third.is_ready());
  Run(third);
  EXPECT_EQ(table_->free_slot_count(), 3u);
}

TEST_F(SequenceTableTest, ASequenceThatFollowsOneGivenUpStillWaitsForTheFirst) {
  Make(1, 3);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(1, kStart);
  SequenceTable::Refused refused;
  table_->Abort(second, 0, refused);
  refused.clear();
  table_->OnGone(second, 0);
  Sequence& third = *Push(1, kStart);
  EXPECT_FALSE(third.is_ready());
  Run(first);
  EXPECT_TRUE(third.is_ready());
}

TEST_F(SequenceTableTest, AnInstanceThatLeavesRunsTheSequencesThatFollowOnesThere) {
  Make(2, 1);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(1, kStart | kEnd);
  table_->RetireInstance(0);
  Sequence& third = *Push(1, kStart);
  EXPECT_EQ(table_->at(1, 0), &third) << "it begins afterwards, and gets a slot that stays";
  Run(first);
  EXPECT_EQ(table_->at(0, 0), &second);
  EXPECT_FALSE(third.is_ready());
  Run(second);
  EXPECT_TRUE(table_->IsUnused(0));
  EXPECT_TRUE(third.is_ready());
}

// The second one would wait for a slot, and the third, which has the only one, for the second.
TEST_F(SequenceTableTest, SequencesOfAnIdDoNotWaitForEachOtherWhenAnInstanceLeaves) {
  Make(2, 1);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& second = *Push(1, kStart | kEnd);
  Sequence& other = *Push(2, kStart | kEnd);
  Sequence& third = *Push(1, kStart | kEnd);
  table_->RetireInstance(0);
  Run(other);
  EXPECT_EQ(table_->at(1, 0), &third);
  Run(first);
  Run(second);
  EXPECT_TRUE(third.is_ready());
}

TEST_F(SequenceTableTest, ASecondSequenceOfAnIdWaitsBehindOthersIfNoSlotIsFree) {
  Make(1, 1);
  Sequence& first = *Push(1, kStart | kEnd);
  Sequence& other = *Push(2, kStart | kEnd);
  Sequence& second = *Push(1, kStart | kEnd);
  EXPECT_EQ(table_->backlog_count(), 2u);
  Run(first);
  EXPECT_EQ(table_->at(0, 0), &other);
  Run(other);
  EXPECT_EQ(table_->at(0, 0), &second);
  EXPECT_TRUE(second.is_ready());
}

TEST_F(SequenceTableTest, ASequenceAfterOneThatWasGivenUpInTheBacklogIsNotForgotten) {
  Make(1, 1);
  Sequence& other = *Push(2, kStart | kEnd);
  Sequence& first = *Push(1, kStart | kEnd);
  SequenceTable::Refused refused;
  table_->Abort(first, 0, refused);
  Sequence& second = *Push(1, kStart | kEnd);  // before the first is gone
  refused.clear();
  table_->OnGone(first, 0);
  Run(other);
  EXPECT_TRUE(second.is_ready());
}

// Whatever happens, each sequence ends, and all slots are free afterwards.
TEST_F(SequenceTableTest, LosesNoSequenceAndNoSlot) {
  std::mt19937 random(7);
  const auto below = [&](size_t count) { return random() % count; };
  for (int round = 0; round < 5000; ++round) {
    constexpr size_t kInstances = 3;
    const size_t slots = 1 + below(2);
    Make(kInstances, slots);
    uint64_t now_ns = 1;
    SequenceTable::Refused refused;
    const auto drop_refused = [&] {
      for (core::RequestPtr& request : std::exchange(refused, {})) {
        Sequence& sequence = *sequence_of_.at(request.get());
        request.reset();
        table_->OnGone(sequence, now_ns);
      }
    };
    // Requests on their way through a backend: first released, then gone.
    struct Flight {
      Sequence* sequence;
      core::RequestPtr request;
    };
    std::vector<Flight> flights;
    const auto end_one = [&] {
      if (flights.empty()) return;
      const auto flight = flights.begin() + static_cast<std::ptrdiff_t>(below(flights.size()));
      if (flight->request != nullptr) {
        table_->OnReleased(*flight->sequence, *flight->request, now_ns);
        flight->request.reset();
        return;
      }
      Sequence& sequence = *flight->sequence;
      flights.erase(flight);
      table_->OnGone(sequence, now_ns);
    };
    const auto check_slots = [&] {
      size_t used = 0;
      for (size_t at = 0; at < kInstances * slots; ++at) {
        const Sequence* const sequence = table_->at(at / slots, at % slots);
        if (sequence == nullptr) continue;
        ++used;
        ASSERT_EQ(sequence->slot(), at) << "round " << round;
      }
      EXPECT_LE(used + table_->free_slot_count(), kInstances * slots);
      EXPECT_TRUE(table_->free_slot_count() == 0 || table_->backlog_count() == 0);
    };
    // The sequences that wait for a slot. The next slot goes to the one that has waited longest.
    std::vector<Sequence*> backlog;
    const auto check_order = [&] {
      for (const core::RequestPtr& request : refused) {
        std::erase(backlog, sequence_of_.at(request.get()));
      }
      const auto has_slot = [](const Sequence* sequence) {
        return sequence->slot() != Sequence::kNoSlot;
      };
      ASSERT_TRUE(std::ranges::is_partitioned(backlog, has_slot)) << "round " << round;
      std::erase_if(backlog, has_slot);
    };
    const auto run_one = [&] {
      for (size_t at = below(kInstances), tried = 0; tried < kInstances; ++tried) {
        Sequence* const ready = table_->first_ready((at + tried) % kInstances);
        if (ready == nullptr) continue;
        flights.push_back({.sequence = ready, .request = table_->Dispatch(*ready)});
        return true;
      }
      return false;
    };
    for (int step = 0; step < 60; ++step, now_ns += below(kIdleNs / 8)) {
      switch (below(8)) {
        case 0:
          table_->Expire(now_ns, refused);
          break;
        case 1:
          table_->RetireInstance(1 + below(kInstances - 1));
          break;
        case 2:
          table_->AddInstance(1 + below(kInstances - 1), now_ns);
          break;
        case 3:
          if (Sequence* const found = table_->Find(uint64_t{1 + below(4)}, false)) {
            table_->Abort(*found, now_ns, refused);
          }
          break;
        case 4:
          run_one();
          break;
        case 5:
          end_one();
          break;
        default: {
          const size_t count = table_->sequence_count();
          const size_t free = table_->free_slot_count();
          Sequence* const pushed =
              Push(1 + below(4), (below(2) != 0 ? kStart : 0) | (below(2) != 0 ? kEnd : 0), now_ns,
                   below(3));
          if (free == 0 && table_->sequence_count() > count) backlog.push_back(pushed);
        }
      }
      ASSERT_NO_FATAL_FAILURE(check_order());
      if (below(4) == 0) drop_refused();
      ASSERT_NO_FATAL_FAILURE(check_slots());
      ASSERT_NO_FATAL_FAILURE(check_order());
    }
    for (int step = 0; step < 100; ++step, now_ns += kIdleNs) {
      drop_refused();
      while (run_one() || !flights.empty()) end_one();
      table_->Expire(now_ns, refused);
    }
    drop_refused();
    ASSERT_EQ(table_->sequence_count(), 0u) << "round " << round;
    EXPECT_EQ(table_->waiting_count(), 0u);
    EXPECT_EQ(table_->backlog_count(), 0u);
    for (size_t instance = 0; instance < kInstances; ++instance) {
      EXPECT_TRUE(table_->IsUnused(instance));
      table_->AddInstance(instance, now_ns);
    }
    EXPECT_EQ(table_->free_slot_count(), kInstances * slots);
  }
}

TEST_F(SequenceTableTest, ClosesASequenceThatIsIdleTooLong) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart, 100);
  EXPECT_EQ(table_->NextExpiry(), std::nullopt);  // it waits, so it is not idle
  Run(sequence, 500);
  EXPECT_EQ(table_->NextExpiry(), 500 + kIdleNs);
  SequenceTable::Refused refused;
  table_->Expire(500 + kIdleNs - 1, refused);
  EXPECT_EQ(table_->free_slot_count(), 0u);
  table_->Expire(500 + kIdleNs, refused);
  EXPECT_EQ(table_->free_slot_count(), 1u);
  EXPECT_EQ(Push(1), nullptr);
  EXPECT_EQ(table_->sequence_count(), 0u);
}

TEST_F(SequenceTableTest, AnIdleSequenceKeepsItsSlotWhileAResponseIsPending) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  core::RequestPtr request = table_->Dispatch(sequence);
  table_->OnReleased(sequence, *request, 0);
  SequenceTable::Refused refused;
  table_->Expire(kIdleNs, refused);
  EXPECT_EQ(table_->free_slot_count(), 0u);
  request.reset();
  table_->OnGone(sequence, kIdleNs);
  EXPECT_EQ(table_->free_slot_count(), 1u);
}

TEST_F(SequenceTableTest, RefusesBackloggedSequencesThatExpired) {
  Make(1, 1);
  Push(1, kStart);
  Push(2, kStart, 0, 5);
  Push(2, 0, 0, 1);  // the shortest timeout applies to all of them
  Push(3, kStart);
  EXPECT_EQ(table_->NextExpiry(), 1000u);
  SequenceTable::Refused refused;
  table_->Expire(1000, refused);
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_EQ(Push(2), nullptr);
  EXPECT_EQ(table_->backlog_count(), 1u);
}

TEST_F(SequenceTableTest, AbortTakesEverythingThatWaits) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  core::RequestPtr running = table_->Dispatch(sequence);
  Push(1);
  Push(1);
  SequenceTable::Refused refused;
  table_->Abort(sequence, 0, refused);
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_EQ(table_->waiting_count(), 0u);
  EXPECT_EQ(Push(1), nullptr);
  for (core::RequestPtr& request : refused) {
    table_->OnReleased(sequence, *request, 0);
    request.reset();
    table_->OnGone(sequence, 0);
  }
  EXPECT_EQ(table_->free_slot_count(), 0u);
  table_->OnReleased(sequence, *running, 0);
  running.reset();
  table_->OnGone(sequence, 0);
  EXPECT_EQ(table_->free_slot_count(), 1u);
}

TEST_F(SequenceTableTest, CancellingLeavesWhatWasStartedLater) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  Push(1);
  core::Request* const cancelled = sequence.front()->next;
  Push(1, kStart);
  Push(1);
  SequenceTable::Refused refused;
  table_->Cancel(sequence, *cancelled, 0, refused);
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_EQ(sequence.size(), 2u);
  EXPECT_TRUE(sequence.is_ready());
  EXPECT_EQ(Push(1), &sequence);
}

TEST_F(SequenceTableTest, CancellingLeavesEarlierSequencesAndLetsNoRequestJoin) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  Push(1, kStart);
  core::Request* const cancelled = sequence.front()->next;
  Push(1);
  SequenceTable::Refused refused;
  table_->Cancel(sequence, *cancelled, 0, refused);
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_EQ(sequence.size(), 1u);
  EXPECT_TRUE(sequence.is_ready());
  EXPECT_EQ(Push(1), nullptr);
}

// S-14, S-34
TEST_F(SequenceTableTest, CancellingANewStartLeavesTheRequestThatABackendHas) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  core::RequestPtr running = table_->Dispatch(sequence);
  running->flags = 0;
  Push(1, kStart);
  core::Request* const cancelled = sequence.front();
  Push(1);
  SequenceTable::Refused refused;
  table_->Cancel(sequence, *cancelled, 0, refused);
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_FALSE(sequence.is_aborted());
  EXPECT_EQ(Push(1), nullptr) << "the sequence that the cancelled one started is over";
  core::Request* const returning = running.get();
  table_->PutBack(sequence, std::move(running), 0);
  EXPECT_TRUE(sequence.is_ready());
  EXPECT_EQ(sequence.front(), returning);
  refused.clear();
  for (int i = 0; i < 2; ++i) table_->OnGone(sequence, 0);
  Run(sequence);
  EXPECT_EQ(table_->free_slot_count(), 1u);
}

TEST_F(SequenceTableTest, CancellingWhatWaitsBehindItDoesNot) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  const core::RequestPtr running = table_->Dispatch(sequence);
  Push(1);
  SequenceTable::Refused refused;
  table_->Cancel(sequence, *sequence.front(), 0, refused);
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_TRUE(sequence.is_aborted());
}

TEST_F(SequenceTableTest, TheTimeoutOfACancelledRequestAffectsNoOther) {
  Make(1, 1);
  Push(1, kStart);
  Sequence& waiting = *Push(2, kStart, 0, 5);
  Push(2, kStart, 0, 9);
  EXPECT_EQ(table_->NextExpiry(), 5000u);
  SequenceTable::Refused refused;
  table_->Cancel(waiting, *waiting.front(), 0, refused);
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_EQ(table_->NextExpiry(), 9000u);
  EXPECT_EQ(table_->backlog_count(), 1u);
}

TEST_F(SequenceTableTest, ARequestThatComesBackStandsBehindTheOthers) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  core::RequestPtr running = table_->Dispatch(sequence);
  Push(1);
  core::Request* const returning = running.get();
  table_->PutBack(sequence, std::move(running), 0);
  EXPECT_NE(sequence.front(), returning);
  Run(sequence);
  EXPECT_EQ(sequence.front(), returning);
}

// S-31; and S-14: who started the sequence again is not cancelled with the request.
TEST_F(SequenceTableTest, ARequestThatComesBackStandsInFrontOfANewStart) {
  Make(1, 1);
  Sequence& sequence = *Push(1, kStart);
  core::RequestPtr running = table_->Dispatch(sequence);
  running->flags = 0;
  Push(1);
  Push(1, kStart);
  Push(1);
  core::Request* const returning = running.get();
  table_->PutBack(sequence, std::move(running), 0);
  Run(sequence);
  EXPECT_EQ(sequence.front(), returning);
  SequenceTable::Refused refused;
  table_->Cancel(sequence, *returning, 0, refused);
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_EQ(sequence.size(), 2u);
  EXPECT_EQ(sequence.front()->flags, kStart);
  EXPECT_FALSE(sequence.is_closed());
}

TEST_F(SequenceTableTest, TellsWhatItHolds) {
  Make(2, 2);
  Sequence* const idle = Push(7, kStart, 100);
  Run(*idle, 150);
  Sequence* const busy = Push(8, kStart, 100);
  Push(8, kEnd, 110);
  const core::RequestPtr request = table_->Dispatch(*busy);
  core::SequencesReading reading = table_->Read(10, 400);
  EXPECT_EQ(reading.used_slots, 2u);
  EXPECT_EQ(reading.free_slots, 2u);
  EXPECT_EQ(reading.idle_limit_ns, kIdleNs);
  ASSERT_EQ(reading.running.size(), 2u);
  EXPECT_EQ(reading.running[0].id, "7");
  EXPECT_EQ(reading.running[0].idle_ns, 250u);
  EXPECT_FALSE(reading.running[0].is_executing);
  EXPECT_EQ(reading.running[1].id, "8");
  EXPECT_EQ(reading.running[1].instance, 1u);
  EXPECT_EQ(reading.running[1].position, 0u);
  EXPECT_EQ(reading.running[1].waiting, 1u);
  EXPECT_TRUE(reading.running[1].is_executing);
  EXPECT_TRUE(reading.running[1].is_closed);
  // No more than the reader wants, but all are counted.
  for (uint64_t id = 10; id < 15; ++id) Push(id, kStart, 200);
  Push(12, 0, 210);
  reading = table_->Read(2, 400);
  EXPECT_EQ(reading.used_slots, 4u);
  EXPECT_EQ(reading.running.size(), 2u);
  EXPECT_EQ(reading.backlog_sequences, 3u);
  EXPECT_EQ(reading.backlog_requests, 4u);
  ASSERT_EQ(reading.backlog.size(), 2u);
  EXPECT_EQ(reading.backlog[0].id, "12");
  EXPECT_EQ(reading.backlog[0].waiting, 2u);
}

}  // namespace
}  // namespace nereid::schedule
