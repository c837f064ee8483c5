// SPDX-License-Identifier: Apache-2.0
#include "net/unix_socket.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace nereid::net {
namespace {

namespace fs = std::filesystem;

class UnixSocketTest : public testing::Test {
 protected:
  // Not in the temporary folder itself, whose owner holds the lock that makes room for sockets.
  UnixSocketTest() { fs::create_directory(folder_.path + "/run"); }
  ~UnixSocketTest() override { fs::remove_all(folder_.path); }

  std::string WhyNot(const std::string& path) {
    return std::string(ListenOnUnixSocket(path, 0600).status().message());
  }
  bool CanConnect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    const base::UniqueFd client(::socket(AF_UNIX, SOCK_STREAM, 0));
    return ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  const base::TemporaryFolder folder_ = std::move(*base::MakeTemporaryFolder("test"));
  const std::string path_ = folder_.path + "/run/socket";
};

TEST_F(UnixSocketTest, HasThePermissionsThatWereAskedFor) {
  const auto made = ListenOnUnixSocket(path_, 0640);
  ASSERT_TRUE(made.ok());
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_TRUE(CanConnect());
}

TEST_F(UnixSocketTest, IsGoneWithItsServer) {
  {
    ASSERT_TRUE(ListenOnUnixSocket(path_, 0600).ok());
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(UnixSocketTest, ReplacesWhatADeadServerLeft) {
  auto first = ListenOnUnixSocket(path_, 0600);
  ASSERT_TRUE(first.ok());
  first->socket.Close();
  ASSERT_TRUE(fs::exists(path_));
  const auto second = ListenOnUnixSocket(path_, 0600);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(CanConnect());
}

TEST_F(UnixSocketTest, IsRefusedWhereSomebodyListens) {
  const auto made = ListenOnUnixSocket(path_, 0600);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(WhyNot(path_), "Socket 'unix:" + path_ + "' already in use ");
  EXPECT_TRUE(CanConnect());
}

TEST_F(UnixSocketTest, LeavesOtherFilesAlone) {
  std::ofstream(path_) << "mine";
  EXPECT_EQ(WhyNot(path_),
            "failed to listen on 'unix:" + path_ + "': a file that is not a socket is there");
  EXPECT_EQ(fs::file_size(path_), 4u);
}

TEST_F(UnixSocketTest, SaysWhatIsWrongWithItsPath) {
  const std::string long_path = folder_.path + "/" + std::string(120, 'x');
  EXPECT_EQ(WhyNot(long_path),
            "'unix:" + long_path + "' is no path for a socket: it must have 1 to 107 bytes");
  EXPECT_EQ(WhyNot(""), "'unix:' is no path for a socket: it must have 1 to 107 bytes");
  const std::string nowhere = folder_.path + "/none/socket";
  EXPECT_EQ(WhyNot(nowhere),
            "failed to listen on 'unix:" + nowhere + "': No such file or directory");
}

TEST(Descriptors, AreLeftUpToTheLimitOfTheProcess) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit small{.rlim_cur = 100, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  EXPECT_EQ(DescriptorsLeft(99), 0);
  EXPECT_EQ(DescriptorsLeft(10), 89);
  EXPECT_EQ(ReservedDescriptors(), 25);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace nereid::net
