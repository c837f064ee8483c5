// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/warnings.h"

#include <c10/util/Logging.h>

#include <atomic>
#include <string>

#include "pytorch_backend/error_stream.h"
#include "pytorch_backend/program.h"

namespace nereid::pytorch {
namespace {

using LogFunction = void (*)(const std::string& text);

// Set once, before anything is loaded.
std::atomic<LogFunction> log_function{nullptr};

// Sends warnings to the log function.
class Handler : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (const LogFunction log = log_function.load()) {
      log(warning.msg());
    }
  }
};

Handler& SharedHandler() {
  static Handler handler;
  return handler;
}

}  // namespace

WarningsToLog::WarningsToLog() : guard_(&SharedHandler()) {}

void InitializeTorch(LogFunction log) {
  log_function = log;
  static const ErrorStreamRoute route;
  // Lines that bypass the handler: only errors, whose exceptions we report as well.
  FLAGS_caffe2_log_level = 2;
}

}  // namespace nereid::pytorch
