// SPDX-License-Identifier: Apache-2.0
// Lets no thread be started, as if the process had as many as it may have.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "base/check.h"
#include "base/log.h"

namespace nereid::base {

// For as long as it exists, a new thread would get a stack that no address space has room for.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    // The log's own thread starts with its first message, which may be about the shortage.
    NEREID_CHECK(ConfigureLog(CurrentLogOptions()).ok());
    NEREID_CHECK(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    NEREID_CHECK(pthread_attr_init(&huge) == 0);
    NEREID_CHECK(pthread_attr_setstacksize(&huge, size_t{1} << 47) == 0);
    NEREID_CHECK(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    NEREID_CHECK(pthread_setattr_default_np(&before_) == 0);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace nereid::base
