// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

namespace nereid::base {
namespace {

// Memory on which signal handlers of the calling thread run that ask for it, so that they also run
// when the thread's own stack is used up. Costs no memory until then. Does nothing if the thread
// has such memory already, as with sanitizers. Confined to the thread.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) return;
    const stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = kSize};
    ::sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    if (memory_ == MAP_FAILED) return;
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ::sigaltstack(&none, nullptr);
    ::munmap(memory_, kSize);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kSize = size_t{64} << 10;
  void* memory_ = MAP_FAILED;
};

}  // namespace

Thread::Thread(const std::string& name, std::function<void()> body)
    : thread_([name = name.substr(0, 15), body = std::move(body)] {
        pthread_setname_np(pthread_self(), name.c_str());
        const SignalStack signal_stack;
        body();
      }) {}

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace nereid::base
