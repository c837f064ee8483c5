// SPDX-License-Identifier: Apache-2.0
#include "python_backend/input_lenders.h"

#include <utility>

namespace nereid::python {
namespace {

// Copying a smaller tensor costs less than keeping it.
constexpr uint64_t kFewestLent = uint64_t{64} << 10;
// Memory that is lent needs so many readable bytes after it.
constexpr uint64_t kLentPadding = 64;

// A part of a worker's memory that the server uses. Keeps the memory even after the worker has
// ended.
struct Lease {
  Lease(std::shared_ptr<Worker> from, BlockPool::Block lent)
      : worker(std::move(from)), block(std::move(lent)) {
    worker->memory().CountLease(1);
  }
  ~Lease() { worker->memory().CountLease(-1); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::shared_ptr<Worker> worker;  // destroyed last
  BlockPool::Block block;
};

}  // namespace

backend::Error InputLenders::Offer(TRITONBACKEND_Model* model) {
  if (NEREIDBACKEND_ModelLendInputs == nullptr) return {};
  return backend::Error(NEREIDBACKEND_ModelLendInputs(
      model, kFewestLent,
      [](void* user, uint64_t size, NEREIDBACKEND_LentInput* lent) {
        return static_cast<InputLenders*>(user)->Lend(size, lent);
      },
      this));
}

void InputLenders::Add(const std::string& instance, const std::shared_ptr<Worker>& worker) {
  const backend::MutexLock lock(mutex_);
  lenders_[instance] = worker;
}

std::shared_ptr<Worker> InputLenders::Find() {
  std::shared_ptr<Worker> found;
  const backend::MutexLock lock(mutex_);
  for (const auto& [instance, lender] : lenders_) {
    std::shared_ptr<Worker> worker = lender.lock();
    if (worker == nullptr || !worker->is_alive()) continue;
    if (found == nullptr || worker->memory().lease_count() < found->memory().lease_count())
      found = std::move(worker);
  }
  return found;
}

bool InputLenders::Lend(uint64_t size, NEREIDBACKEND_LentInput* lent) {
  std::shared_ptr<Worker> worker = Find();
  if (worker == nullptr) return false;
  auto block = worker->memory().inputs().Allocate(size + kLentPadding);
  if (!block.ok()) {
    block.TakeError().Ignore();
    return false;
  }
  auto* const lease = new Lease(std::move(worker), std::move(block).value());
  lent->buffer = lease->block.payload();
  lent->release = [](void* user) { delete static_cast<Lease*>(user); };
  lent->user = lease;
  return true;
}

}  // namespace nereid::python
