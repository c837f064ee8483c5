// SPDX-License-Identifier: Apache-2.0
// Handles the calls of an instance's workers: responses through senders, logs, metrics, model
// control and inference requests of the model.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "python_backend/infer.h"
#include "python_backend/metrics.h"
#include "python_backend/pending.h"
#include "python_backend/worker.h"

namespace nereid::python {

// What the calls of an instance's workers use. Outlives the workers.
struct CallContext {
  std::string name;  // of the instance
  TRITONSERVER_Server* server = nullptr;
  std::atomic<int> open_slow_calls{0};
  backend::BackgroundWork slow_calls;
  backend::BackgroundWork slow_clients;  // sends responses for which their clients are too slow
};

// The calls of one worker. Confined to the thread that handles them.
class Calls {
 public:
  // `pending` has the requests that the worker has.
  Calls(CallContext& context, std::shared_ptr<PendingTable> pending)
      : context_(context), pending_(std::move(pending)), inferences_(context.server) {}

  void Handle(const std::shared_ptr<Worker>& worker, const CallBlock& call);

 private:
  void Dispatch(const std::shared_ptr<Worker>& worker, const CallBlock& call);
  void Log(Reader& reader);
  void Send(const std::shared_ptr<Worker>& worker, const CallBlock& call);
  void IsCancelled(Worker& worker, const CallBlock& call, Reader& reader);
  backend::Result<std::string> Metrics(Call kind, Reader& reader);
  backend::Error ChangeMetric(Call kind, TRITONSERVER_Metric* metric, double value);
  void ControlModel(const std::shared_ptr<Worker>& worker, const CallBlock& call);

  CallContext& context_;
  const std::shared_ptr<PendingTable> pending_;
  MetricTable metrics_;
  Inferences inferences_;
};

}  // namespace nereid::python
