// SPDX-License-Identifier: Apache-2.0
#include "isolation/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/unique_fd.h"

namespace nereid::isolation {
namespace {

// The headers of older systems lack what newer kernels can do; the layout of the kernel's structure
// only grows.
struct RulesetAttributes {
  uint64_t handled_access_fs = 0;
  uint64_t handled_access_net = 0;  // from version 4
  uint64_t scoped = 0;              // from version 6
};
constexpr uint64_t kRefer = uint64_t{1} << 13;     // from version 2
constexpr uint64_t kTruncate = uint64_t{1} << 14;  // from version 3
constexpr uint64_t kBindTcp = 1;
constexpr uint64_t kConnectTcp = 2;
constexpr uint64_t kScopeAbstractSockets = 1;
constexpr uint64_t kScopeSignals = 2;

constexpr uint64_t kReadFile = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRead = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                            LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

base::Status SystemError(const std::string& what) {
  return base::UnavailableError(what + ": " + std::strerror(errno));
}

base::Status Allow(int ruleset, const std::string& path, uint64_t rights) {
  const base::UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
  // What is gone meanwhile needs no rule.
  if (!file.valid()) return {};
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return {};
  if (!S_ISDIR(status.st_mode)) {
    rights &= kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
  }
  const landlock_path_beneath_attr rule{.allowed_access = rights, .parent_fd = file.get()};
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return {};
  return SystemError("Landlock refuses a rule for '" + path + "'");
}

}  // namespace

base::Result<LandlockResult> Restrict(const Landlock& wanted) {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) {
    return base::UnavailableError(
        "this kernel has no Landlock, so the process may open any file that its user may");
  }
  RulesetAttributes attributes;
  size_t size = sizeof(uint64_t);
  uint64_t handled = kRead | kWrite;
  if (version >= 2) handled |= kRefer;
  if (version >= 3) handled |= kTruncate;
  if (wanted.files) attributes.handled_access_fs = handled;
  if (version >= 4) {
    size = 2 * sizeof(uint64_t);
    if (!wanted.may_use_network) attributes.handled_access_net = kBindTcp | kConnectTcp;
  }
  if (version >= 6) {
    size = sizeof(attributes);
    attributes.scoped = kScopeSignals | kScopeAbstractSockets;
  }
  const LandlockResult result{.confines_signals = attributes.scoped != 0};
  if (attributes.handled_access_fs == 0 && attributes.handled_access_net == 0 &&
      attributes.scoped == 0) {
    return result;
  }
  const base::UniqueFd ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0)));
  if (!ruleset.valid()) return SystemError("Landlock refuses its rules");
  if (wanted.files) {
    for (const std::string& path : wanted.files->readable) {
      NEREID_RETURN_IF_ERROR(Allow(ruleset.get(), path, kRead));
    }
    for (const std::string& path : wanted.files->writable) {
      NEREID_RETURN_IF_ERROR(Allow(ruleset.get(), path, handled));
    }
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return SystemError("Landlock is not permitted");
  }
  return result;
}

}  // namespace nereid::isolation
