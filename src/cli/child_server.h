// SPDX-License-Identifier: Apache-2.0
// A server of this program in a process of its own, for the duration of a command.
#pragma once

#include <sys/types.h>

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"

namespace nereid::cli {

// The destructor stops the server. It also ends when this process is killed. Confined to one
// thread.
class ChildServer {
 public:
  // Runs `nereid serve` with these arguments on ports that are free, and waits until its models are
  // loaded. The error is the server's; CANCELLED if `stop` stops meanwhile.
  static base::Result<std::unique_ptr<ChildServer>> Start(const std::vector<std::string>& arguments,
                                                          const std::stop_token& stop);
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  pid_t pid() const { return pid_; }
  // "http://127.0.0.1:8000".
  const std::string& http_url() const { return http_url_; }
  const std::string& grpc_url() const { return grpc_url_; }
  // The names of the models that it serves.
  const std::vector<std::string>& models() const { return models_; }

 private:
  explicit ChildServer(pid_t pid) : pid_(pid) {}

  // Reads what the server prints once it serves.
  base::Status TakeSummary(const std::string& json);

  const pid_t pid_;
  std::string http_url_;
  std::string grpc_url_;
  std::vector<std::string> models_;
};

}  // namespace nereid::cli
