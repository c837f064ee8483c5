// SPDX-License-Identifier: Apache-2.0
#include "schedule/wake_signal.h"

#include <deque>
#include <vector>

namespace nereid::schedule {
namespace {

class Store {
 public:
  base::CondVar& Take() {
    base::MutexLock lock(mutex_);
    if (free_.empty()) return all_.emplace_back();
    base::CondVar* const taken = free_.back();
    free_.pop_back();
    return *taken;
  }
  void Return(base::CondVar& condition) {
    base::MutexLock lock(mutex_);
    free_.push_back(&condition);
  }

 private:
  base::Mutex mutex_;
  std::deque<base::CondVar> all_ NEREID_GUARDED_BY(mutex_);  // at addresses that do not change
  std::vector<base::CondVar*> free_ NEREID_GUARDED_BY(mutex_);
};

Store& TheStore() {
  static Store& store = *new Store;  // never destroyed: threads may outlive static objects
  return store;
}

}  // namespace

WakeSignal::WakeSignal() : condition_(TheStore().Take()) {}
WakeSignal::~WakeSignal() { TheStore().Return(condition_); }

}  // namespace nereid::schedule
