// SPDX-License-Identifier: Apache-2.0
// Ensembles of models that the test plays, on as many threads as a case needs.
#include "schedule/ensemble_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kSize = 4096;  // bytes of a tensor: more than a response keeps in its own memory

core::ModelTensor Tensor(const std::string& name, bool is_optional = false) {
  core::ModelTensor tensor;
  tensor.name = name;
  tensor.type = tensor::DataType::kUint8;
  tensor.dims = {-1};
  tensor.model_dims = {-1};
  tensor.is_optional = is_optional;
  return tensor;
}

std::unique_ptr<core::Model> MakeModel(const std::string& name, std::vector<std::string> inputs,
                                       std::vector<std::string> outputs, bool decoupled = false) {
  core::ModelOptions options;
  options.name = name;
  options.version = 1;
  options.config = std::make_shared<config::ModelConfig>();
  options.is_decoupled = decoupled;
  for (const std::string& input : inputs) options.inputs.push_back(Tensor(input));
  for (const std::string& output : outputs) options.outputs.push_back(Tensor(output));
  return std::make_unique<core::Model>(std::move(options));
}

// Makes a response with each of the model's outputs, filled with `value`.
core::ResponsePtr Respond(core::Request& request, int value) {
  core::ResponsePtr response = core::Response::Create(request);
  const std::array<int64_t, 1> shape{kSize};
  for (const core::ModelTensor& output : request.model->outputs()) {
    core::ResponseOutput* added = response->AddOutput(output.name, tensor::DataType::kUint8, shape);
    EXPECT_TRUE(response->AllocateBuffer(*added, kSize, {}, false).ok());
    std::memset(added->data, value, kSize);
  }
  return response;
}

// Passes each request to the test's function for its model.
class FakeEngine final : public core::Submitter {
 public:
  using Behaviour = std::function<void(core::RequestPtr)>;

  void Add(std::unique_ptr<core::Model> model, Behaviour behaviour) {
    const std::string name = model->name();
    models_[name] = std::move(model);
    behaviours_[name] = std::move(behaviour);
  }
  base::Result<core::ModelHandle> PinModel(std::string_view name, int64_t /*version*/) override {
    const auto found = models_.find(std::string(name));
    if (found == models_.end()) return base::NotFoundError("no model '" + std::string(name) + "'");
    NEREID_CHECK(found->second->TryPin());
    return core::ModelHandle(*found->second);
  }
  void Submit(core::RequestPtr request) override {
    const auto& behave = behaviours_.at(request->model->name());
    behave(std::move(request));
  }
  void CancelSubmitted(core::Request& request) override {
    request.Cancel();
    if (on_cancel) on_cancel(request);
  }
  core::Model& model(const std::string& name) { return *models_.at(name); }

  std::function<void(core::Request&)> on_cancel;

 private:
  std::map<std::string, std::unique_ptr<core::Model>> models_;
  std::map<std::string, Behaviour> behaviours_;
};

// The sink of the ensemble's client.
class Client final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool is_final) override {
    EXPECT_EQ(finals, 0u);
    if (is_final) ++finals;
    if (on_response) on_response();
    if (response == nullptr) return responses.push_back(is_final ? "end" : "nothing");
    if (!response->error().ok())
      return responses.push_back(std::string(response->error().message()));
    std::string text;
    for (size_t i = 0; i < response->output_count(); ++i) {
      const core::ResponseOutput& output = response->output(i);
      text += (i > 0 ? " " : "") + std::string(output.name) + "=" +
              std::to_string(output.byte_size > 0 ? static_cast<int>(output.data[0]) : -1);
      data.push_back(output.data);
    }
    responses.push_back(text);
  }
  void OnRequestReleased(core::Request&) override { ++released; }
  void OnRequestGone() override { ++gone; }

  std::function<void()> on_response;
  std::vector<std::string> responses;
  std::vector<const std::byte*> data;
  size_t finals = 0;
  size_t released = 0;
  size_t gone = 0;
};

struct StepText {
  std::string model;
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
};

class EnsembleSchedulerTest : public testing::Test {
 protected:
  ~EnsembleSchedulerTest() override {
    // Everything was released.
    EXPECT_EQ(ensemble_->pin_count(), 0u);
  }

  void Make(std::vector<std::string> inputs, std::vector<std::string> outputs,
            std::vector<StepText> steps, uint32_t max_inflight_requests = 0) {
    auto config = std::make_shared<config::ModelConfig>();
    config->name = "e";
    for (const std::string& name : inputs) {
      config->input.push_back({.name = name, .dims = {-1}, .optional = name == "optional"});
    }
    for (const std::string& name : outputs) config->output.push_back({.name = name, .dims = {-1}});
    config::Ensembling ensemble;
    std::vector<bool> decoupled;
    for (StepText& step : steps) {
      ensemble.step.push_back({.model_name = step.model,
                               .model_version = -1,
                               .input_map = step.inputs,
                               .output_map = step.outputs});
      decoupled.push_back(step.model != "missing" && engine_.model(step.model).is_decoupled());
    }
    ensemble.max_inflight_requests = max_inflight_requests;
    config->scheduling_choice = ensemble;
    auto plan = EnsemblePlan::Compile(*config, decoupled);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    core::ModelOptions options;
    options.name = "e";
    options.version = 1;
    options.config = config;
    options.is_decoupled = plan->is_decoupled();
    for (const std::string& input : inputs) {
      options.inputs.push_back(Tensor(input, input == "optional"));
    }
    for (const std::string& output : outputs) options.outputs.push_back(Tensor(output));
    ensemble_ = std::make_unique<core::Model>(std::move(options));
    ensemble_->SetScheduler(
        std::make_unique<EnsembleScheduler>(*ensemble_, std::move(plan).value(), engine_));
  }

  core::RequestPtr Request(core::ResponseSink& client, std::vector<std::string> wanted = {}) {
    core::RequestPtr request = core::Request::Create(client);
    NEREID_CHECK(ensemble_->TryPin());
    request->model = core::ModelHandle(*ensemble_);
    for (size_t i = 0; i < ensemble_->inputs().size(); ++i) {
      if (ensemble_->inputs()[i].is_optional) continue;
      core::RequestInput& input =
          request->AddInput(ensemble_->inputs()[i].name, tensor::DataType::kUint8);
      input.shape = {kSize};
      input.model_index = static_cast<uint32_t>(i);
      input.Append({.data = data_.data(), .size = kSize, .where = {}});
    }
    for (const std::string& name : wanted) {
      request->outputs.push_back(
          {.name = name, .model_index = static_cast<uint32_t>(ensemble_->FindOutput(name))});
    }
    return request;
  }
  void Run(core::ResponseSink& client, std::vector<std::string> wanted = {}) {
    ensemble_->scheduler().Enqueue(Request(client, std::move(wanted)));
  }
  // A model that responds at once with its first input plus one.
  void AddCounting(const std::string& name, std::vector<std::string> inputs = {"I"}) {
    engine_.Add(MakeModel(name, inputs, {"O"}), [this, name](core::RequestPtr request) {
      order_.push_back(name);
      const int value =
          request->inputs.empty() ? 100 : static_cast<int>(*request->inputs[0].first.data);
      core::ResponsePtr response = Respond(*request, value + 1);
      Complete(std::move(request), std::move(response));
    });
  }
  // A model whose requests wait in `held_`.
  void AddHolding(const std::string& name, bool decoupled = false) {
    engine_.Add(MakeModel(name, {"I"}, {"O"}, decoupled),
                [this](core::RequestPtr request) { held_.push_back(std::move(request)); });
  }

  FakeEngine engine_;
  std::vector<std::string> order_;
  std::vector<core::RequestPtr> held_;
  const std::vector<std::byte> data_{kSize, std::byte{7}};
  std::unique_ptr<core::Model> ensemble_;
};

TEST_F(EnsembleSchedulerTest, RunsStepsAsTheirInputsAppear) {
  AddCounting("m");
  AddCounting("join", {"I", "J"});
  Make({"in"}, {"out"},
       {{"join", {{"I", "b"}, {"J", "c"}}, {{"O", "out"}}},
        {"m", {{"I", "in"}}, {{"O", "a"}}},
        {"m", {{"I", "a"}}, {{"O", "b"}}},
        {"m", {{"I", "a"}}, {{"O", "c"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=10"));
  EXPECT_THAT(order_, ElementsAre("m", "m", "m", "join"));
  EXPECT_EQ(client.finals, 1u);
  EXPECT_EQ(client.released, 1u);
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, MovesTensorsByReference) {
  std::vector<const std::byte*> read;
  std::vector<const std::byte*> made;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    read.push_back(request->inputs[0].first.data);
    core::ResponsePtr response = Respond(*request, 1);
    made.push_back(response->output(0).data);
    Complete(std::move(request), std::move(response));
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_THAT(read, ElementsAre(data_.data(), made[0]));
  EXPECT_THAT(client.data, ElementsAre(made[1]));
}

TEST_F(EnsembleSchedulerTest, FreesATensorWhenItsLastReaderIsDone) {
  AddHolding("m");
  AddHolding("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"n", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  ASSERT_EQ(held_.size(), 1u);
  core::RequestPtr request = std::move(held_[0]);
  held_.clear();
  core::ResponsePtr response = Respond(*request, 1);
  Complete(std::move(request), std::move(response));
  ASSERT_EQ(held_.size(), 1u);
  // The response exists, and with it the pin of its request.
  EXPECT_EQ(engine_.model("m").pin_count(), 1u);
  request = std::move(held_[0]);
  held_.clear();
  response = Respond(*request, 2);
  core::ResponseSink& sink = request->sink();
  request.reset();
  EXPECT_EQ(engine_.model("m").pin_count(), 0u);
  sink.Send(std::move(response), true);
  EXPECT_THAT(client.responses, ElementsAre("out=2"));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, RunsOnlyWhatTheRequestedOutputsNeed) {
  AddCounting("m");
  AddCounting("n");
  Make({"in"}, {"one", "two"},
       {{"m", {{"I", "in"}}, {{"O", "one"}}}, {"n", {{"I", "one"}}, {{"O", "two"}}}});
  Client client;
  Run(client, {"one"});
  EXPECT_THAT(client.responses, ElementsAre("one=8"));
  EXPECT_THAT(order_, ElementsAre("m"));
}

TEST_F(EnsembleSchedulerTest, StartsStepsWithoutOptionalInputsThatWereLeftOut) {
  AddCounting("m");
  size_t inputs = 99;
  engine_.Add(MakeModel("n", {"I", "J"}, {"O"}), [&](core::RequestPtr request) {
    inputs = request->inputs.size();
    core::ResponsePtr response = Respond(*request, 5);
    Complete(std::move(request), std::move(response));
  });
  Make({"in", "optional"}, {"out"}, {{"n", {{"I", "in"}, {"J", "optional"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=5"));
  EXPECT_EQ(inputs, 1u);
}

TEST_F(EnsembleSchedulerTest, PassesOnWhatTheRequestCarries) {
  core::Request* seen = nullptr;
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  request->id = "id";
  request->priority = 3;
  request->timeout_us = 77;
  const auto caller = std::make_shared<const core::Caller>();
  request->caller = caller;
  request->flags = core::kSequenceStart;
  request->correlation_id = std::string_view("sequence");
  request->parameters.push_back({.name = "p", .value = int64_t{1}});
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_EQ(held_.size(), 1u);
  seen = held_[0].get();
  EXPECT_EQ(seen->id, "id");
  EXPECT_EQ(seen->priority, 3u);
  EXPECT_EQ(seen->timeout_us, 77u);
  EXPECT_EQ(seen->caller, caller);
  EXPECT_EQ(seen->flags, core::kSequenceStart);
  EXPECT_EQ(std::get<std::string_view>(seen->correlation_id), "sequence");
  EXPECT_EQ(seen->parameters.size(), 1u);
  core::RequestPtr step = std::move(held_[0]);
  core::ResponsePtr response = Respond(*step, 1);
  Complete(std::move(step), std::move(response));
}

TEST_F(EnsembleSchedulerTest, CarriesTheRoundOnlyOnItsThread) {
  std::vector<core::RoundExecutor*> rounds;
  core::FakeRounds executor;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    rounds.push_back(request->round);
    if (rounds.size() == 2) {
      std::thread([&] {
        core::ResponsePtr response = Respond(*request, 1);
        Complete(std::move(request), std::move(response));
      }).join();
      return;
    }
    core::ResponsePtr response = Respond(*request, 1);
    Complete(std::move(request), std::move(response));
  });
  // The second step responds on another thread while this one is busy, and continues here.
  Make({"in"}, {"out"},
       {{"m", {{"I", "in"}}, {{"O", "a"}}},
        {"m", {{"I", "a"}}, {{"O", "b"}}},
        {"m", {{"I", "b"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  request->round = &executor;
  ensemble_->scheduler().Enqueue(std::move(request));
  EXPECT_THAT(rounds, ElementsAre(&executor, &executor, &executor));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, LosesTheRoundOnOtherThreads) {
  AddHolding("m");
  std::vector<core::RoundExecutor*> rounds;
  core::FakeRounds executor;
  engine_.Add(MakeModel("n", {"I"}, {"O"}), [&](core::RequestPtr request) {
    rounds.push_back(request->round);
    core::ResponsePtr response = Respond(*request, 1);
    Complete(std::move(request), std::move(response));
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"n", {{"I", "a"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  request->round = &executor;
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_EQ(held_.size(), 1u);
  std::thread([&] {
    core::RequestPtr step = std::move(held_[0]);
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }).join();
  EXPECT_THAT(rounds, ElementsAre(nullptr));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, RespondsOnceWhenAStepFailsAndStartsNothingMore) {
  AddCounting("m");
  AddHolding("slow");
  engine_.Add(MakeModel("bad", {"I"}, {"O"}), [&](core::RequestPtr request) {
    core::CompleteWithError(std::move(request), base::InternalError("no luck"));
  });
  Make({"in"}, {"out", "other", "third"},
       {{"slow", {{"I", "in"}}, {{"O", "a"}}},
        {"bad", {{"I", "in"}}, {{"O", "out"}}},
        {"m", {{"I", "in"}}, {{"O", "third"}}},
        {"m", {{"I", "a"}}, {{"O", "other"}}}});
  Client client;
  Run(client);
  // The slow step is still running.
  EXPECT_THAT(client.responses, IsEmpty());
  ASSERT_EQ(held_.size(), 1u);
  const size_t started = order_.size();
  core::RequestPtr step = std::move(held_[0]);
  core::ResponsePtr response = Respond(*step, 1);
  Complete(std::move(step), std::move(response));
  EXPECT_THAT(client.responses, ElementsAre("in ensemble 'e', no luck"));
  EXPECT_EQ(order_.size(), started);
  EXPECT_EQ(client.gone, 1u);
  EXPECT_EQ(ensemble_->statistics().Read().fail.count, 1u);
}

TEST_F(EnsembleSchedulerTest, FailsWhenAModelIsGone) {
  Make({"in"}, {"out"}, {{"missing", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("in ensemble 'e', no model 'missing'"));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, CancelsCallsInFlight) {
  AddHolding("m");
  AddCounting("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"n", {{"I", "x"}}, {{"O", "out"}}}});
  engine_.on_cancel = [&](core::Request& request) {
    ASSERT_EQ(&request, held_[0].get());
    core::CompleteWithError(std::move(held_[0]), base::CancelledError("Request cancelled"));
  };
  Client client;
  core::RequestPtr request = Request(client);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_EQ(held_.size(), 1u);
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  EXPECT_THAT(client.responses, ElementsAre("in ensemble 'e', Request cancelled"));
  EXPECT_THAT(order_, IsEmpty());
  // For requests that have ended or were never here nothing happens.
  ensemble_->scheduler().OnCancelled(*kept);
  kept.Reset();
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, StartsNothingForAClientThatHasGone) {
  AddHolding("m");
  AddCounting("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"n", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  // The model ignores the cancellation.
  core::ResponsePtr response = Respond(*held_[0], 1);
  Complete(std::move(held_[0]), std::move(response));
  EXPECT_THAT(client.responses,
              ElementsAre("in ensemble 'e', [request id: <id_unknown>] Request cancelled"));
  EXPECT_THAT(order_, IsEmpty());
  kept.Reset();
}

TEST_F(EnsembleSchedulerTest, RespondsToEachResponseOfADecoupledStep) {
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    for (int i = 10; i < 13; ++i) request->sink().Send(Respond(*request, i), false);
    core::ResponseSink& sink = request->sink();
    const core::RequestRef kept(*request);
    request.reset();
    sink.Send(nullptr, true);
  });
  AddCounting("m");
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=11", "out=12", "out=13"));
  EXPECT_EQ(client.finals, 1u);
  EXPECT_EQ(client.gone, 1u);
  EXPECT_EQ(ensemble_->statistics().Read().success.count, 1u);
}

TEST_F(EnsembleSchedulerTest, EndsWithTheFinalFlagAloneWhenADecoupledStepGivesNothing) {
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    const core::RequestRef kept(*request);
    core::ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(nullptr, true);
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("end"));
}

TEST_F(EnsembleSchedulerTest, SaysSoWhenNoStepGivesAnOutput) {
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    const core::RequestRef kept(*request);
    core::ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(nullptr, true);
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses,
              ElementsAre("in ensemble 'e', [request id: <id_unknown>] unexpected deadlock, at "
                          "least one output is not set while no more ensemble steps can be made"));
}

TEST_F(EnsembleSchedulerTest, HoldsStepsBackAboveTheLimitAndContinuesInOrder) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 2);
  std::array<Client, 5> clients;
  for (Client& client : clients) Run(client);
  EXPECT_EQ(held_.size(), 2u);
  for (size_t i = 0; i < clients.size(); ++i) {
    ASSERT_GT(held_.size(), i);
    EXPECT_LE(held_.size() - i, 2u);
    core::RequestPtr step = std::move(held_[i]);
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
    EXPECT_EQ(clients[i].finals, 1u);
    EXPECT_EQ(clients[i].gone, 1u);
  }
}

TEST_F(EnsembleSchedulerTest, CancelledRequestsLeaveTheLineOfTheLimit) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 1);
  std::array<Client, 3> clients;
  Run(clients[0]);
  core::RequestPtr request = Request(clients[1]);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  Run(clients[2]);
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  kept.Reset();
  EXPECT_EQ(clients[1].finals, 1u);
  EXPECT_EQ(clients[1].gone, 1u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(held_.size(), i + 1);
    core::RequestPtr step = std::move(held_[i]);
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }
  EXPECT_THAT(clients[2].responses, ElementsAre("out=1"));
}

// A-1, E-13: whatever ends, fails or is cancelled, no request waits while its step has a place.
TEST_F(EnsembleSchedulerTest, NoStepWaitsWhileThereIsAPlaceForIt) {
  constexpr size_t kLimit = 2;
  AddHolding("m");
  AddHolding("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"n", {{"I", "a"}}, {{"O", "out"}}}},
       kLimit);
  std::mt19937 random(1);
  struct Run {
    Client client;
    std::string id;
    core::RequestRef request;
    size_t step = 0;  // the current step
  };
  std::vector<std::unique_ptr<Run>> runs;
  size_t completed = 0;
  const auto complete_one = [&] {
    if (held_.empty()) return;
    const size_t i = random() % held_.size();
    core::RequestPtr step = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    ++runs[std::stoull(std::string(step->id))]->step;
    ++completed;
    core::ResponsePtr response = Respond(*step, 1);
    if (random() % 8 == 0) response->SetError(base::InternalError("no"));
    Complete(std::move(step), std::move(response));
  };
  const auto cancel_one = [&] {
    Run& run = *runs[runs.size() - 1 - random() % std::min<size_t>(runs.size(), 8)];
    if (run.client.finals > 0) return;
    run.request->Cancel();
    ensemble_->scheduler().OnCancelled(*run.request);
  };
  for (int turn = 0; turn < 3000; ++turn) {
    const unsigned choice = random() % 8;
    if (choice < 3 || runs.empty()) {
      Run& run = *runs.emplace_back(std::make_unique<Run>());
      run.id = std::to_string(runs.size() - 1);
      core::RequestPtr request = Request(run.client);
      request->id = run.id;
      run.request = core::RequestRef(*request);
      ensemble_->scheduler().Enqueue(std::move(request));
    } else if (choice == 3) {
      cancel_one();
    } else {
      complete_one();
    }
    std::array<size_t, 2> want{};
    std::array<size_t, 2> have{};
    for (const auto& run : runs) {
      if (run->client.finals == 0) ++want.at(run->step);
    }
    for (const core::RequestPtr& step : held_) ++have[step->model->name() == "m" ? 0 : 1];
    for (size_t step = 0; step < 2; ++step) {
      ASSERT_EQ(have[step], std::min(want[step], kLimit)) << "turn " << turn << ", step " << step;
    }
  }
  EXPECT_GT(completed, 500u);
  while (!held_.empty()) complete_one();
  for (const auto& run : runs) {
    EXPECT_EQ(run->client.finals, 1u);
    run->request.Reset();
    EXPECT_EQ(run->client.gone, 1u);
  }
}

TEST_F(EnsembleSchedulerTest, AProducerOnItsOwnThreadWaitsForTheStepsBehindIt) {
  base::Mutex mutex;
  base::CondVar changed;
  size_t sent = 0;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    std::thread([&, request = std::move(request)]() mutable {
      for (int i = 0; i < 20; ++i) {
        request->sink().Send(Respond(*request, i), false);
        base::MutexLock lock(mutex);
        ++sent;
        changed.NotifyAll();
      }
      const core::RequestRef kept(*request);
      core::ResponseSink& sink = request->sink();
      request.reset();
      sink.Send(nullptr, true);
    }).detach();
  });
  std::vector<core::RequestPtr> waiting;
  size_t most = 0;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    waiting.push_back(std::move(request));
    most = std::max(most, waiting.size());
    changed.NotifyAll();
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}},
       3);
  class Waiting final : public core::ResponseSink {
   public:
    void Send(core::ResponsePtr response, bool) override {
      base::MutexLock lock(mutex);
      if (response != nullptr) ++responses;
    }
    void OnRequestGone() override {
      base::MutexLock lock(mutex);
      is_gone = true;
      changed.NotifyAll();
    }
    base::Mutex mutex;
    base::CondVar changed;
    size_t responses = 0;
    bool is_gone = false;
  } client;
  Run(client);
  for (size_t i = 0; i < 20; ++i) {
    core::RequestPtr step;
    {
      base::MutexLock lock(mutex);
      while (waiting.empty()) changed.Wait(mutex);
      step = std::move(waiting.front());
      waiting.erase(waiting.begin());
      // Three run; the fourth response waits for a place and blocks the producer.
      EXPECT_LE(sent, i + 3);
    }
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }
  base::MutexLock lock(client.mutex);
  while (!client.is_gone) client.changed.Wait(client.mutex);
  EXPECT_EQ(client.responses, 20u);
  EXPECT_LE(most, 3u);
}

TEST_F(EnsembleSchedulerTest, StepsCompletedByManyThreadsAtOnceGiveOneResponseEach) {
  base::Mutex mutex;
  std::vector<std::thread> threads;
  const auto complete_elsewhere = [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    threads.emplace_back([request = std::move(request)]() mutable {
      core::ResponsePtr response = Respond(*request, 3);
      Complete(std::move(request), std::move(response));
    });
  };
  engine_.Add(MakeModel("m", {"I"}, {"O"}), complete_elsewhere);
  engine_.Add(MakeModel("join", {"I", "J"}, {"O"}), complete_elsewhere);
  Make({"in"}, {"out"},
       {{"m", {{"I", "in"}}, {{"O", "a"}}},
        {"m", {{"I", "in"}}, {{"O", "b"}}},
        {"join", {{"I", "a"}, {"J", "b"}}, {{"O", "out"}}}});
  core::FakeSink sink;
  for (int i = 0; i < 100; ++i) {
    core::RequestPtr request = Request(sink);
    core::RequestRef kept(*request);
    ensemble_->scheduler().Enqueue(std::move(request));
    // Cancelling some of them races with everything else.
    if (i % 5 == 0) {
      kept->Cancel();
      ensemble_->scheduler().OnCancelled(*kept);
    }
  }
  EXPECT_TRUE(sink.WaitForGone(100));
  EXPECT_EQ(sink.final_count(), 100u);
  for (size_t i = 0;; ++i) {
    std::thread thread;
    {
      base::MutexLock lock(mutex);
      if (i == threads.size()) break;
      thread = std::move(threads[i]);
    }
    thread.join();
  }
}

TEST_F(EnsembleSchedulerTest, TakesResponsesInOrderWhicheverThreadsSendThem) {
  constexpr int kResponses = 200;
  base::Mutex mutex;
  base::CondVar changed;
  std::vector<int> seen;
  std::vector<core::RequestPtr> waiting;
  core::RequestPtr producer;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true),
              [&](core::RequestPtr request) { producer = std::move(request); });
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    seen.push_back(static_cast<int>(*request->inputs[0].first.data));
    waiting.push_back(std::move(request));
    changed.NotifyAll();
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  core::FakeSink sink;
  Run(sink);
  // Two threads send responses in turns while a third one, which completes the next steps, is often
  // driving the strand.
  std::atomic<int> turn{0};
  const auto produce = [&](int first) {
    for (int i = first; i < kResponses; i += 2) {
      while (turn.load() != i) std::this_thread::yield();
      producer->sink().Send(Respond(*producer, i), false);
      turn.store(i + 1);
    }
  };
  std::thread even(produce, 0);
  std::thread odd(produce, 1);
  for (int i = 0; i < kResponses; ++i) {
    core::RequestPtr step;
    {
      base::MutexLock lock(mutex);
      while (waiting.empty()) changed.Wait(mutex);
      step = std::move(waiting.back());
      waiting.pop_back();
    }
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }
  even.join();
  odd.join();
  {
    core::ResponseSink& responses = producer->sink();
    const core::RequestRef kept(*producer);
    producer.reset();
    responses.Send(nullptr, true);
  }
  EXPECT_TRUE(sink.WaitForGone(1));
  ASSERT_EQ(seen.size(), static_cast<size_t>(kResponses));
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST_F(EnsembleSchedulerTest, StopRefusesNewRequestsAndWaitsForTheOthers) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_FALSE(ensemble_->scheduler().Stop(std::chrono::steady_clock::now()));
  Client late;
  Run(late);
  ASSERT_EQ(late.responses.size(), 1u);
  EXPECT_THAT(late.responses[0], testing::HasSubstr("stopped accepting new inference requests"));
  core::RequestPtr step = std::move(held_[0]);
  core::ResponsePtr response = Respond(*step, 1);
  Complete(std::move(step), std::move(response));
  EXPECT_TRUE(
      ensemble_->scheduler().Stop(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
}

TEST_F(EnsembleSchedulerTest, CountsARunBeforeItsResponseIsSent) {
  // Like backends that report an execution before its response, and keep the request until after
  // it.
  bool fails = false;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&fails](core::RequestPtr request) {
    core::ResponsePtr response = Respond(*request, 1);
    if (fails) response->SetError(base::InternalError("no"));
    request->sink().OnExecuted({100, 110, 130, 160});
    request->sink().Send(std::move(response), true);
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  core::StatisticsSnapshot seen;
  client.on_response = [&] { seen = ensemble_->statistics().Read(); };
  Run(client);
  EXPECT_EQ(seen.success.count, 1u);
  EXPECT_EQ(seen.compute_infer.ns, 20u);
  fails = true;
  Client unlucky;
  unlucky.on_response = client.on_response;
  Run(unlucky);
  EXPECT_EQ(seen.fail.count, 1u);
  EXPECT_EQ(ensemble_->statistics().Read().success.count, 1u);
}

TEST_F(EnsembleSchedulerTest, AddsUpTheTimesOfItsSteps) {
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [](core::RequestPtr request) {
    core::ResponsePtr response = Respond(*request, 1);
    request->sink().OnExecuted({100, 110, 130, 160});
    Complete(std::move(request), std::move(response));
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"m", {{"I", "a"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  const core::StatisticsSnapshot statistics = ensemble_->statistics().Read();
  EXPECT_EQ(statistics.success.count, 1u);
  EXPECT_EQ(statistics.inference_count, 1u);
  EXPECT_EQ(statistics.execution_count, 1u);
  EXPECT_EQ(statistics.queue.ns, 0u);
  EXPECT_EQ(statistics.compute_input.ns, 20u);
  EXPECT_EQ(statistics.compute_infer.ns, 40u);
  EXPECT_EQ(statistics.compute_output.ns, 60u);
}

}  // namespace
}  // namespace nereid::schedule
