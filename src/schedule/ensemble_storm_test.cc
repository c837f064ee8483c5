// SPDX-License-Identifier: Apache-2.0
// Random ensembles with max_inflight_requests, whose models have threads of their own, may be steps
// of several ensembles, and may share a resource of the rate limiter: whatever the graphs are,
// every response arrives and no step has more requests than its limit (E-13).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <set>

#include "base/thread.h"
#include "core/testing/fakes.h"
#include "schedule/testing/ensemble_fixture.h"
#include "schedule/testing/waiting_claim.h"

namespace nereid::schedule {
namespace {

// A model with one instance: a thread that responds to one request after another.
class OneInstance {
 public:
  struct Options {
    bool is_decoupled = false;
    int fan = 1;  // responses to a request
    // The end comes after the last response, not with it.
    bool ends_late = false;
    // Responds at once, on the thread that sends the request, as a cache does.
    bool is_immediate = false;
    // Executes only with what it needs from this limiter: the only resource, or nothing.
    RateLimiter* limiter = nullptr;
    bool needs_resource = false;
  };

  explicit OneInstance(const Options& options)
      : options_(options),
        claim_(options.limiter == nullptr ? nullptr : MakeClaim()),
        thread_("model", [this] { Work(); }) {}
  ~OneInstance() {
    {
      base::MutexLock lock(mutex_);
      is_ending_ = true;
      changed_.NotifyAll();
    }
    thread_.Join();
  }

  void Add(core::RequestPtr request) {
    const size_t in_flight = ++in_flight_;
    for (size_t most = most_; in_flight > most && !most_.compare_exchange_weak(most, in_flight);) {
    }
    if (options_.is_immediate) return Execute(std::move(request));
    base::MutexLock lock(mutex_);
    waiting_.push_back(std::move(request));
    changed_.NotifyAll();
  }
  // The most requests that it had at the same time.
  size_t most() const { return most_; }

 private:
  void Work() {
    for (;;) {
      core::RequestPtr request;
      {
        base::MutexLock lock(mutex_);
        while (waiting_.empty() && !is_ending_) changed_.Wait(mutex_);
        if (waiting_.empty()) return;
        request = std::move(waiting_.front());
        waiting_.pop_front();
      }
      if (claim_ != nullptr) claim_->Take();
      Execute(std::move(request));
      if (claim_ != nullptr) claim_->claim().Give();
    }
  }
  std::unique_ptr<WaitingClaim> MakeClaim() {
    std::vector<config::RateLimiter::Resource> needs;
    if (options_.needs_resource) needs = {{.name = "R", .count = 1}};
    return std::make_unique<WaitingClaim>(*options_.limiter, std::move(needs));
  }
  void Execute(core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    if (!options_.is_decoupled && !options_.ends_late) {
      core::ResponsePtr response = Respond(*request, 1);
      --in_flight_;
      return core::Complete(std::move(request), std::move(response));
    }
    for (int i = 0; i < options_.fan; ++i) sink.Send(Respond(*request, i), false);
    const core::RequestRef kept(*request);
    request.reset();
    --in_flight_;
    sink.Send(nullptr, true);
  }

  const Options options_;
  std::atomic<size_t> in_flight_{0};
  std::atomic<size_t> most_{0};
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<core::RequestPtr> waiting_ NEREID_GUARDED_BY(mutex_);
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitingClaim> claim_;
  base::Thread thread_;
};

// Counts the responses of one request.
class Counter final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool /*is_final*/) override {
    base::MutexLock lock(mutex_);
    if (response == nullptr) return;
    ++count_;
    if (!response->error().ok()) error_ = response->error().message();
  }
  void OnRequestGone() override {
    base::MutexLock lock(mutex_);
    is_gone_ = true;
    gone_.NotifyAll();
  }
  bool WaitUntilGone(base::TimePoint deadline) {
    base::MutexLock lock(mutex_);
    while (!is_gone_) {
      if (!gone_.WaitUntil(mutex_, deadline)) return is_gone_;
    }
    return true;
  }
  size_t count() {
    base::MutexLock lock(mutex_);
    return count_;
  }
  std::string error() {
    base::MutexLock lock(mutex_);
    return error_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar gone_;
  size_t count_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_gone_ NEREID_GUARDED_BY(mutex_) = false;
  std::string error_ NEREID_GUARDED_BY(mutex_);
};

class EnsembleStorm : public testing::TestWithParam<unsigned> {
 protected:
  // What a step of this model does to the number of responses, and the models within it.
  struct Part {
    std::string name;
    bool is_decoupled = false;
    size_t fan = 1;
    bool holds_resources = false;
    std::vector<std::string> parts;
  };
  // A step: its model, and which tensor it reads as I and, if there is one, as J.
  struct Step {
    Part part;
    std::string first;
    std::string second;
    std::string output;
  };

  unsigned Pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  Part MakePart(bool is_decoupled, bool has_two_inputs) {
    const std::string name = fmt::format("m{}", models_.size());
    const OneInstance::Options options{.is_decoupled = is_decoupled,
                                       .fan = is_decoupled ? static_cast<int>(Pick(5)) : 1,
                                       .ends_late = Pick(2) == 0,
                                       .is_immediate = !is_decoupled && Pick(3) == 0,
                                       .limiter = is_rate_limited_ ? &limiter_ : nullptr,
                                       .needs_resource = models_.size() % 2 == 0};
    auto& model = models_[name] = std::make_unique<OneInstance>(options);
    std::vector<std::string> inputs{"I"};
    if (has_two_inputs) inputs.emplace_back("J");
    engine_.Add(MakeModel(name, inputs, {"O"}, is_decoupled),
                [&model](core::RequestPtr request) { model->Add(std::move(request)); });
    return {.name = name,
            .is_decoupled = is_decoupled,
            .fan = static_cast<size_t>(options.fan),
            .holds_resources = is_rate_limited_ && options.needs_resource,
            .parts = {}};
  }

  // A chain of steps, with branches beside it that join it again before the next decoupled step.
  std::vector<Step> MakeSteps(unsigned count, bool may_nest) {
    std::vector<Step> steps;
    std::string latest = "in";
    std::string beside;
    std::vector<Part> known;  // with one input
    for (unsigned i = 0; i < count; ++i) {
      Step step{.part = {}, .first = latest, .second = {}, .output = fmt::format("t{}", i)};
      const unsigned kind = Pick(7);
      const bool joins = kind == 0 && !beside.empty();
      if (joins) {
        step.second = std::exchange(beside, "");
        step.part = MakePart(false, true);
      } else if ((kind == 1 || kind == 2) && may_nest) {
        step.part = MakeEnsemble(1 + Pick(2), Pick(3), false);
      } else if (kind == 3 && !known.empty()) {
        step.part = known[Pick(static_cast<unsigned>(known.size()))];
      } else if (!elsewhere_.empty() && Pick(2) == 0) {
        step.part = elsewhere_[Pick(static_cast<unsigned>(elsewhere_.size()))];
      } else {
        step.part = MakePart(kind < 6, false);
      }
      if (!joins) known.push_back(step.part);
      if (!joins && step.part.parts.empty()) models_here_.push_back(step.part);
      const bool stays_beside = !step.part.is_decoupled && beside.empty() && Pick(3) == 0;
      if (step.part.is_decoupled) beside.clear();
      (stays_beside ? beside : latest) = step.output;
      steps.push_back(std::move(step));
    }
    last_tensor_ = latest == "in" ? beside : latest;
    return steps;
  }

  Part MakeEnsemble(unsigned step_count, uint32_t limit, bool may_nest) {
    const std::vector<Step> steps = MakeSteps(step_count, may_nest);
    auto config = std::make_shared<config::ModelConfig>();
    config->name = fmt::format("e{}", ensembles_.size());
    config->input.push_back({.name = "I", .dims = {-1}});
    config->output.push_back({.name = "O", .dims = {-1}});
    config::Ensembling ensemble{.max_inflight_requests = limit};
    Part made{.name = config->name};
    std::vector<StepModel> models;
    const auto rename = [this](const std::string& tensor) {
      return tensor == "in" ? "I" : tensor == last_tensor_ ? "O" : tensor;
    };
    for (const Step& step : steps) {
      std::map<std::string, std::string> inputs{{"I", rename(step.first)}};
      if (!step.second.empty()) inputs["J"] = rename(step.second);
      ensemble.step.push_back({.model_name = step.part.name,
                               .model_version = -1,
                               .input_map = std::move(inputs),
                               .output_map = {{"O", rename(step.output)}}});
      models.push_back({.is_decoupled = step.part.is_decoupled,
                        .holds_resources = step.part.holds_resources,
                        .parts = step.part.parts});
      made.fan *= step.part.fan;
      made.holds_resources |= step.part.holds_resources;
      made.parts.push_back(step.part.name);
      made.parts.insert(made.parts.end(), step.part.parts.begin(), step.part.parts.end());
      ++uses_[step.part.name];
      if (limit > 0) limits_[step.part.name] += limit;
    }
    config->scheduling_choice = ensemble;
    auto plan = EnsemblePlan::Compile(*config, models);
    NEREID_CHECK(plan.ok());
    made.is_decoupled = plan->is_decoupled();
    auto model = MakeModel(made.name, {"I"}, {"O"}, made.is_decoupled);
    ensembles_.push_back(model.get());
    model->SetScheduler(std::make_unique<EnsembleScheduler>(*model, std::move(plan).value(),
                                                            engine_, waits_, timers_));
    core::Model& ensemble_model = *model;
    engine_.Add(std::move(model), [&ensemble_model](core::RequestPtr request) {
      ensemble_model.scheduler().Enqueue(std::move(request));
    });
    return made;
  }

  core::RequestPtr MakeRequest(core::Model& model, core::ResponseSink& sink) {
    core::RequestPtr request = core::Request::Create(sink);
    NEREID_CHECK(model.TryPin());
    request->model = core::ModelHandle(model);
    core::RequestInput& input = request->AddInput("I", tensor::DataType::kUint8);
    input.shape = {kSize};
    input.Append({.data = data_.data(), .size = kSize, .where = {}});
    return request;
  }

  std::mt19937 random_{GetParam()};
  const std::vector<std::byte> data_{kSize, std::byte{7}};
  const bool is_rate_limited_ = GetParam() % 3 == 0;
  base::Timers timers_;
  RateLimiter limiter_{{}, timers_};
  ProducerWaits waits_;
  FakeEngine engine_;
  std::vector<core::Model*> ensembles_;
  std::string last_tensor_;               // of the ensemble made last: its output
  std::vector<Part> models_here_;         // with one input, of the ensembles being made
  std::vector<Part> elsewhere_;           // with one input, of ensembles made before
  std::map<std::string, size_t> uses_;    // by model: steps
  std::map<std::string, size_t> limits_;  // by model: the sum over its steps in limited ensembles
  // After the engine, because their threads use it.
  std::map<std::string, std::unique_ptr<OneInstance>> models_;
};

// E-13
TEST_P(EnsembleStorm, EveryResponseArrivesWithinTheLimits) {
  std::array<core::Model*, 2> roots{};
  std::array<size_t, 2> expected{};
  for (size_t i = 0; i < roots.size(); ++i) {
    expected[i] = MakeEnsemble(2 + Pick(4), 1 + Pick(3), true).fan;
    roots[i] = ensembles_.back();
    elsewhere_ = models_here_;
  }
  std::array<Counter, 16> clients;
  for (size_t i = 0; i < clients.size(); ++i) {
    core::Model& model = *roots[i % 2];
    model.scheduler().Enqueue(MakeRequest(model, clients[i]));
  }
  const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (size_t i = 0; i < clients.size(); ++i) {
    if (!clients[i].WaitUntilGone(deadline)) {
      ADD_FAILURE() << "a request hangs";
      std::abort();  // models would wait for minutes
    }
    EXPECT_EQ(clients[i].error(), "");
    EXPECT_EQ(clients[i].count(), expected[i % 2]);
  }
  for (const auto& [name, part] : models_) {
    if (limits_[name] > 0 && uses_[name] == 1) {
      EXPECT_LE(part->most(), limits_[name]) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EnsembleStorm, testing::Range(0u, 500u));

}  // namespace
}  // namespace nereid::schedule
