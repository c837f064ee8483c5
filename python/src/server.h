// SPDX-License-Identifier: Apache-2.0
// A server in this process; the Python class _core.Server.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "nereid/frontends.h"
#include "triton/core/tritonserver.h"

namespace nereid::python {

// Named values for the C API, from a Python dictionary. The dictionary must outlive this, because
// bytes are not copied. Confined to the thread that made it.
class Parameters {
 public:
  // Throws InvalidArgumentError, with `what`, for a value that is not a str, bool, int, float or
  // bytes.
  Parameters(const pybind11::dict& values, const char* what);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;
  ~Parameters();

  const TRITONSERVER_Parameter** data() { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }

 private:
  std::vector<const TRITONSERVER_Parameter*> pointers_;
};

// Converts a Python int; throws InvalidArgumentError if it does not fit.
int64_t ToInt64(pybind11::handle value, const char* what);

// A server. Every method releases the GIL. Thread-safe, as the server is, except for Listen. In a
// child process that the program has forked, where the server's threads are not, nothing happens.
class Server {
 public:
  // Copies what it needs from `options`.
  explicit Server(TRITONSERVER_ServerOptions* options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Stops the server. Must not run on a thread of the server.
  ~Server();

  TRITONSERVER_Server* handle() const { return server_; }

  // Serves others; to be called once. `flags` as in nereid/frontends.h.
  void Listen(const std::vector<std::string>& flags);
  // Returns (HTTP, gRPC, metrics), 0 for one that is off.
  pybind11::tuple Ports() const;
  // Also ends what listens. May be called again.
  void Stop();

 private:
  TRITONSERVER_Error* StopAll();
  bool IsForked() const { return getpid() != process_; }

  TRITONSERVER_Server* server_ = nullptr;
  NEREIDSERVER_Frontends* frontends_ = nullptr;
  std::atomic<bool> is_stopping_{false};
  const pid_t process_ = getpid();
};

void RegisterServer(pybind11::module_& module);
void RegisterOptions(pybind11::module_& module);
void RegisterMetrics(pybind11::module_& module);

}  // namespace nereid::python
