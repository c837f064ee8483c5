// SPDX-License-Identifier: Apache-2.0
// The composition root: makes every part of the process, in order, and takes them down in reverse.
#pragma once

#include <memory>

#include "app/options.h"
#include "base/status.h"

namespace nereid::app {

// Confined to the main thread.
class Server {
 public:
  explicit Server(Options options);
  ~Server();

  // Opens the listeners first, so that a taken port is known at once and health can be asked while
  // models load, then loads the models. The error is the line that the process ends with.
  base::Status Start();

  // Readiness goes off; everything is served as before.
  void StartDraining();
  // Refuses new requests, finishes those in flight within the exit timeout, and unloads the models.
  // False when something did not finish in time.
  bool Stop();

 private:
  struct Parts;

  base::Status StartHttp();
  base::Status StartGrpc();
  base::Status StartMetrics();

  // Before the options, which name it.
  const std::unique_ptr<LinkFolder> sagemaker_links_;
  const Options options_;
  std::unique_ptr<Parts> parts_;
};

// The main function of the process: 0, or 1 after one line on standard error that says why.
int RunServer(int argc, char** argv);

}  // namespace nereid::app
