// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/backend_model_instance.cc.
#include "engine/warm_up.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/read_all.h"
#include "core/response.h"
#include "engine/normalize.h"

namespace nereid::engine {
namespace {

using base::InvalidArgumentError;

// Collects the responses of one sample's requests.
class Responses final : public core::ResponseSink {
 public:
  explicit Responses(size_t expected) : left_(expected) {}

  void Send(core::ResponsePtr response, bool /*is_final*/) override {
    if (response == nullptr || response->error().ok()) return;
    base::MutexLock lock(mutex_);
    errors_ += fmt::format("{}; ", response->error().message());
  }
  void OnRequestGone() override {
    base::MutexLock lock(mutex_);
    if (--left_ == 0) done_.NotifyAll();
  }
  // Waits until every request is complete and returns the errors.
  std::string Wait() {
    base::MutexLock lock(mutex_);
    while (left_ > 0) done_.Wait(mutex_);
    return errors_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar done_;
  size_t left_ NEREID_GUARDED_BY(mutex_);
  std::string errors_ NEREID_GUARDED_BY(mutex_);
};

base::Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string data = base::ReadAll(file);
  if (!file.is_open() || file.bad()) {
    return base::InternalError("failed to open text file for read " + path + ": " +
                               std::strerror(errno));
  }
  return data;
}

// Takes no responses: for a request that is not executed.
class Nowhere final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

void FillRandom(std::byte* data, size_t size) {
  std::minstd_rand random;
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(random() >> 8);
}

}  // namespace

std::optional<size_t> WarmUpByteSize(const config::ModelWarmup::Input& input) {
  const bool is_string = input.data_type == tensor::DataType::kBytes;
  return tensor::ByteSize(is_string ? tensor::DataType::kUint32 : input.data_type, input.dims);
}

base::Result<WarmUp::Input> WarmUp::MakeInput(const std::string& name,
                                              const config::ModelWarmup::Input& config,
                                              const std::string& model_folder) const {
  const bool is_string = config.data_type == tensor::DataType::kBytes;
  const std::optional<size_t> size = WarmUpByteSize(config);
  if (!size) {
    return InvalidArgumentError(
        "warmup setting expects all variable-size dimensions are specified for input '" + name +
        "'");
  }
  size_t byte_size = *size;
  std::string file_data;
  if (const auto* file = std::get_if<config::ModelWarmup::DataFile>(&config.input_data_type)) {
    NEREID_ASSIGN_OR_RETURN(file_data, ReadFile(model_folder + "/warmup/" + file->path));
    if (is_string) byte_size = file_data.size();
    if (byte_size > file_data.size()) {
      return InvalidArgumentError(
          fmt::format("warmup setting expects {} bytes, but the data provided from {} only has {} "
                      "bytes",
                      byte_size, file->path, file_data.size()));
    }
  } else if (std::holds_alternative<std::monostate>(config.input_data_type)) {
    return InvalidArgumentError("warmup setting expects input '" + name +
                                "' to have input_data_type set");
  }
  Input input{.name = name,
              .type = config.data_type,
              .model_index = core::kServerInput,
              .is_of_server = model_.config().IsServerInput(name),
              .byte_size = byte_size};
  const int index = model_.FindInput(name);
  const bool is_shape = index >= 0 && model_.inputs()[static_cast<size_t>(index)].is_shape_tensor;
  if (model_.max_batch_size() > 0 && !is_shape) input.shape.PushBack(1);
  for (const int64_t dim : config.dims) input.shape.PushBack(dim);
  input.data = base::AcquireBuffer(std::max<size_t>(byte_size, 1));
  if (!input.data) return base::UnavailableError("no memory for the warm-up of '" + name + "'");
  if (!file_data.empty()) {
    std::memcpy(input.data.data(), file_data.data(), byte_size);
  } else if (!is_string &&
             std::holds_alternative<config::ModelWarmup::RandomData>(config.input_data_type)) {
    FillRandom(input.data.data(), byte_size);
  } else {
    std::memset(input.data.data(), 0, byte_size);
  }
  return input;
}

base::Result<std::shared_ptr<const WarmUp>> WarmUp::Prepare(
    core::Model& model, std::shared_ptr<const core::StatePlan> states,
    const std::string& model_folder) {
  std::shared_ptr<WarmUp> warm_up(new WarmUp(model, std::move(states)));
  for (const config::ModelWarmup& config : model.config().model_warmup) {
    if (config.batch_size == 0) continue;
    Sample sample{.name = config.name,
                  .request_count = config.batch_size,
                  .iterations = std::max(config.count, 1u)};
    for (const auto& [name, input] : config.inputs) {
      NEREID_ASSIGN_OR_RETURN(Input made, warm_up->MakeInput(name, input, model_folder));
      sample.inputs.push_back(std::move(made));
    }
    NEREID_RETURN_IF_ERROR(warm_up->CheckInputs(sample));
    warm_up->samples_.push_back(std::move(sample));
  }
  return std::shared_ptr<const WarmUp>(std::move(warm_up));
}

core::RequestPtr WarmUp::MakeRequest(const Sample& sample, core::ResponseSink& sink) const {
  core::RequestPtr request = core::Request::Create(sink);
  request->is_counted = false;
  request->runs_once = true;
  // A model can be pinned even before it is published.
  if (model_.TryPin()) request->model = core::ModelHandle(model_);
  request->batch_size = model_.max_batch_size() > 0 ? 1 : 0;
  for (const Input& from : sample.inputs) {
    if (from.is_of_server) continue;
    core::RequestInput& input = request->AddInput(from.name, from.type);
    input.model_index = from.model_index;
    input.shape = from.shape;
    input.Append({.data = from.data.data(), .size = from.byte_size});
  }
  return request;
}

void WarmUp::AddServerInputs(const Sample& sample, core::SequenceStates* states,
                             core::Request& request) const {
  if (states != nullptr) states->AttachInputs(request);
  for (const Input& from : sample.inputs) {
    if (!from.is_of_server) continue;
    std::erase_if(request.inputs,
                  [&](const core::RequestInput& state) { return state.name == from.name; });
    request.AddServerInput(from.name, from.type, from.shape.dims(),
                           {.data = from.data.data(), .size = from.byte_size});
  }
}

base::Status WarmUp::CheckInputs(Sample& sample) const {
  Nowhere nowhere;
  const core::RequestPtr request = MakeRequest(sample, nowhere);
  if (!request->model) {
    return base::CancelledError(
        "the load was given up, because the model was unloaded meanwhile or the server stops");
  }
  if (base::Status status = NormalizeRequest(*request); !status.ok()) {
    std::string_view text = status.message();
    const std::string prefix = request->LogPrefix();
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    return InvalidArgumentError(
        fmt::format("failed to run warmup sample '{}': {}", sample.name, text));
  }
  for (const core::RequestInput& checked : request->inputs) {
    Input& input = *std::ranges::find(sample.inputs, checked.name, &Input::name);
    input.model_index = checked.model_index;
    input.shape = checked.shape;
  }
  // In the model's order, as schedulers and backends require.
  std::ranges::sort(sample.inputs, {}, [](const Input& input) {
    return std::pair<uint32_t, std::string_view>(input.model_index, input.name);
  });
  return base::OkStatus();
}

base::Status WarmUp::RunOnce(const Sample& sample, core::Instance& instance) const {
  Responses responses(sample.request_count);
  std::vector<core::RequestPtr> batch;
  // Each request is the first one of a sequence of its own.
  std::vector<std::unique_ptr<core::SequenceStates>> states;
  for (uint32_t i = 0; i < sample.request_count; ++i) {
    core::RequestPtr request = MakeRequest(sample, responses);
    if (state_plan_ != nullptr && !state_plan_->empty()) {
      states.push_back(std::make_unique<core::SequenceStates>(state_plan_));
    }
    AddServerInputs(sample, states.empty() ? nullptr : states.back().get(), *request);
    request->times.request_start_ns = base::NowNs();
    request->times.queue_start_ns = request->times.request_start_ns;
    batch.push_back(std::move(request));
  }
  instance.Execute(batch);
  const std::string errors = responses.Wait();
  if (errors.empty()) return base::OkStatus();
  return InvalidArgumentError(
      fmt::format("failed to run warmup sample '{}': {}", sample.name, errors));
}

base::Status WarmUp::Run(core::Instance& instance,
                         const std::function<base::Status()>& check_wanted) const {
  NEREID_RETURN_IF_ERROR(check_wanted());
  for (const Sample& sample : samples_) {
    for (uint32_t iteration = 1; iteration <= sample.iterations; ++iteration) {
      NEREID_VLOG(1, "model '{}' instance {} is running warmup sample '{}' for iteration {}",
                  model_.name(), instance.name(), sample.name, iteration);
      NEREID_RETURN_IF_ERROR(check_wanted());
      NEREID_RETURN_IF_ERROR(RunOnce(sample, instance));
    }
  }
  return base::OkStatus();
}

}  // namespace nereid::engine
