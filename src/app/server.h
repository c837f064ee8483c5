// SPDX-License-Identifier: Apache-2.0
// The composition root: makes every part of the process, in order, and takes them down in reverse.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/status.h"

namespace nereid::app {

// Confined to the main thread, but for LoadModels.
class Server {
 public:
  explicit Server(Options options);
  ~Server();

  // The steps of a start, in this order; an error is the line that the process ends with. Listeners
  // open first, so that a taken port is known at once and health can be asked while models load.
  base::Status Listen();
  // For any thread; Stop may be called meanwhile.
  base::Status LoadModels();
  // What waits for models, once they are loaded.
  base::Status ServeLoaded();

  // Readiness goes off; everything is served as before.
  void StartDraining();
  // How the server came to its end.
  struct Ending {
    bool all_answered = true;             // no connection was cut in the middle of something
    std::vector<std::string> unfinished;  // with any, the server must not be destroyed
  };
  // Refuses new requests, finishes those in flight within the exit timeout, and unloads the models.
  // Returns soon after that time whatever happens.
  Ending Stop();
  std::chrono::seconds exit_timeout() const;

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
