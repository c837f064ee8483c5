// SPDX-License-Identifier: Apache-2.0
#include "isolation/system_calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::isolation {
namespace {

// Calls that trace or read other processes, change the system, its time, mounts or modules, or that
// would lead round this filter.
constexpr uint32_t kRefused[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_acct,
    SYS_quotactl,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_pidfd_getfd,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_open_tree,
    SYS_mount_setattr,
    SYS_syslog,
};
// Calls whose first argument is the process that gets a signal.
constexpr uint32_t kSignals[] = {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
                                 SYS_rt_tgsigqueueinfo};
constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
// On x86-64, numbers from here on are those of the x32 calls.
constexpr uint32_t kX32 = 0x40000000;

// The kernel's name of this machine's system calls.
uint32_t AuditArch() {
  utsname name{};
  uname(&name);
  return std::string_view(name.machine) == "aarch64" ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64;
}

// A filter in the making. Every piece leaves the number of the call in the accumulator.
class Program {
 public:
  Program() {
    Load(offsetof(seccomp_data, arch));
    Add(BPF_JMP | BPF_JEQ | BPF_K, AuditArch(), 1, 0);
    Return(SECCOMP_RET_ERRNO | EPERM);
    LoadNumber();
    Add(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1);
    Return(SECCOMP_RET_ERRNO | EPERM);
  }
  void Refuse(uint32_t call, uint32_t error = EPERM) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    Return(SECCOMP_RET_ERRNO | error);
  }
  // Refuses a call unless the lower half of its first argument is one of these.
  void RefuseUnlessFirstIs(uint32_t call, const std::vector<uint32_t>& permitted) {
    const auto count = static_cast<uint8_t>(permitted.size());
    Add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, static_cast<uint8_t>(count + 3));
    Load(offsetof(seccomp_data, args));
    for (uint8_t i = 0; i < count; ++i) {
      Add(BPF_JMP | BPF_JEQ | BPF_K, permitted[i], static_cast<uint8_t>(count - i), 0);
    }
    Return(SECCOMP_RET_ERRNO | EPERM);
    LoadNumber();
  }
  // Refuses a call if its first argument has any of these bits.
  void RefuseIfFirstHas(uint32_t call, uint32_t bits) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
    Load(offsetof(seccomp_data, args));
    Add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    Return(SECCOMP_RET_ERRNO | EPERM);
    LoadNumber();
  }
  base::Status Install() && {
    Return(SECCOMP_RET_ALLOW);
    const sock_fprog program{.len = static_cast<uint16_t>(code_.size()), .filter = code_.data()};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0) {
      return {};
    }
    return base::UnavailableError(
        std::string("seccomp is not available, so the process may make any system call: ") +
        std::strerror(errno));
  }

 private:
  void Add(uint16_t code, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
    code_.push_back({.code = code, .jt = if_true, .jf = if_false, .k = value});
  }
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void LoadNumber() { Load(offsetof(seccomp_data, nr)); }
  void Return(uint32_t what) { Add(BPF_RET | BPF_K, what); }

  std::vector<sock_filter> code_;
};

}  // namespace

base::Status FilterSystemCalls(const SystemCallFilter& filter) {
  Program program;
  for (const uint32_t call : kRefused) program.Refuse(call);
  if (!filter.may_use_network) program.Refuse(SYS_socket);
  const auto self = static_cast<uint32_t>(getpid());
  program.RefuseUnlessFirstIs(SYS_prlimit64, {0, self});
  if (filter.confines_signals) {
    for (const uint32_t call : kSignals) {
      // A thread's number is not known beforehand; its signals are those of tgkill.
      if (call != SYS_tkill) program.RefuseUnlessFirstIs(call, {0, self});
    }
    program.Refuse(SYS_tkill);
    program.Refuse(SYS_pidfd_send_signal);
  }
  program.RefuseIfFirstHas(SYS_clone, kNewNamespaces);
  // The flags of clone3 are in memory, which a filter cannot read. Libraries then use clone.
  program.Refuse(SYS_clone3, ENOSYS);
  return std::move(program).Install();
}

}  // namespace nereid::isolation
