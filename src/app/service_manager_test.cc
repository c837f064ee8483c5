// SPDX-License-Identifier: Apache-2.0
#include "app/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::app {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

// The socket of a service manager.
class ServiceManagerTest : public testing::Test {
 protected:
  ServiceManagerTest() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    std::string folder = testing::TempDir() + "notify-XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/socket";
    sockaddr_un address = {AF_UNIX, {}};
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~ServiceManagerTest() override { std::filesystem::remove_all(folder_); }

  // Waits for the next message.
  std::string Receive() {
    char text[256];
    const ssize_t size = recv(socket_.get(), text, sizeof text, 0);
    return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
  }
  bool HasMessage() {
    char byte;
    return recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
  }

  base::UniqueFd socket_;
  std::string folder_;
  std::string path_;
};

TEST_F(ServiceManagerTest, HearsThatTheServerIsReadyReloadsAndStops) {
  ServiceManager manager(path_, std::nullopt);
  manager.Ready();
  EXPECT_THAT(Receive(), StartsWith("READY=1"));
  manager.Reloading();
  EXPECT_THAT(Receive(), StartsWith("RELOADING=1\nMONOTONIC_USEC="));
  manager.Stopping(seconds(30));
  EXPECT_THAT(Receive(), HasSubstr("STOPPING=1\n"));
}

TEST_F(ServiceManagerTest, IsToldHowLongStoppingMayTake) {
  ServiceManager(path_, std::nullopt).Stopping(seconds(30));
  EXPECT_THAT(Receive(), HasSubstr("EXTEND_TIMEOUT_USEC=30000000"));
}

TEST_F(ServiceManagerTest, HearsOfNoReloadBeforeTheServerIsReady) {
  EXPECT_FALSE(ServiceManager(path_, std::nullopt).Reloading());
  EXPECT_FALSE(HasMessage());
}

TEST_F(ServiceManagerTest, IsFoundByVariablesThatChildrenDoNotInherit) {
  setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  setenv("WATCHDOG_USEC", "20000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_EQ(manager.watchdog_time(), microseconds(20'000'000));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
  }
  manager.Ready();
  EXPECT_THAT(Receive(), StartsWith("READY=1"));
}

TEST_F(ServiceManagerTest, WatchesNoOtherProcess) {
  setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  setenv("WATCHDOG_USEC", "20000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog_time(), std::nullopt);
}

TEST_F(ServiceManagerTest, MayBeAbsent) {
  ServiceManager manager("", std::nullopt);
  manager.Ready();
  manager.Stopping(seconds(1));
  EXPECT_FALSE(HasMessage());
}

TEST_F(ServiceManagerTest, HearsThatTheServerIsAliveAgainAndAgain) {
  const ServiceManager manager(path_, microseconds(3000));
  Watchdog watchdog(manager, [](milliseconds) { return true; });
  EXPECT_EQ(Receive(), "WATCHDOG=1");
  EXPECT_EQ(Receive(), "WATCHDOG=1");
}

TEST_F(ServiceManagerTest, HearsNothingOfAServerThatFailsItsCheck) {
  const ServiceManager manager(path_, microseconds(3000));
  std::atomic<int> checks = 0;
  {
    Watchdog watchdog(manager, [&](milliseconds) {
      ++checks;
      checks.notify_all();
      return false;
    });
    checks.wait(0);
    checks.wait(1);
  }
  EXPECT_FALSE(HasMessage());
}

}  // namespace
}  // namespace nereid::app
