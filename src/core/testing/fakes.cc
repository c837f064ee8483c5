// SPDX-License-Identifier: Apache-2.0
#include "core/testing/fakes.h"

#include <chrono>

namespace nereid::core {

std::unique_ptr<Model> MakeFakeModel(int64_t max_batch_size, std::initializer_list<int64_t> dims) {
  ModelOptions options;
  options.name = "model";
  options.version = 1;
  options.config = std::make_shared<config::ModelConfig>();
  options.max_batch_size = max_batch_size;
  ModelTensor tensor;
  tensor.type = tensor::DataType::kFp32;
  tensor.dims = dims;
  tensor.model_dims = dims;
  tensor.name = "INPUT0";
  options.inputs.push_back(tensor);
  tensor.name = "OUTPUT0";
  options.outputs.push_back(tensor);
  return std::make_unique<Model>(std::move(options));
}

void FakeSink::Send(ResponsePtr response, bool is_final) {
  base::MutexLock lock(mutex_);
  if (response != nullptr) results_.emplace_back(response->error().message());
  if (is_final) ++finals_;
  changed_.NotifyAll();
}

void FakeSink::OnRequestGone() {
  base::MutexLock lock(mutex_);
  ++gone_;
  changed_.NotifyAll();
}

bool FakeSink::WaitForGone(size_t count) {
  const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  base::MutexLock lock(mutex_);
  while (gone_ < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return gone_ >= count;
  }
  return true;
}

std::vector<std::string> FakeSink::results() const {
  base::MutexLock lock(mutex_);
  return results_;
}

size_t FakeSink::final_count() const {
  base::MutexLock lock(mutex_);
  return finals_;
}

RequestPtr MakeFakeRequest(Model& model, ResponseSink& sink, std::initializer_list<int64_t> shape) {
  RequestPtr request = Request::Create(sink);
  if (model.TryPin()) request->model = ModelHandle(model);
  RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kFp32);
  input.shape = shape;
  if (model.max_batch_size() > 0) request->batch_size = static_cast<uint32_t>(*shape.begin());
  request->times.request_start_ns = base::NowNs();
  return request;
}

void FakeInstance::Execute(std::span<RequestPtr> batch) {
  if (hook_) hook_(batch);
  CompleteFakeBatch(batch);
}

void CompleteFakeBatch(std::span<RequestPtr> batch) {
  for (RequestPtr& request : batch) {
    if (request == nullptr) continue;  // taken by the hook
    ResponsePtr response = Response::Create(*request);
    ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(std::move(response), true);
  }
}

void FakeRounds::EndRound() {
  std::vector<RoundTask*> tasks;
  tasks.swap(tasks_);
  for (RoundTask* task : tasks) task->RunRound();
}

}  // namespace nereid::core
