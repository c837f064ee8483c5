// SPDX-License-Identifier: Apache-2.0
// The file of a Unix socket that a server listens on.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace nereid::net {

// How many more descriptors the process may open than `fd` says it has: the lowest free one is
// taken each time, so that all below it are in use.
int DescriptorsLeft(int fd);
// With fewer than this left, connections are for questions of health only, and idle ones are
// closed.
int ReservedDescriptors();

// Removes its file when it goes, unless another socket has taken its place. Immutable.
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

// Listens on `path`, whose file gets the permissions `mode` before anybody can connect. What a
// server that has ended left behind there is replaced. Unavailable when somebody listens there,
// something else than a socket is there, or the folder does not allow it.
base::Result<UnixSocket> ListenOnUnixSocket(const std::string& path, mode_t mode);

}  // namespace nereid::net
