// SPDX-License-Identifier: Apache-2.0
// The file of a Unix socket that a server listens on.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace nereid::net {

// Returns how many more descriptors the process may open, judging by `fd`: the lowest free number
// is taken each time, so all below it are in use.
int DescriptorsLeft(int fd);
// With fewer descriptors left, new connections are for health requests only, and idle ones are
// closed.
int ReservedDescriptors();

// Removes its file when destroyed, unless another socket has replaced it. Immutable.
class UnixSocketFile {
 public:
  UnixSocketFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}
  ~UnixSocketFile();
  UnixSocketFile(const UnixSocketFile&) = delete;
  UnixSocketFile& operator=(const UnixSocketFile&) = delete;

 private:
  const std::string path_;
  const dev_t device_;
  const ino_t inode_;
};

// A listening Unix socket and its file, which is removed when the owner drops it.
struct UnixSocket {
  base::UniqueFd socket;  // listens
  std::unique_ptr<UnixSocketFile> file;
};

// Listens on `path`, whose file gets the permissions `mode` before any client can connect. Replaces
// the file of a server that has ended. Unavailable if a process listens there, something other than
// a socket is there, or the folder does not allow it.
base::Result<UnixSocket> ListenOnUnixSocket(const std::string& path, mode_t mode);

}  // namespace nereid::net
