// SPDX-License-Identifier: Apache-2.0
// A batch of requests that the server has sent, as the backend in this process sees it, and what
// the server is told about each request: its responses, and how it ended.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "core/cancel_handle.h"
#include "core/model.h"
#include "core/request.h"
#include "core/response.h"
#include "core/sequence_states.h"
#include "isolation/channel.h"
#include "isolation_backend/records.h"

namespace nereid::isolation {

class HostedBatch;

// What all batches of a model share. Outlives them.
struct HostContext {
  Channel& channel;
  core::Model& model;
  std::shared_ptr<const core::StatePlan> states;  // null: the model has none
};

// One request of a batch: the receiver of its responses. Exists until the request and all its
// responses are gone.
class HostedRequest final : public core::ResponseSink {
 public:
  HostedRequest(HostedBatch& batch, uint64_t number) : batch_(batch), number_(number) {}

  base::Result<std::optional<core::OutputPlacement>> PlaceOutput(
      const core::Request& request, const core::ResponseOutput& output, size_t byte_size,
      memory::Placement preferred) override;
  void ReleasePlacement(const core::OutputPlacement& placement, size_t byte_size) override;
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnExecuted(const core::ComputeTimes& times) override {
    report_ = Report::kSuccess;
    times_ = times;
  }
  void OnExecutionFailed() override { report_ = Report::kFailure; }
  void OnRequestReleased(core::Request& request) override;
  void OnRequestGone() override;

  // The request is released in order to be executed once more.
  void Reschedule(core::RequestPtr request);

 private:
  friend class HostedBatch;

  // Makes the values that came with the request those of its states.
  base::Status TakeStates(core::Request& request);
  bool is_updated(size_t state) const;
  void AppendEnding(Message& message, Ending ending) const;
  // Waits for a client that reads far more slowly than the model sends; a response of `bytes` was
  // sent.
  void KeepPace(size_t bytes);

  HostedBatch& batch_;
  const uint64_t number_;  // by which the server knows the request
  core::CancelHandle cancel_handle_;
  std::unique_ptr<core::SequenceStates> states_;
  Report report_ = Report::kNone;
  core::ComputeTimes times_;
  Ending ending_ = Ending::kHeld;
  core::ResponsePtr response_;  // kept until the end of the execution
  // Since the server was asked last whether the client has taken what was sent.
  std::atomic<size_t> ahead_{0};  // responses
  std::atomic<size_t> ahead_bytes_{0};
};

// A batch. It exists until all its requests are gone. Thread-safe: backends may respond to requests
// and release them on any thread.
class HostedBatch {
 public:
  // Reads what the server has written. The requests are for one execution. The server may use the
  // memory of the batch again when the last one is released, or when this fails, which leaves none.
  static base::Result<std::shared_ptr<HostedBatch>> Read(HostContext& context,
                                                         const Channel::Item& item,
                                                         std::vector<core::RequestPtr>& requests);
  ~HostedBatch();

  // Ends the execution: returns what became of each request so far. What happens to one later is
  // told by calls.
  Message Close();
  // Cancels the request with this number, if it is one of this batch.
  bool Cancel(uint64_t number);
  bool is_gone();

 private:
  friend class HostedRequest;

  HostedBatch(HostContext& context, uint64_t payload) : context_(context), payload_(payload) {}

  // Each adds to `requests` what it has made, also if it fails.
  base::Status ReadRequests(std::span<const char> payload, std::vector<core::RequestPtr>& requests);
  base::Status ReadRequest(std::span<const char> payload, const python::RequestRecord& record,
                           std::vector<core::RequestPtr>& requests);
  // Lets the server use the memory again that the requests are in.
  void LetGo() const;

  HostContext& context_;
  const uint64_t payload_;          // the offset of the batch's payload, which its inputs are in
  std::vector<uint64_t> received_;  // those of requests that were received into memory of their own
  std::vector<std::unique_ptr<HostedRequest>> requests_;  // constant once read
  base::Mutex mutex_;
  bool is_executing_ NEREID_GUARDED_BY(mutex_) = true;
  size_t unreleased_ NEREID_GUARDED_BY(mutex_) = 0;
  size_t remaining_ NEREID_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<HostedBatch> self_ NEREID_GUARDED_BY(mutex_);  // while any request exists
};

}  // namespace nereid::isolation
