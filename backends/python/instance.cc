// SPDX-License-Identifier: Apache-2.0
#include "python_backend/instance.h"

#include <pthread.h>

#include <algorithm>

#include "backend_kit/batch.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::LogIfError;
using backend::NowNs;
using backend::Result;
using backend::StrCat;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A request that comes while a worker starts waits for it, but not longer than this.
constexpr seconds kPatience{5};
constexpr seconds kReadyTimeout{5};
// Before the first start in the place of a dead worker, none; then from the shortest, doubling.
constexpr milliseconds kShortestPause{100};
constexpr seconds kLongestPause{30};
// A worker that lived this long was no failed attempt.
constexpr seconds kLongLife{60};

std::string ArgumentsJson(const Model& model, const std::string& name, const std::string& kind,
                          int32_t device) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  const auto add = [&writer](const char* key, const std::string& value) {
    writer.Key(key);
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  writer.StartObject();
  add("model_config", model.config_text());
  add("model_instance_kind", kind);
  add("model_instance_name", name);
  add("model_instance_device_id", std::to_string(device));
  add("model_repository", model.repository());
  add("model_version", std::to_string(model.version()));
  add("model_name", model.name());
  writer.EndObject();
  return {text.GetString(), text.GetSize()};
}

// Lends what lies in the blocks of a batch: those of its inputs, once nothing in the worker refers to
// them any more, and that of its answer. They are the server's then.
class BatchLender final : public Lender {
 public:
  BatchLender(std::shared_ptr<Worker> worker, BatchEncoder::Encoded& batch)
      : worker_(std::move(worker)), batch_(batch) {}

  std::shared_ptr<const void> Lend(std::span<const char> bytes) override {
    if (kept_ == nullptr) {
      kept_ = std::make_shared<Kept>();
      kept_->worker = worker_;
    }
    if (Holds(kept_->inputs.exists() ? kept_->inputs : batch_.block, bytes)) {
      if (!kept_->inputs.exists()) kept_->inputs = std::move(batch_.block);
      return kept_;
    }
    const auto holds = [bytes](const BlockPool::Block& block) { return Holds(block, bytes); };
    if (std::ranges::any_of(kept_->received, holds)) return kept_;
    if (std::ranges::any_of(batch_.received, holds)) {
      kept_->received = std::move(batch_.received);
      return kept_;
    }
    const BlockHeader* const answer = kept_->answer != nullptr ? kept_->answer : worker_->answer();
    if (answer != nullptr && Holds(answer, bytes)) {
      if (kept_->answer == nullptr) kept_->answer = worker_->TakeAnswer();
      return kept_;
    }
    return nullptr;
  }

 private:
  struct Kept {
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() {
      if (answer != nullptr) Worker::Release(answer);
    }
    std::shared_ptr<Worker> worker;  // goes last
    BlockPool::Block inputs;
    std::vector<BlockPool::Block> received;
    BlockHeader* answer = nullptr;
  };

  static bool Holds(const BlockPool::Block& block, std::span<const char> bytes) {
    return block.exists() && bytes.data() >= block.payload() &&
           bytes.data() + bytes.size() <= block.payload() + block.capacity() &&
           block.header().state.load(std::memory_order_acquire) == 0;
  }
  // A worker that lies about its block's size changes its own responses.
  static bool Holds(const BlockHeader* answer, std::span<const char> bytes) {
    const auto* const begin = reinterpret_cast<const char*>(answer + 1);
    const uint64_t size = std::atomic_ref(const_cast<uint64_t&>(answer->size)).load();
    return bytes.data() >= begin && static_cast<uint64_t>(bytes.data() - begin) <= size &&
           bytes.size() <= size - static_cast<uint64_t>(bytes.data() - begin);
  }

  const std::shared_ptr<Worker> worker_;
  BatchEncoder::Encoded& batch_;
  std::shared_ptr<Kept> kept_;
};

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  std::unique_ptr<Instance> instance(new Instance(handle, model));
  NEREID_KIT_TRY(instance->Initialize().Release());
  return instance;
}

Error Instance::Initialize() {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle_, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle_, &kind));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle_, &device));
  context_.name = name;
  context_.server = model_.server();
  arguments_ = ArgumentsJson(model_, name, TRITONSERVER_InstanceGroupKindString(kind), device);
  NEREID_KIT_TRY(StartWorker().Release());
  keeper_ = std::thread([this] { Keep(); });
  return {};
}

Error Instance::StartWorker() {
  // Calls of one worker only: what they hold goes with it.
  const auto pending = std::make_shared<PendingTable>();
  const auto calls = std::make_shared<Calls>(context_, pending);
  const auto on_death = [this] {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  };
  NEREID_KIT_ASSIGN(const std::shared_ptr<Worker> worker,
                    model_.GetWorker(
                        context_.name,
                        [calls](const std::shared_ptr<Worker>& from, const CallBlock& call) {
                          calls->Handle(from, call);
                        },
                        on_death));
  auto initialized = worker->RunText(Work::kInitialize, arguments_);
  if (!initialized.ok()) {
    worker->Stop(Clock::now());
    return initialized.TakeError();
  }
  model_.AddLender(context_.name, worker);
  const std::lock_guard lock(mutex_);
  active_ = {worker, pending, initialized.value() == "is_ready"};
  state_ = State::kReady;
  changed_.notify_all();
  return {};
}

Instance::~Instance() {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kStopping;
    changed_.notify_all();
  }
  if (keeper_.joinable()) keeper_.join();
  if (active_.worker == nullptr) return;
  auto deadline = Clock::now() + kLongestPause;
  if (!active_.worker->RunText(Work::kFinalize, "", deadline).ok()) deadline = Clock::now();
  active_.worker->Stop(deadline);
  active_.pending->FailAll(Error::Unavailable(StrCat("model '", model_.name(), "' is unloaded")));
}

void Instance::Keep() {
  pthread_setname_np(pthread_self(), "python-keeper");
  milliseconds pause{0};
  auto started = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return state_ == State::kStopping || active_.worker == nullptr || !active_.worker->is_alive();
    });
    if (state_ == State::kStopping) return;
    if (active_.worker != nullptr) {
      const Active dead = std::exchange(active_, {});
      failure_ = dead.worker->DeathMessage();
      state_ = State::kStarting;
      lock.unlock();
      backend::LogWarning(StrCat(failure_, "; starting another"));
      dead.worker->Stop(Clock::now());
      dead.pending->FailAll(
          Error::Internal(StrCat("Failed to process the request(s) for model instance '",
                                 context_.name, "', message: ", dead.worker->DeathMessage())));
      lock.lock();
      if (Clock::now() - started > kLongLife) pause = milliseconds(0);
    }
    if (changed_.wait_for(lock, pause, [this] { return state_ == State::kStopping; })) return;
    pause = std::clamp<milliseconds>(pause * 2, kShortestPause, kLongestPause);
    started = Clock::now();
    lock.unlock();
    Error error = StartWorker();
    lock.lock();
    if (!error.ok() && state_ != State::kStopping) {
      state_ = State::kFailed;
      failure_ = error.message();
      changed_.notify_all();
      backend::Log(TRITONSERVER_LOG_ERROR,
                   StrCat("failed to restart model instance '", context_.name, "': ", failure_));
    }
  }
}

Result<Instance::Active> Instance::AcquireWorker() {
  std::unique_lock lock(mutex_);
  const auto is_settled = [this] {
    return state_ != State::kStarting &&
           (state_ != State::kReady || (active_.worker != nullptr && active_.worker->is_alive()));
  };
  changed_.wait_for(lock, kPatience, is_settled);
  if (state_ == State::kReady && active_.worker != nullptr) return active_;
  return Error::Internal(
      failure_.empty() ? StrCat("Stub process '", context_.name, "' is not healthy.") : failure_);
}

Instance::Active Instance::ReadyWorker() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kReady || active_.worker == nullptr || !active_.worker->is_alive()) return {};
  return active_;
}

Error Instance::CheckReady() {
  const Active active = ReadyWorker();
  if (active.worker == nullptr) {
    return Error::Internal(StrCat("Stub process '", context_.name, "' is not healthy."));
  }
  if (!active.asks_ready) return {};
  auto answer = active.worker->Ask(Work::kAskReady, Clock::now() + kReadyTimeout);
  if (!answer.ok()) {
    Error error = answer.TakeError();
    if (error.code() != TRITONSERVER_ERROR_UNAVAILABLE) return error;
    return Error::Unavailable("Timed out waiting for user-defined is_ready() response");
  }
  if (answer.value() == "yes") return {};
  return Error::Unavailable(
      StrCat("Model '", context_.name, "' is not ready (user-defined check failed)."));
}

uint64_t Instance::BatchSize() const {
  if (model_.max_batch_size() == 0) return batch_.size();
  uint64_t sum = 0;
  for (const Item& item : batch_) {
    auto input = backend::ReadInput(item.request, 0);
    const bool has_batch = input.ok() && !input.value().shape.empty();
    sum += has_batch ? static_cast<uint64_t>(input.value().shape[0]) : 1;
    if (!input.ok()) input.TakeError().Ignore();
  }
  return sum;
}

Result<Instance::Execution> Instance::Encode(Active active) {
  const std::shared_ptr<Worker>& worker = active.worker;
  table_ = active.pending;
  numbered_.clear();
  for (Item& item : batch_) {
    item.handle = table_->Add(item.pending);
    numbered_.push_back({item.request, item.handle});
  }
  NEREID_KIT_ASSIGN(BatchEncoder::Encoded batch,
                    encoder_.Encode(numbered_, worker->blocks(), worker->inputs()));
  times_.compute_start = NowNs();
  batch.block.Share();
  for (const BlockPool::Block& block : batch.received) block.Share();
  return Execution{std::move(active), std::move(batch)};
}

Error Instance::Run() {
  NEREID_KIT_ASSIGN(Active active, AcquireWorker());
  NEREID_KIT_ASSIGN(Execution execution, Encode(std::move(active)));
  const BatchEncoder::Encoded& batch = execution.batch;
  return Complete(execution, execution.active.worker->Run(Work::kExecute, batch.block, batch.size));
}

Error Instance::Complete(Execution& execution, Result<Worker::Answer> answer) {
  const std::shared_ptr<Worker>& worker = execution.active.worker;
  times_.compute_end = NowNs();
  if (!answer.ok()) {
    // What it sent before it died comes before the error that ends the requests.
    worker->WaitForLastCalls();
    return Error::Internal(StrCat("Failed to process the request(s) for model instance '",
                                  context_.name, "', message: ", answer.TakeError().message()));
  }
  // What was sent before the end of the execution comes before what follows from it.
  worker->WaitForCalls();
  Error error;
  if (answer.value().outcome == Outcome::kOk) {
    error = ReadAnswer(*worker, answer.value().payload);
    if (!error.ok()) worker->Condemn("it sent a response that cannot be read");
  } else {
    const std::span<const char> text = answer.value().payload;
    error = Error::Internal(std::string(text.begin(), text.end()));
  }
  if (error.ok()) {
    // Before anything is answered: who has the answer finds it counted.
    BatchLender lender(worker, execution.batch);
    Finish({}, &lender);
  }
  worker->ReleaseAnswer();
  return error;
}

Error Instance::ReadAnswer(const Worker& worker, std::span<const char> payload) {
  Reader reader(payload);
  for (Item& item : batch_) {
    std::optional<ModelResponse> response = ReadResponse(reader, worker.region());
    if (!response) {
      return Error::Internal(StrCat("Stub process '", context_.name,
                                    "' is not healthy: it sent a response that cannot be read"));
    }
    item.response = *std::move(response);
  }
  return {};
}

void Instance::Finish(const Error& error, Lender* lender) {
  const uint64_t end = NowNs();
  const uint64_t compute_start = times_.compute_start == 0 ? end : times_.compute_start;
  const uint64_t compute_end = times_.compute_end == 0 ? end : times_.compute_end;
  for (const Item& item : batch_) {
    const bool is_success = error.ok() && item.response.kind != ResponseKind::kError;
    LogIfError(
        Error(TRITONBACKEND_ModelInstanceReportStatistics(
            handle_, item.request, is_success, times_.exec_start, compute_start, compute_end, end)),
        "failed reporting request statistics");
  }
  if (times_.compute_end != 0) {
    LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                   handle_, BatchSize(), times_.exec_start, compute_start, compute_end, end)),
               "failed reporting batch request statistics");
  }
  for (Item& item : batch_) {
    uint32_t flags = TRITONSERVER_REQUEST_RELEASE_ALL;
    if (!error.ok()) {
      item.pending->Fail(error);
    } else if (item.response.kind != ResponseKind::kNone) {
      LogIfError(item.pending->Send(item.response, true, lender), "failed to send a response");
    } else if (item.response.release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) {
      flags = TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
    }
    // A request that comes again gets another number then.
    const bool comes_again = flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
    if (table_ != nullptr && (comes_again || item.pending->is_closed())) {
      table_->Remove(item.handle);
    }
    if (!comes_again) item.pending->Detach();
    Error released(TRITONBACKEND_RequestRelease(item.request, flags));
    if (!released.ok() && comes_again) {
      item.pending->Fail(released);
      item.pending->Detach();
      LogIfError(std::move(released), "failed to reschedule a request");
      released =
          Error(TRITONBACKEND_RequestRelease(item.request, TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    LogIfError(std::move(released), "failed to release a request");
  }
  batch_.clear();
  table_ = nullptr;
}

void Instance::TakeBatch(TRITONBACKEND_Request** requests, uint32_t count) {
  times_ = {.exec_start = NowNs()};
  for (uint32_t r = 0; r < count; ++r) {
    batch_.push_back({.request = requests[r],
                      .pending = std::make_shared<Pending>(requests[r], model_.is_decoupled())});
  }
}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  TakeBatch(requests, count);
  const Error error = Run();
  if (!error.ok()) Finish(error);
}

bool Instance::Begin(TRITONBACKEND_Request** requests, uint32_t count,
                     std::chrono::nanoseconds patience) {
  TakeBatch(requests, count);
  Active active = ReadyWorker();
  if (active.worker == nullptr) return false;
  auto encoded = Encode(std::move(active));
  if (!encoded.ok()) {
    Finish(encoded.TakeError());
    return true;
  }
  begun_ = std::move(encoded.value());
  Worker& worker = *begun_->active.worker;
  worker.Begin(Work::kExecute, begun_->batch.block, begun_->batch.size);
  const std::optional<Worker::Answer> answer = worker.Look(patience);
  if (!answer) return false;
  Execution execution = *std::exchange(begun_, std::nullopt);
  const Error error = Complete(execution, *answer);
  if (!error.ok()) Finish(error);
  return true;
}

void Instance::End() {
  Error error;
  if (begun_) {
    Execution execution = *std::exchange(begun_, std::nullopt);
    error = Complete(execution, execution.active.worker->Wait());
  } else {
    error = Run();
  }
  if (!error.ok()) Finish(error);
}

}  // namespace nereid::python
