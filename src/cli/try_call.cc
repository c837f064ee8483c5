// SPDX-License-Identifier: Apache-2.0
// The part of sample_call.h that executes a call.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "cli/sample_call.h"
#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"

namespace nereid::cli {
namespace {

// A request with more input than this would not be an example.
constexpr size_t kMaxInputBytes = size_t{16} << 20;

// The text "1" behind its length.
constexpr std::string_view kText{
    "\1\0\0\0"
    "1",
    5};

// A model that takes longer for one row is not tried further.
constexpr std::chrono::seconds kMaxTime{10};

// The call and the end of its one request. It keeps itself alive until the request is gone, which
// may be after the caller has stopped waiting. Thread-safe.
class Trial final : public core::ResponseSink {
 public:
  explicit Trial(const SampleCall& call) : call_(call) {}

  // Returns the request, whose names are those of this object.
  static base::Result<core::RequestPtr> MakeRequest(const std::shared_ptr<Trial>& trial);

  void Send(core::ResponsePtr response, bool /*is_final*/) override {
    if (response == nullptr) return;
    base::MutexLock lock(mutex_);
    if (error_.ok()) error_ = response->error();
  }
  void OnRequestGone() override {
    std::shared_ptr<Trial> self;
    base::MutexLock lock(mutex_);
    is_done_ = true;
    done_.NotifyAll();
    self = std::move(self_);
  }
  base::Status Wait(base::TimePoint deadline) {
    base::MutexLock lock(mutex_);
    while (!is_done_) {
      if (!done_.WaitUntil(mutex_, deadline) && !is_done_) {
        return base::UnavailableError("there was no response in time");
      }
    }
    return error_;
  }

 private:
  const SampleCall call_;
  base::Mutex mutex_;
  base::CondVar done_;
  std::shared_ptr<Trial> self_ NEREID_GUARDED_BY(mutex_);
  bool is_done_ NEREID_GUARDED_BY(mutex_) = false;
  base::Status error_ NEREID_GUARDED_BY(mutex_);
};

base::Result<core::RequestPtr> Trial::MakeRequest(const std::shared_ptr<Trial>& trial) {
  {
    base::MutexLock lock(trial->mutex_);
    trial->self_ = trial;
  }
  core::RequestPtr request = core::Request::Create(*trial);
  request->is_counted = false;
  size_t total = 0;
  for (const SampleCall::Tensor& input : trial->call_.inputs) {
    const bool is_text = input.type == tensor::DataType::kBytes;
    const auto count = tensor::ElementCount(input.shape);
    const size_t element_size = is_text ? kText.size() : tensor::ElementSize(input.type);
    if (!count || static_cast<uint64_t>(*count) > (kMaxInputBytes - total) / element_size) {
      return base::InvalidArgumentError("the inputs would be too large");
    }
    const size_t size = static_cast<size_t>(*count) * element_size;
    total += size;
    base::BufferRef buffer = base::AcquireBuffer(std::max<size_t>(size, 1));
    if (!buffer) return base::UnavailableError("there is no memory for the inputs");
    std::memset(buffer.data(), 0, size);
    for (size_t at = 0; is_text && at < size; at += kText.size()) {
      std::memcpy(buffer.data() + at, kText.data(), kText.size());
    }
    core::RequestInput& added = request->AddInput(input.name, input.type);
    added.shape.Assign(input.shape);
    added.Append({.data = buffer.data(), .size = size});
    request->Hold(std::move(buffer));
  }
  if (trial->call_.is_sequence) {
    request->flags = core::kSequenceStart | core::kSequenceEnd;
    request->correlation_id = uint64_t{1};
  }
  return request;
}

}  // namespace

base::Status Try(service::Service& service, const SampleCall& call) {
  NEREID_ASSIGN_OR_RETURN(core::ModelHandle model, service.FindModel(call.model, ""));
  const auto trial = std::make_shared<Trial>(call);
  NEREID_ASSIGN_OR_RETURN(core::RequestPtr request, Trial::MakeRequest(trial));
  request->model = std::move(model);
  service.Infer(std::move(request));
  return trial->Wait(std::chrono::steady_clock::now() + kMaxTime);
}

}  // namespace nereid::cli
