// SPDX-License-Identifier: Apache-2.0
// What PyTorch has to say goes to the server's log instead of the error stream.
#pragma once

#include <c10/util/Exception.h>

namespace nereid::pytorch {

// Passes the warnings of the calling thread on, as long as it exists.
class WarningsToLog {
 public:
  WarningsToLog();

 private:
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace nereid::pytorch
