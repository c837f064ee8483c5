// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

core::ModelTensor Tensor(const std::string& name) {
  core::ModelTensor tensor;
  tensor.name = name;
  tensor.type = tensor::DataType::kFp32;
  tensor.dims = {1};
  tensor.model_dims = {1};
  return tensor;
}

std::string Text(const repository::ModelSource& source, int64_t version) {
  return source.id().Text() + ":" + std::to_string(version);
}

}  // namespace

base::TimePoint InAMinute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }
base::TimePoint Passed() { return std::chrono::steady_clock::now(); }

// Gives requests to the factory's handler.
class FakeFactory::ServingScheduler final : public core::Scheduler {
 public:
  ServingScheduler(const FakeFactory& factory, std::string version)
      : factory_(factory), version_(std::move(version)) {}

  void Enqueue(core::RequestPtr request) override {
    if (factory_.handler_) factory_.handler_(version_, std::move(request));
  }
  bool HasSequence(const core::CorrelationId& id) override {
    const auto* const number = std::get_if<uint64_t>(&id);
    return number != nullptr && factory_.has_sequence_ && factory_.has_sequence_(version_, *number);
  }
  size_t SequenceCount() override {
    return factory_.count_sequences_ ? factory_.count_sequences_(version_) : 0;
  }
  void OnCancelled(core::Request& /*request*/) override {}
  bool Stop(base::TimePoint /*deadline*/) override { return true; }

 private:
  const FakeFactory& factory_;
  const std::string version_;
};

class FakeFactory::Version final : public ServableModel {
 public:
  Version(const FakeFactory& factory, const repository::ModelSource& source, int64_t version)
      : factory_(factory),
        text_(Text(source, version)),
        is_ensemble_(source.config->ensemble_scheduling() != nullptr) {
    core::ModelOptions options;
    options.name = source.name;
    options.version = version;
    options.is_decoupled = source.config->is_decoupled();
    options.config = std::make_shared<const config::ModelConfig>(*source.config);
    for (const auto& input : source.config->input) options.inputs.push_back(Tensor(input.name));
    for (const auto& output : source.config->output) options.outputs.push_back(Tensor(output.name));
    model_ = std::make_shared<core::Model>(std::move(options));
    model_->SetScheduler(std::make_unique<ServingScheduler>(factory, text_));
    if (!is_ensemble_) load_duration_ = std::chrono::milliseconds(1500);
  }
  ~Version() override { factory_.End(text_, *model_); }

  bool can_change_instances() const override { return !is_ensemble_; }
  base::Result<std::shared_ptr<const config::ModelConfig>> ChangeInstances(
      const repository::ModelSource& source, CheckWanted check_wanted) override {
    factory_.events_.Add("change " + text_);
    NEREID_RETURN_IF_ERROR(factory_.Try(text_, check_wanted));
    return std::make_shared<const config::ModelConfig>(*source.config);
  }

 private:
  const FakeFactory& factory_;
  const std::string text_;
  const bool is_ensemble_;
};

void FakeFactory::Fail(const std::string& version, const std::string& reason, int times) {
  base::MutexLock lock(mutex_);
  failures_[version] = {reason, times};
}

void FakeFactory::Mend(const std::string& version) {
  base::MutexLock lock(mutex_);
  failures_.erase(version);
}

void FakeFactory::Hold(const std::string& version) {
  base::MutexLock lock(mutex_);
  held_.insert(version);
}

void FakeFactory::HoldEnd(const std::string& version) {
  base::MutexLock lock(mutex_);
  held_ends_.insert(version);
}

void FakeFactory::LetGo(const std::string& version) {
  base::MutexLock lock(mutex_);
  held_.erase(version);
  held_ends_.erase(version);
  changed_.NotifyAll();
}

std::vector<std::string> FakeFactory::faults() const {
  base::MutexLock lock(mutex_);
  return faults_;
}

size_t FakeFactory::alive() const {
  base::MutexLock lock(mutex_);
  return alive_;
}

base::Status FakeFactory::Try(const std::string& version, const CheckWanted& check_wanted) const {
  base::MutexLock lock(mutex_);
  while (held_.contains(version)) {
    // Like a backend, checks whether it is still wanted between steps, which are small here.
    mutex_.Unlock();
    base::Status status = check_wanted();
    mutex_.Lock();
    if (!status.ok()) return status;
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  }
  const auto failure = failures_.find(version);
  if (failure == failures_.end() || failure->second.times == 0) return base::OkStatus();
  --failure->second.times;
  return base::InternalError(failure->second.reason);
}

void FakeFactory::End(const std::string& version, const core::Model& model) const {
  base::MutexLock lock(mutex_);
  while (held_ends_.contains(version)) changed_.Wait(mutex_);
  if (model.pin_count() > 0) faults_.push_back(version + " ended with requests");
  --alive_;
  events_.Add("unload " + version);
}

base::Result<std::unique_ptr<ServableModel>> FakeFactory::Load(
    const repository::ModelSource& source, int64_t version, CheckWanted check_wanted) const {
  const std::string text = Text(source, version);
  {
    base::MutexLock lock(mutex_);
    if (!loading_.insert(text).second) faults_.push_back(text + " loaded twice at once");
  }
  events_.Add("load " + text);
  base::Status status = Try(text, check_wanted);
  base::MutexLock lock(mutex_);
  loading_.erase(text);
  NEREID_RETURN_IF_ERROR(status);
  ++alive_;
  return std::unique_ptr<ServableModel>(std::make_unique<Version>(*this, source, version));
}

base::Result<std::unique_ptr<ServableModel>> FakeFactory::LoadEnsemble(
    const repository::ModelSource& source, int64_t version,
    const std::vector<std::shared_ptr<core::Model>>& models) const {
  for (const auto& model : models) {
    if (model != nullptr) continue;
    base::MutexLock lock(mutex_);
    faults_.push_back(Text(source, version) + " loaded without its parts");
  }
  return Load(source, version, base::OkStatus);
}

}  // namespace nereid::engine
