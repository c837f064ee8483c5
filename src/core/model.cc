// SPDX-License-Identifier: Apache-2.0
#include "core/model.h"

#include <algorithm>
#include <limits>

namespace nereid::core {
namespace {

std::vector<uint32_t> SortByName(const std::vector<ModelTensor>& tensors) {
  std::vector<uint32_t> order(tensors.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](uint32_t i) -> const std::string& { return tensors[i].name; });
  return order;
}

}  // namespace

Model::Model(ModelOptions options)
    : options_(std::move(options)),
      version_text_(std::to_string(options_.version)),
      required_input_count_(static_cast<size_t>(
          std::ranges::count(options_.inputs, false, &ModelTensor::is_optional))),
      outputs_by_name_(SortByName(options_.outputs)) {}

Model::~Model() = default;

int Model::FindInput(std::string_view name) const {
  const auto found = std::ranges::find(options_.inputs, name, &ModelTensor::name);
  return found == options_.inputs.end() ? -1 : static_cast<int>(found - options_.inputs.begin());
}

int Model::FindOutput(std::string_view name) const {
  const auto found = std::ranges::find(options_.outputs, name, &ModelTensor::name);
  return found == options_.outputs.end() ? -1 : static_cast<int>(found - options_.outputs.begin());
}

void Model::SetScheduler(std::unique_ptr<Scheduler> scheduler) {
  scheduler_ = std::move(scheduler);
}

bool Model::TryPin() {
  if ((pins_.fetch_add(kPin) & kClosed) == 0) return true;
  Unpin();
  return false;
}

bool Model::TryCountRequest(uint64_t limit, uint32_t bytes) {
  uint64_t pins = pins_.load(std::memory_order_relaxed);
  do {
    if (Requests(pins) >= limit) [[unlikely]]
      return false;
  } while (!pins_.compare_exchange_weak(pins, pins + kRequest, std::memory_order_relaxed));
  request_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void Model::Drop(uint64_t amount) {
  // The model may be destroyed as soon as another thread sees the count fall, so only the thread
  // that takes it to zero accesses it afterwards.
  if (pins_.fetch_sub(amount) == (kClosed | amount)) [[unlikely]]
    Drain();
}

void Model::Drain() {
  // A failed TryPin may bring the count to zero a second time, but the callback runs only once.
  // The model stays closed: a thread that still reads an old table of models may try to pin it at
  // any time.
  uint64_t expected = kClosed;
  if (!pins_.compare_exchange_strong(expected, kClosed | kDrained)) return;
  const auto drained = std::move(drained_);
  drained();
}

bool Model::TryHold() {
  uint64_t expected = 0;
  return pins_.compare_exchange_strong(expected, kClosed | kDrained);
}

void Model::EndHold() { pins_.fetch_and(~(kClosed | kDrained)); }

void Model::Close(std::function<void()> drained) {
  drained_ = std::move(drained);
  // With a pin of our own, the count reaches zero here or when the last user unpins, but not
  // earlier.
  pins_.fetch_add(kPin);
  pins_.fetch_or(kClosed);
  pins_.fetch_and(~kDrained);  // of TryHold
  Unpin();
}

ModelHandle ModelHandle::Duplicate() const {
  if (model_ == nullptr) return {};
  model_->PinAgain();
  ModelHandle second(*model_);
  second.SetRoute(flags_);
  return second;
}

bool ModelHandle::CountAsRequest(uint64_t limit, uint64_t bytes) {
  request_bytes_ =
      static_cast<uint32_t>(std::min<uint64_t>(bytes, std::numeric_limits<uint32_t>::max()));
  if (!model_->TryCountRequest(limit, request_bytes_)) return false;
  flags_ |= kCountsAsRequest;
  return true;
}

void ModelHandle::EndRequest() {
  if (!is_request()) return;
  flags_ &= static_cast<uint8_t>(~kCountsAsRequest);
  model_->EndRequest(request_bytes_);
}

void ModelHandle::Unpin(Model& model) const {
  if (is_request()) {
    model.UnpinRequest(request_bytes_);
  } else {
    model.Unpin();
  }
}

}  // namespace nereid::core
