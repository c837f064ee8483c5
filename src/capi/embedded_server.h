// SPDX-License-Identifier: Apache-2.0
// A server inside an embedder's process, from TRITONSERVER_ServerNew to ServerDelete.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "base/mutex.h"
#include "base/status.h"
#include "base/timers.h"
#include "capi/server.h"
#include "capi/server_options.h"

namespace nereid::capi {

// Thread-safe. Has no thread except that of a timer, which frees pooled memory.
class EmbeddedServer final : public TRITONSERVER_Server {
 public:
  explicit EmbeddedServer(const TRITONSERVER_ServerOptions& options);
  ~EmbeddedServer() override;

  // Loads the models according to the options.
  base::Status Start();
  // A second call does nothing and returns the same status as the first.
  base::Status Stop() override;

 private:
  void TrimSoon();

  base::Mutex stop_mutex_;
  bool is_stopped_ NEREID_GUARDED_BY(stop_mutex_) = false;
  base::Status stop_status_ NEREID_GUARDED_BY(stop_mutex_);
  base::Timers timers_;
  base::Timer trim_;
};

}  // namespace nereid::capi
