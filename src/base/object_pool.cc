// SPDX-License-Identifier: Apache-2.0
#include "base/object_pool.h"

namespace nereid::base {
namespace {

// The trim functions of all pools.
struct Trims {
  Mutex mutex;
  std::vector<void (*)()> all NEREID_GUARDED_BY(mutex);
};

// Leaked on purpose: the depots, which it refers to, are leaked too.
Trims& AllTrims() {
  static Trims* const trims = new Trims;
  return *trims;
}

}  // namespace

void object_pool_internal::Register(void (*trim)()) {
  Trims& trims = AllTrims();
  MutexLock lock(trims.mutex);
  trims.all.push_back(trim);
}

void TrimObjectPools() {
  std::vector<void (*)()> all;
  {
    Trims& trims = AllTrims();
    MutexLock lock(trims.mutex);
    all = trims.all;
  }
  for (void (*const trim)() : all) trim();
}

}  // namespace nereid::base
