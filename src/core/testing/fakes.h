// SPDX-License-Identifier: Apache-2.0
// Fakes for the neighbours of a scheduler: a model without a backend, a sink that records
// responses, an instance that the test controls.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "core/model.h"
#include "core/request.h"
#include "core/response.h"
#include "core/round_executor.h"
#include "core/scheduler.h"

namespace nereid::core {

// Makes a model named "model", version 1, with one FP32 input "INPUT0" and output "OUTPUT0" of
// `dims`.
std::unique_ptr<Model> MakeFakeModel(int64_t max_batch_size, std::initializer_list<int64_t> dims);

// Records the responses that it receives. Thread-safe; outlives its requests.
class FakeSink final : public ResponseSink {
 public:
  void Send(ResponsePtr response, bool is_final) override;
  void OnRequestGone() override;

  // Waits (up to a minute) until `count` requests are gone; returns false on timeout.
  bool WaitForGone(size_t count);
  // Returns the text of each received error; "" stands for a success.
  std::vector<std::string> results() const;
  size_t final_count() const;

 private:
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::string> results_ NEREID_GUARDED_BY(mutex_);
  size_t finals_ NEREID_GUARDED_BY(mutex_) = 0;
  size_t gone_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Makes a request for `model`, pinned unless that is closing, whose INPUT0 has `shape`. The batch
// size is its first dimension if the model batches.
RequestPtr MakeFakeRequest(Model& model, ResponseSink& sink, std::initializer_list<int64_t> shape);

// Completes each remaining request with a success without outputs.
void CompleteFakeBatch(std::span<RequestPtr> batch);

// Calls a hook with the batch, then completes each request like CompleteFakeBatch.
class FakeInstance final : public Instance {
 public:
  using Hook = std::function<void(std::span<RequestPtr>)>;
  FakeInstance(std::string name, bool any_thread, Hook hook)
      : name_(std::move(name)), any_thread_(any_thread), hook_(std::move(hook)) {}

  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return any_thread_; }
  void Execute(std::span<RequestPtr> batch) override;

 private:
  const std::string name_;
  const bool any_thread_;
  const Hook hook_;
};

// A round executor whose rounds end when the test says so.
class FakeRounds final : public RoundExecutor {
 public:
  void RunAfterRound(RoundTask& task) override { tasks_.push_back(&task); }
  bool HasMoreEvents() const override { return has_more_events; }
  void EndRound();

  bool has_more_events = false;

 private:
  std::vector<RoundTask*> tasks_;
};

}  // namespace nereid::core
