// SPDX-License-Identifier: Apache-2.0
#include "net/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

namespace nereid::net {
namespace {

base::Status Failed(const std::string& path, int error) {
  return base::UnavailableError(
      fmt::format("failed to listen on 'unix:{}': {}", path, std::strerror(error)));
}

base::UniqueFd NewSocket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Returns whether some process accepts connections there, or is about to.
bool IsListenedOn(const sockaddr_un& address) {
  const base::UniqueFd probe = NewSocket();
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN || errno == EINPROGRESS;
}

// Makes room for a new socket at `path`. The folder is locked meanwhile, so that only one of two
// servers that start at once finds the place free.
base::Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? base::OkStatus() : Failed(path, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return base::UnavailableError(
        fmt::format("failed to listen on 'unix:{}': a file that is not a socket is there", path));
  }
  if (IsListenedOn(address)) {
    return base::UnavailableError(fmt::format("Socket 'unix:{}' already in use ", path));
  }
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? base::OkStatus() : Failed(path, errno);
}

}  // namespace

UnixSocketFile::~UnixSocketFile() {
  struct stat info{};
  if (::lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

base::Result<UnixSocket> ListenOnUnixSocket(const std::string& path, mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path ||
      path.find('\0') != std::string::npos) {
    return base::InvalidArgumentError(
        fmt::format("'unix:{}' is no path for a socket: it must have 1 to {} bytes", path,
                    sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());

  const std::string folder = std::filesystem::path(path).parent_path().string();
  const base::UniqueFd lock(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0) return Failed(path, errno);
  NEREID_RETURN_IF_ERROR(RemoveStale(path, address));
  UnixSocket made;
  made.socket = NewSocket();
  // No client can connect before it listens, and by then it has its permissions.
  if (!made.socket.valid() ||
      ::bind(made.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Failed(path, errno);
  }
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return Failed(path, errno);
  made.file = std::make_unique<UnixSocketFile>(path, info.st_dev, info.st_ino);
  if (::chmod(path.c_str(), mode) != 0 || ::listen(made.socket.get(), SOMAXCONN) != 0) {
    return Failed(path, errno);
  }
  return made;
}

namespace {

int MaxDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return INT_MAX;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
}

}  // namespace

int DescriptorsLeft(int fd) { return MaxDescriptors() - fd - 1; }

int ReservedDescriptors() { return std::min(64, MaxDescriptors() / 4); }

}  // namespace nereid::net
