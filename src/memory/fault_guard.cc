// SPDX-License-Identifier: Apache-2.0
#include "memory/fault_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/mutex.h"

namespace nereid::memory {

namespace fault_internal {

// A guarded range. The signal handler may read it at any time, so it is reused but never freed.
struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: not in use
  std::atomic<size_t> size{0};
  std::atomic<bool> is_broken{false};
  Slot* next = nullptr;  // constant once the slot is in the list
};

}  // namespace fault_internal

namespace {

using fault_internal::Slot;

// A signal handler has access to globals only. These are the only ones; all but the first are
// written under the lock.
std::atomic<Slot*> first_slot{nullptr};
struct sigaction previous_action;
bool is_installed = false;
base::Mutex slots_mutex;

// Runs in the signal handler, so it does only what is safe there: no library calls, which may be
// intercepted.
bool Repair(uintptr_t address) {
  for (Slot* slot = first_slot.load(); slot != nullptr; slot = slot->next) {
    const uintptr_t begin = slot->begin.load();
    const size_t size = slot->size.load();
    if (begin == 0 || address < begin || address - begin >= size) continue;
    slot->is_broken.store(true);
    const long mapped = ::syscall(SYS_mmap, begin, size, PROT_READ | PROT_WRITE,
                                  MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == static_cast<long>(begin);
  }
  return false;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int kept_errno = errno;
  if (info->si_code == BUS_ADRERR && Repair(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = kept_errno;
    return;
  }
  errno = kept_errno;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    // Returning repeats the access, which then ends the process as if there were no handler.
    ::signal(SIGBUS, SIG_DFL);
  }
}

void InstallHandler() NEREID_REQUIRES(slots_mutex) {
  if (is_installed) return;
  is_installed = true;
  ::sigaction(SIGBUS, nullptr, &previous_action);
  struct sigaction action{};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

Slot& TakeSlot(void* data, size_t size) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  base::MutexLock lock(slots_mutex);
  InstallHandler();
  Slot* slot = first_slot.load();
  while (slot != nullptr && slot->begin.load() != 0) slot = slot->next;
  if (slot == nullptr) {
    slot = new Slot;
    slot->next = first_slot.load();
    first_slot.store(slot);
  }
  slot->is_broken.store(false);
  slot->size.store((size + page - 1) / page * page);
  slot->begin.store(reinterpret_cast<uintptr_t>(data));
  return *slot;
}

}  // namespace

FaultGuard::FaultGuard(void* data, size_t size) : slot_(TakeSlot(data, size)) {}

FaultGuard::~FaultGuard() {
  base::MutexLock lock(slots_mutex);
  slot_.begin.store(0);
}

bool FaultGuard::is_broken() const { return slot_.is_broken.load(); }

}  // namespace nereid::memory
