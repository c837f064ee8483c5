// SPDX-License-Identifier: Apache-2.0
#include "memory/region_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::memory {
namespace {

using base::StatusCode;
using testing::HasSubstr;

// A POSIX shared memory object of this test, as a client makes it.
class Object {
 public:
  explicit Object(size_t size)
      : key_("/nereid_region_test_" + std::to_string(::getpid()) + "_" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fd_ = ::shm_open(key_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    Resize(size);
  }
  ~Object() {
    ::close(fd_);
    ::shm_unlink(key_.c_str());
  }
  void Resize(size_t size) { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }
  void Write(size_t offset, std::string_view text) {
    ASSERT_EQ(::pwrite(fd_, text.data(), text.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(text.size()));
  }
  std::string Read(size_t offset, size_t size) {
    std::string text(size, '\0');
    EXPECT_EQ(::pread(fd_, text.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    return text;
  }
  const std::string& key() const { return key_; }

 private:
  const std::string key_;
  int fd_ = -1;
};

SystemRegionSpec Spec(const Object& object, uint64_t byte_size, uint64_t offset = 0) {
  return {.name = "r", .key = object.key(), .offset = offset, .byte_size = byte_size};
}

std::string ErrorOf(const base::Status& status) { return std::string(status.message()); }

size_t Count(const RegionTable& table) {
  return table.ReadStatus(RegionKind::kSystem, "").value().size();
}

TEST(RegionTable, AllowsOnlyStatusRequestsWithoutPermission) {
  RegionTable table(false);
  const Object object(64);
  constexpr const char* kWhy =
      "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to "
      "enable.";
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 64))), kWhy);
  EXPECT_EQ(ErrorOf(table.RegisterCuda({.name = "c", .handle = {}, .device = 0, .byte_size = 1})),
            kWhy);
  EXPECT_EQ(ErrorOf(table.Unregister(RegionKind::kSystem, "")), kWhy);
  EXPECT_EQ(table.Unregister(RegionKind::kCuda, "x").code(), StatusCode::kUnsupported);
  EXPECT_EQ(Count(table), 0u);
  EXPECT_EQ(ErrorOf(table.Use("r", 0, 1).status()), "Unable to find shared memory region: 'r'");
}

TEST(RegionTable, UsesTheMemoryOfTheObjectItself) {
  RegionTable table(true);
  Object object(8192);
  object.Write(4096 + 5, "hello");
  ASSERT_TRUE(table.RegisterSystem(Spec(object, 4096, 4096)).ok());
  {
    const RegionUse use = table.Use("r", 5, 5).value();
    EXPECT_EQ(std::memcmp(use.data(), "hello", 5), 0);
    ASSERT_TRUE(use.Write(reinterpret_cast<const std::byte*>("HELLO"), 5).ok());
  }
  EXPECT_EQ(object.Read(4096 + 5, 5), "HELLO");
  const RegionStatus status = table.ReadStatus(RegionKind::kSystem, "r").value().at(0);
  EXPECT_EQ(status.name, "r");
  EXPECT_EQ(status.key, object.key());
  EXPECT_EQ(status.offset, 4096u);
  EXPECT_EQ(status.byte_size, 4096u);
}

// S07: a region lies within its object, whatever the sum of its offset and size.
TEST(RegionTable, S07RefusesRegionsThatTheObjectDoesNotHold) {
  RegionTable table(true);
  const Object object(64);
  constexpr const char* kWhy = "failed to register shared memory region 'r': invalid args";
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 65))), kWhy);
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 64, 1))), kWhy);
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 1, 64))), kWhy);
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 0, 65))), kWhy);
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, UINT64_MAX, 2))), kWhy);
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 64, UINT64_MAX - 63))), kWhy);
  // These lie within the object but cannot be mapped: no bytes, or an offset that is not at a page.
  EXPECT_EQ(ErrorOf(table.RegisterSystem(Spec(object, 0))),
            "failed to register shared memory region 'r': unable to process address spaceInvalid "
            "argument");
  EXPECT_EQ(table.RegisterSystem(Spec(object, 32, 16)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Count(table), 0u);
}

TEST(RegionTable, RefusesNamesThatAreTakenAndKeysThatAreNotThere) {
  RegionTable table(true);
  const Object object(64);
  ASSERT_TRUE(table.RegisterSystem(Spec(object, 64)).ok());
  const base::Status twice = table.RegisterSystem(Spec(object, 32));
  EXPECT_EQ(twice.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrorOf(twice), "shared memory region 'r' already in manager");
  const base::Status missing =
      table.RegisterSystem({.name = "n", .key = "/nereid_no_such_key", .byte_size = 1});
  EXPECT_EQ(missing.code(), StatusCode::kInternal);
  EXPECT_EQ(ErrorOf(missing), "Unable to open shared memory region: '/nereid_no_such_key'");
}

// S09: clients cannot register the objects of the Python backend.
TEST(RegionTable, S09RefusesReservedKeys) {
  RegionTable table(true);
  for (const std::string slashes : {"", "/", "///"}) {
    const std::string key = slashes + "triton_python_backend_shm_region_1";
    EXPECT_EQ(ErrorOf(table.RegisterSystem({.name = "r", .key = key, .byte_size = 1})),
              "cannot register shared memory region 'r' with key '" + key +
                  "' as the key contains the reserved prefix "
                  "'triton_python_backend_shm_region_'");
  }
  for (const std::string key : {"", "/", "///"}) {
    EXPECT_EQ(ErrorOf(table.RegisterSystem({.name = "r", .key = key, .byte_size = 1})),
              "cannot register shared memory region 'r' - invalid shm key '" + key + "'");
  }
}

// S07: a request uses only memory within a registered region.
TEST(RegionTable, S07RefusesUsesBeyondTheRegion) {
  RegionTable table(true);
  const Object object(8192);
  ASSERT_TRUE(table.RegisterSystem(Spec(object, 64)).ok());
  const auto error = [&table](uint64_t offset, uint64_t size) {
    return ErrorOf(table.Use("r", offset, size).status());
  };
  EXPECT_EQ(error(0, 64), "");
  EXPECT_EQ(error(63, 1), "");
  EXPECT_EQ(error(64, 0), "Invalid offset for shared memory region: 'r'");
  EXPECT_EQ(error(UINT64_MAX - 31, 64), "Invalid offset for shared memory region: 'r'");
  EXPECT_EQ(error(1, 64), "Invalid offset + byte size for shared memory region: 'r'");
  EXPECT_EQ(error(0, UINT64_MAX), "Invalid offset + byte size for shared memory region: 'r'");
  EXPECT_EQ(error(32, UINT64_MAX - 31),
            "Integer overflow detected: byte_size (18446744073709551584) + offset (32) exceeds "
            "maximum value (18446744073709551615) for region 'r'");
  EXPECT_EQ(ErrorOf(table.Use("other", 0, 1).status()),
            "Unable to find shared memory region: 'other'");
}

// S08: a region in use is unregistered after its last use, not before.
TEST(RegionTable, S08KeepsARegionThatIsInUse) {
  RegionTable table(true);
  Object object(64);
  ASSERT_TRUE(table.RegisterSystem(Spec(object, 64)).ok());
  std::optional<RegionUse> first = table.Use("r", 0, 64).value();
  ASSERT_TRUE(table.Unregister(RegionKind::kSystem, "").ok());
  EXPECT_EQ(Count(table), 1u);
  EXPECT_EQ(table.RegisterSystem(Spec(object, 64)).code(), StatusCode::kAlreadyExists);
  std::optional<RegionUse> second = table.Use("r", 0, 64).value();
  first.reset();
  EXPECT_EQ(Count(table), 1u);
  std::memcpy(second->data(), "still", 5);
  EXPECT_EQ(object.Read(0, 5), "still");
  second.reset();
  EXPECT_EQ(Count(table), 0u);
  EXPECT_TRUE(table.RegisterSystem(Spec(object, 64)).ok());
}

TEST(RegionTable, UnregistersOneOrAllOfAKind) {
  RegionTable table(true);
  const Object object(64);
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(table.RegisterSystem({.name = name, .key = object.key(), .byte_size = 64}).ok());
  }
  EXPECT_TRUE(table.Unregister(RegionKind::kSystem, "never").ok());
  EXPECT_TRUE(table.Unregister(RegionKind::kCuda, "b").ok());
  EXPECT_TRUE(table.Unregister(RegionKind::kCuda, "").ok());
  EXPECT_EQ(Count(table), 3u);
  EXPECT_TRUE(table.Unregister(RegionKind::kSystem, "b").ok());
  EXPECT_EQ(Count(table), 2u);
  EXPECT_EQ(ErrorOf(table.ReadStatus(RegionKind::kSystem, "b").status()),
            "Unable to find system shared memory region: 'b'");
  EXPECT_EQ(ErrorOf(table.ReadStatus(RegionKind::kCuda, "b").status()),
            "Unable to find cuda shared memory region: 'b'");
  EXPECT_EQ(ErrorOf(table.ReadStatus(RegionKind::kCuda, "a").status()),
            "The region named 'a' is registered as system shared memory, not CUDA shared memory");
  EXPECT_TRUE(table.Unregister(RegionKind::kSystem, "").ok());
  EXPECT_EQ(Count(table), 0u);
}

// S07: an object that shrinks after it was registered breaks its region, not the process.
TEST(RegionTable, S07SurvivesAnObjectThatShrinks) {
  RegionTable table(true);
  Object object(size_t{4} << 20);
  ASSERT_TRUE(table.RegisterSystem(Spec(object, size_t{4} << 20)).ok());
  RegionUse use = table.Use("r", 0, size_t{4} << 20).value();
  use.data()[123] = std::byte{7};
  object.Resize(0);
  EXPECT_TRUE(use.CheckWhole().ok()) << "nobody has looked yet";
  EXPECT_EQ(use.data()[123], std::byte{0});
  EXPECT_THAT(ErrorOf(use.CheckWhole()), HasSubstr("'r' has lost its memory"));
  std::memset(use.data(), 1, use.size());  // the whole range can be accessed
  EXPECT_THAT(ErrorOf(table.Use("r", 0, 1).status()), HasSubstr("'r' has lost its memory"));

  // Another region of the same object has its own mapping and its own state.
  object.Resize(4096);
  ASSERT_TRUE(table.RegisterSystem({.name = "again", .key = object.key(), .byte_size = 4096}).ok());
  EXPECT_TRUE(table.Use("again", 0, 4096).value().CheckWhole().ok());
}

TEST(RegionTable, S07SurvivesManyThreadsInAnObjectThatShrinks) {
  constexpr size_t kSize = size_t{1} << 20;
  RegionTable table(true);
  Object object(kSize);
  for (int round = 0; round < 20; ++round) {
    object.Resize(kSize);
    ASSERT_TRUE(table.RegisterSystem(Spec(object, kSize)).ok());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([use = table.Use("r", 0, kSize).value()] {
        std::vector<std::byte> copy(kSize);
        while (use.CheckWhole().ok()) EXPECT_TRUE(use.Read(copy.data()).ok());
      });
    }
    object.Resize(4096);
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    ASSERT_TRUE(table.Unregister(RegionKind::kSystem, "r").ok());
    EXPECT_EQ(Count(table), 0u);
  }
}

// A SIGBUS that has nothing to do with regions ends the process, as it should.
TEST(RegionTableDeathTest, LeavesOtherBusErrorsAlone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        RegionTable table(true);
        Object object(4096);
        if (!table.RegisterSystem(Spec(object, 4096)).ok()) std::exit(0);
        ::shm_unlink(object.key().c_str());  // the process dies before ~Object could do it
        const int fd = ::memfd_create("other", 0);
        if (::ftruncate(fd, 4096) != 0) std::exit(0);
        auto* const data = static_cast<volatile char*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        if (::ftruncate(fd, 0) != 0) std::exit(0);
        data[0] = 1;
      },
      "");
}

TEST(RegionTable, StormOfRegistrationsAndUses) {
  RegionTable table(true);
  const Object object(4096);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&table, &is_over] {
      while (!is_over.load()) {
        base::Result<RegionUse> use = table.Use("r", 0, 4096);
        if (use.ok()) {
          EXPECT_EQ(use->data()[100], std::byte{0});
        }
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    const base::Status status = table.RegisterSystem(Spec(object, 4096));
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kAlreadyExists);
    EXPECT_TRUE(table.Unregister(RegionKind::kSystem, "r").ok());
  }
  is_over.store(true);
  for (std::thread& user : users) user.join();
  EXPECT_EQ(Count(table), 0u);
}

}  // namespace
}  // namespace nereid::memory
