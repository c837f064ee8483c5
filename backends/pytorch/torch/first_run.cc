// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/first_run.h"

#include <cstdlib>

namespace nereid::pytorch {

namespace {

constexpr const char* kLibraryChecks = "AOTI_RUNTIME_CHECK_INPUTS";

}  // namespace

FirstRun::FirstRun() : is_users_(std::getenv(kLibraryChecks) != nullptr) {
  const backend::MutexLock lock(mutex_);
  Set(true);
}

void FirstRun::Set(bool library_checks) {
  if (!is_users_ && is_set_ != library_checks) {
    setenv(kLibraryChecks, library_checks ? "1" : "0", 1);
    is_set_ = library_checks;
  }
}

FirstRun& SharedFirstRun() {
  static FirstRun first_run;
  return first_run;
}

}  // namespace nereid::pytorch
