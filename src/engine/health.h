// SPDX-License-Identifier: Apache-2.0
// What threads and devices say about the health of the server and of its models. The server is not
// live when a restart is what it needs: an event loop or the timers' thread is stuck, or a GPU has
// failed for good. A model is not ready when no request to it can be executed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/watchdog.h"
#include "core/model.h"
#include "memory/gpus.h"
#include "observe/metrics_page.h"
#include "service/service.h"

namespace nereid::engine {

// Thread-safe.
class Health {
 public:
  // Both outlive this.
  Health(const base::Watchdog& watchdog, const memory::Gpus& gpus)
      : watchdog_(watchdog), gpus_(gpus) {}

  // Whether no restart is needed.
  bool IsLive() const;
  // Whether every thread gets on and every device works; more than IsLive, for whoever restarts the
  // server when it is not well.
  bool IsWell() const { return !watchdog_.has_stuck() && !gpus_.has_failed(); }
  // Whether an instance of the model can execute, as far as the server sees.
  bool CanExecute(const core::Model& model) const { return WhyNot(model).empty(); }
  // Returns why not; empty if it can.
  std::string WhyNot(const core::Model& model) const;
  // Returns the error that only a new process cures.
  std::optional<std::string> FatalError() const;

  // Appends what IsLive is made of.
  void AddChecks(service::HealthChecks& checks) const;
  // Adds metrics to the page.
  void AddTo(observe::MetricsPage& page) const;

 private:
  service::HealthCheck CheckThreads(std::string name, std::string_view kind) const;

  const base::Watchdog& watchdog_;
  const memory::Gpus& gpus_;
};

}  // namespace nereid::engine
