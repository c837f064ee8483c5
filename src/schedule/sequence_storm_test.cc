// SPDX-License-Identifier: Apache-2.0
// Thousands of sequences at once, with cancellations, timeouts, sequences that are abandoned
// without an end, ids that are reused, reloads of the model, and far too few slots. Each request
// carries the tag of its sequence; the instances keep what a model would keep (by position, by id,
// and as implicit state) and respond with the tag that they find there. Whatever happens, no
// request may find the tag of another sequence.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "base/thread.h"
#include "schedule/sequence_scheduler.h"
#include "schedule/testing/context.h"
#include "schedule/testing/sequences.h"

namespace nereid::schedule {
namespace {

constexpr uint32_t kStart = core::kSequenceStart;
constexpr uint32_t kEnd = core::kSequenceEnd;

int64_t TagOf(const core::Request& request) {
  return std::get<int64_t>(request.parameters.at(0).value);
}

// The responses to one request.
class ClientSink final : public core::ResponseSink {
 public:
  explicit ClientSink(int64_t tag) : tag_(tag) {}

  void Send(core::ResponsePtr response, bool is_final) override {
    if (response != nullptr && response->error().ok()) {
      for (const core::Parameter& found : response->parameters()) {
        if (std::get<int64_t>(found.value) == tag_) continue;
        ++strange_;
        ADD_FAILURE() << found.name << " of " << std::get<int64_t>(found.value)
                      << " found in an answer to " << tag_;
      }
    }
    if (is_final) ++finals_;
  }
  void OnRequestReleased(core::Request&) override { ++released_; }
  void OnRequestGone() override { is_gone_.store(true); }

  bool is_gone() const { return is_gone_.load(); }
  int finals() const { return finals_; }
  int released() const { return released_; }
  int strange() const { return strange_; }

 private:
  const int64_t tag_;
  std::atomic<int> finals_{0};
  std::atomic<int> released_{0};
  std::atomic<int> strange_{0};
  std::atomic<bool> is_gone_{false};
};

// What models remember by id, over all instances.
struct Memory {
  base::Mutex mutex;
  std::map<uint64_t, int64_t> by_id;
};

// Gives a state of `request` a new value.
void WriteState(core::Request& request, int64_t value) {
  const int64_t shape[] = {1, 1};
  const auto state = request.states->New("STATE_OUT", tensor::DataType::kInt64, shape);
  ASSERT_TRUE(state.ok());
  const auto buffer = (*state)->Buffer(sizeof value);
  ASSERT_TRUE(buffer.ok());
  std::memcpy(*buffer, &value, sizeof value);
  ASSERT_TRUE((*state)->Update().ok());
}

// Works on padding some time after the execution that it was part of, and releases it: an
// asynchronous backend, which executes other batches meanwhile.
class LatePadding {
 public:
  // Returns when all of it is released.
  ~LatePadding() {
    {
      base::MutexLock lock(mutex_);
      is_over_ = true;
    }
    added_.NotifyAll();
    thread_.Join();
  }

  void Add(core::RequestPtr padding) {
    base::MutexLock lock(mutex_);
    waiting_.push_back(std::move(padding));
    added_.NotifyAll();
  }

 private:
  void Run() {
    std::mt19937 random;
    while (true) {
      core::RequestPtr padding;
      {
        base::MutexLock lock(mutex_);
        while (waiting_.empty() && !is_over_) added_.Wait(mutex_);
        if (waiting_.empty()) return;
        padding = std::move(waiting_.front());
        waiting_.pop_front();
      }
      for (uint32_t i = random() % 3; i > 0; --i) std::this_thread::yield();
      EXPECT_EQ(ControlValue<int64_t>(*padding, "STATE_IN"), 0);
      WriteState(*padding, -1);
    }
  }

  base::Mutex mutex_;
  base::CondVar added_;
  bool is_over_ NEREID_GUARDED_BY(mutex_) = false;
  std::deque<core::RequestPtr> waiting_ NEREID_GUARDED_BY(mutex_);
  base::Thread thread_{"padding", [this] { Run(); }};
};

class Instance final : public core::Instance {
 public:
  Instance(std::string name, bool is_direct, Memory& memory, LatePadding& late, uint32_t seed)
      : name_(std::move(name)),
        is_direct_(is_direct),
        memory_(memory),
        late_(late),
        random_(seed) {}

  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return false; }
  void Execute(std::span<core::RequestPtr> batch) override {
    by_position_.resize(std::max(by_position_.size(), batch.size()));
    if (random_() % 16 == 0) std::this_thread::yield();
    for (size_t i = 0; i < batch.size(); ++i) Run(std::move(batch[i]), i);
    // Some backends respond first and release later, some release later still.
    held_.clear();
  }

 private:
  void Run(core::RequestPtr request, size_t position) {
    if (request->is_padding) {
      EXPECT_EQ(ControlValue(*request, "READY"), 0);
      if (random_() % 2 == 0) late_.Add(std::move(request));
      return;
    }
    const int64_t tag = TagOf(*request);
    core::ResponsePtr response = core::Response::Create(*request);
    const bool is_start = ControlValue(*request, "START") == 1;
    if (is_direct_) Visit("position", by_position_[position], is_start, tag, *response);
    {
      base::MutexLock lock(memory_.mutex);
      Visit("id", memory_.by_id[ControlValue<uint64_t>(*request, "CORRID")], is_start, tag,
            *response);
    }
    VisitState(*request, is_start, tag, *response);
    if (random_() % 32 == 0) response->SetError(base::InternalError("the model failed"));
    core::ResponseSink& sink = request->sink();
    if (random_() % 2 == 0) {
      request.reset();
    } else {
      held_.push_back(std::move(request));
    }
    sink.Send(std::move(response), true);
  }
  static void Visit(std::string_view name, int64_t& place, bool is_start, int64_t tag,
                    core::Response& response) {
    if (is_start) place = tag;
    response.AddParameter({.name = name, .value = place});
  }
  static void VisitState(core::Request& request, bool is_start, int64_t tag,
                         core::Response& response) {
    const auto found = ControlValue<int64_t>(request, "STATE_IN");
    EXPECT_EQ(is_start, found == 0) << found;
    if (!is_start) response.AddParameter({.name = "state", .value = found});
    WriteState(request, tag);
  }

  const std::string name_;
  const bool is_direct_;
  Memory& memory_;
  LatePadding& late_;
  std::mt19937 random_;
  std::vector<int64_t> by_position_;
  std::vector<core::RequestPtr> held_;
};

struct Storm {
  uint32_t seed;
  bool is_direct;
};

// The model between two reloads.
struct Generation {
  ~Generation() { scheduler.reset(); }

  Memory memory;
  std::unique_ptr<core::Model> model;
  std::vector<core::Instance*> instances;
  std::unique_ptr<SequenceScheduler> scheduler;
  size_t slots = 0;
};

class SequenceStorm : public testing::TestWithParam<Storm> {
 protected:
  static constexpr size_t kInstances = 2;
  static constexpr size_t kClients = 4;
  static constexpr size_t kSequencesPerClient = 1000;

  void SetUp() override {
    base::MutexLock lock(mutex_);
    current_ = Load();
  }

  std::shared_ptr<Generation> Load() {
    SequenceModelOptions options{.max_batch_size = 4, .batching = AllControls()};
    options.batching.max_sequence_idle_microseconds = 3000;
    if (!GetParam().is_direct) {
      options.batching.strategy_choice =
          config::SequenceBatching::StrategyOldest{.max_candidate_sequences = 5,
                                                   .preferred_batch_size = {2},
                                                   .max_queue_delay_microseconds = 50};
    }
    options.batching.state.push_back({.input_name = "STATE_IN",
                                      .output_name = "STATE_OUT",
                                      .data_type = tensor::DataType::kInt64,
                                      .dims = {1}});
    auto states = core::StatePlan::Compile(options.batching, 4, {});
    EXPECT_TRUE(states.ok());
    auto loaded = std::make_shared<Generation>();
    loaded->model = MakeSequenceModel(std::move(options));
    std::vector<NewInstance> instances;
    for (size_t i = 0; i < kInstances; ++i) instances.emplace_back(MakeInstance(*loaded));
    auto made =
        SequenceScheduler::Create(*loaded->model, context_.Get(),
                                  {.states = std::move(states).value()}, std::move(instances));
    EXPECT_TRUE(made.ok());
    loaded->scheduler = std::move(made).value();
    loaded->slots = loaded->scheduler->FreeSlotCountForTest();
    return loaded;
  }
  std::unique_ptr<core::Instance> MakeInstance(Generation& generation) {
    const auto number = static_cast<uint32_t>(++made_);
    auto made =
        std::make_unique<Instance>("instance_" + std::to_string(number), GetParam().is_direct,
                                   generation.memory, late_, GetParam().seed + number);
    generation.instances.push_back(made.get());
    return made;
  }
  // Removes one instance, perhaps with sequences that it keeps to their ends, and adds another.
  void ChangeInstances() {
    Generation& generation = *Current();
    InstanceChange change;
    change.removed.push_back(generation.instances.front());
    generation.instances.erase(generation.instances.begin());
    change.added.push_back({.instance = MakeInstance(generation), .claim = {}});
    EXPECT_TRUE(generation.scheduler->ChangeInstances(std::move(change)).ok());
  }
  std::shared_ptr<Generation> Current() {
    base::MutexLock lock(mutex_);
    return current_;
  }
  // Reloads like the server: the new model takes new requests, the old one finishes its own.
  void Reload() {
    std::shared_ptr<Generation> old = Load();
    {
      base::MutexLock lock(mutex_);
      old.swap(current_);
    }
    std::promise<void> drained;
    old->model->Close([&drained] { drained.set_value(); });
    old->scheduler->Stop(std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
    drained.get_future().wait();
    ExpectAtRest(*old);
  }

  // Plays one client: a few sequences at a time, each with an id that is its own at that time.
  void Client(uint32_t client, std::deque<ClientSink>& sinks) {
    struct Open {
      uint64_t id = 0;
      int64_t tag = 0;
      int left = 0;
    };
    std::mt19937 random(GetParam().seed * 31 + client);
    std::vector<Open> open(6);
    for (size_t i = 0; i < open.size(); ++i) open[i].id = uint64_t{client} * 100 + i + 1;
    size_t started = 0;
    while (started < kSequencesPerClient) {
      Open& sequence = open[random() % open.size()];
      uint32_t flags = 0;
      if (sequence.left == 0) {
        // One in four is abandoned without an end: the id is reused at once, or the sequence
        // expires.
        flags = kStart;
        sequence.tag = static_cast<int64_t>(size_t{client} * 1'000'000 + ++started);
        sequence.left = 1 + static_cast<int>(random() % 6);
      }
      if (--sequence.left == 0 && random() % 4 != 0) flags |= kEnd;
      ClientSink& sink = sinks.emplace_back(sequence.tag);
      // Takes the newest version that is open, as the engine does.
      std::shared_ptr<Generation> generation = Current();
      while (!generation->model->TryPin()) generation = Current();
      const core::ModelHandle pin(*generation->model);
      core::RequestPtr request = MakeSequenceRequest(*generation->model, sink, sequence.id, flags);
      if (!request->model) request->model = pin.Duplicate();
      request->parameters.push_back({.name = "tag", .value = sequence.tag});
      if (random() % 8 == 0) request->timeout_us = 1 + random() % 500;
      core::RequestRef ref(*request);
      const bool cancels = random() % 24 == 0;
      if (cancels && random() % 2 == 0) ref->Cancel();  // before it arrives
      generation->scheduler->Enqueue(std::move(request));
      if (cancels) {
        ref->Cancel();
        generation->scheduler->OnCancelled(*ref);
      }
      ref.Reset();
      // Occasionally waits until everything is idle.
      if (random() % 64 == 0) WaitForGone(sinks);
    }
    WaitForGone(sinks);
  }
  static void WaitForGone(const std::deque<ClientSink>& sinks) {
    for (auto sink = sinks.rbegin(); sink != sinks.rend(); ++sink) {
      while (!sink->is_gone()) std::this_thread::yield();
    }
  }

  // Sequences without an end are idle by then, and free their slots by themselves.
  static void ExpectAtRest(Generation& generation) {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (generation.scheduler->SequenceCount() > 0 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(generation.scheduler->FreeSlotCountForTest(), generation.slots);
    EXPECT_EQ(generation.model->statistics().Read().pending_count, 0u);
  }
  // Runs all clients; every request must have completed once, and with its own tag.
  void RunClients(std::function<void()> meanwhile) {
    std::vector<std::deque<ClientSink>> sinks(kClients);
    std::vector<std::thread> clients;
    std::atomic<size_t> running{kClients};
    for (uint32_t i = 0; i < kClients; ++i) {
      clients.emplace_back([this, i, &sinks, &running] {
        Client(i, sinks[i]);
        --running;
      });
    }
    while (running > 0) meanwhile();
    for (std::thread& client : clients) client.join();
    size_t count = 0;
    for (const auto& list : sinks) {
      for (const ClientSink& sink : list) {
        ++count;
        EXPECT_EQ(sink.finals(), 1);
        EXPECT_EQ(sink.released(), 1);
        EXPECT_EQ(sink.strange(), 0);
      }
    }
    EXPECT_GT(count, kClients * kSequencesPerClient);
  }

  TestContext context_;
  std::atomic<int> made_{0};
  base::Mutex mutex_;
  std::shared_ptr<Generation> current_ NEREID_GUARDED_BY(mutex_);
  LatePadding late_;  // releases padding before the model ends
};

TEST_P(SequenceStorm, NeverShowsASequenceWhatBelongsToAnotherAndLosesNoSlot) {
  RunClients([] { std::this_thread::yield(); });
  ExpectAtRest(*Current());
}

TEST_P(SequenceStorm, NorAcrossReloadsOfTheModel) {
  int reloads = 0;
  RunClients([&] {
    Reload();
    ++reloads;
  });
  EXPECT_GT(reloads, 3);
  ExpectAtRest(*Current());
}

// I-4: sequences keep their instance and slot to their end.
TEST_P(SequenceStorm, NorWhileInstancesComeAndGo) {
  int changes = 0;
  RunClients([&] {
    ChangeInstances();
    ++changes;
  });
  EXPECT_GT(changes, 3);
  ExpectAtRest(*Current());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SequenceStorm,
                         testing::Values(Storm{1, true}, Storm{2, true}, Storm{3, true},
                                         Storm{1, false}, Storm{2, false}, Storm{3, false}),
                         [](const auto& info) {
                           return (info.param.is_direct ? "Direct" : "Oldest") +
                                  std::to_string(info.param.seed);
                         });

}  // namespace
}  // namespace nereid::schedule
