// SPDX-License-Identifier: Apache-2.0
#include "memory/gpus.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/region_table.h"

namespace nereid::memory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Placement kPinned{.type = MemoryType::kCpuPinned};
constexpr Placement kSecondGpu{.type = MemoryType::kGpu, .id = 1};

GpuOptions Options() {
  return {.driver = NEREID_FAKE_CUDA, .pinned_pool_bytes = 4096, .gpu_pool_bytes = 8192};
}

std::string MessageOf(const base::Status& status) { return std::string(status.message()); }

TEST(Gpus, WithoutADriverThereAreNone) {
  Gpus gpus({.driver = "/no/such/libcuda.so.1"});
  EXPECT_EQ(gpus.driver(), nullptr);
  EXPECT_TRUE(gpus.devices().empty());
  gpus.Prepare(0);
  EXPECT_EQ(MessageOf(gpus.Allocate(1, kPinned).status()),
            "Pinned memory allocation not supported");
  EXPECT_EQ(MessageOf(gpus.Allocate(1, kSecondGpu).status()),
            "GPU memory allocation not supported");
  EXPECT_FALSE(gpus.TakeBlock(1, 0));
  char to[4] = {};
  EXPECT_TRUE(gpus.Copy(to, {}, "abc", {}, 4).ok());
  EXPECT_STREQ(to, "abc");
  EXPECT_FALSE(gpus.Copy(to, kSecondGpu, "abc", {}, 4).ok());
}

TEST(Gpus, AreThoseWithTheComputeCapability) {
  GpuOptions options = Options();
  EXPECT_THAT(Gpus(options).devices(), ElementsAre(0, 1));
  options.min_compute_capability = 9.0;
  EXPECT_THAT(Gpus(options).devices(), ElementsAre(0, 1));
  options.min_compute_capability = 10;
  Gpus none(options);
  EXPECT_TRUE(none.devices().empty());
  EXPECT_EQ(MessageOf(none.Allocate(1, kSecondGpu).status()), "there is no GPU 1");
}

TEST(Gpus, CopyBetweenHostAndDevices) {
  Gpus gpus(Options());
  const GpuBlock first = gpus.TakeBlock(6, 0);
  const GpuBlock second = gpus.TakeBlock(6, 1);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(gpus.Copy(first.data(), first.where(), "hello", {}, 6).ok());
  ASSERT_TRUE(gpus.Copy(second.data(), second.where(), first.data(), first.where(), 6).ok());
  char text[6] = {};
  ASSERT_TRUE(gpus.Copy(text, {}, second.data(), second.where(), 6).ok());
  EXPECT_STREQ(text, "hello");
  EXPECT_EQ(MessageOf(gpus.Copy(text, {}, second.data(), second.where(), 1 << 20)),
            "invalid argument");
}

TEST(Gpus, PoolsEndWhereTheyWereToldTo) {
  Gpus gpus(Options());
  const auto all = gpus.Allocate(8192, kSecondGpu);
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(MessageOf(gpus.Allocate(1, kSecondGpu).status()),
              HasSubstr("Failed to allocate CUDA memory with byte size 1 on GPU 1"));
  EXPECT_TRUE(gpus.Free(*all, kSecondGpu).ok());
  EXPECT_TRUE(gpus.TakeBlock(8192, 1));
  EXPECT_FALSE(gpus.TakeBlock(8193, 1));
  EXPECT_FALSE(gpus.Free(*all, kSecondGpu).ok());

  const auto pinned = gpus.Allocate(4000, kPinned);
  ASSERT_TRUE(pinned.ok());
  std::memset(*pinned, 1, 4000);
  EXPECT_EQ(gpus.UsedPinnedBytes(), 4096u);
  EXPECT_THAT(MessageOf(gpus.Allocate(512, kPinned).status()),
              HasSubstr("failed to allocate pinned system memory"));
  EXPECT_TRUE(gpus.Free(*pinned, kPinned).ok());
  EXPECT_EQ(gpus.UsedPinnedBytes(), 0u);
}

TEST(Gpus, APoolCanBeSwitchedOffAndSetForOneDevice) {
  GpuOptions options = Options();
  options.pinned_pool_bytes = 0;
  options.gpu_pool_bytes_by_device = {{0, 0}, {1, 512}};
  Gpus gpus(options);
  EXPECT_EQ(MessageOf(gpus.Allocate(1, kPinned).status()),
            "failed to allocate pinned system memory: no pinned memory pool");
  EXPECT_EQ(MessageOf(gpus.Allocate(1, {.type = MemoryType::kGpu, .id = 0}).status()),
            "GPU 0 has no preallocated CUDA memory");
  EXPECT_TRUE(gpus.TakeBlock(512, 1));
  EXPECT_FALSE(gpus.TakeBlock(513, 1));
}

TEST(Gpus, APoolThatTheDriverRefusesSaysWhy) {
  GpuOptions options = Options();
  options.gpu_pool_bytes = uint64_t{2} << 30;  // more than the fake GPU has
  Gpus gpus(options);
  gpus.Prepare(1);
  EXPECT_EQ(MessageOf(gpus.Allocate(1, kSecondGpu).status()),
            "failed to allocate CUDA memory of GPU 1: out of memory");
  EXPECT_TRUE(gpus.Allocate(1, kPinned).ok());
}

TEST(Gpus, LookForFailuresOnlyWhereInstancesAre) {
  Gpus gpus(Options());
  gpus.LookForFailures();
  EXPECT_FALSE(gpus.has_failed());
  gpus.Prepare(0);
  gpus.LookForFailures();
  EXPECT_FALSE(gpus.has_failed());
  EXPECT_TRUE(gpus.Failures().empty());
}

TEST(Gpus, ManyThreadsGetOnePoolAndPiecesOfTheirOwn) {
  GpuOptions options = Options();
  options.gpu_pool_bytes = 1 << 20;
  Gpus gpus(options);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&gpus, &wrong, t] {
      gpus.Prepare(0);
      for (int i = 0; i < 200; ++i) {
        const GpuBlock block = gpus.TakeBlock(1000, 0);
        const int written = t * 1000 + i;
        int read = -1;
        const bool is_done = block &&
                             gpus.Copy(block.data(), block.where(), &written, {}, 4).ok() &&
                             gpus.Copy(&read, {}, block.data(), block.where(), 4).ok();
        if (!is_done || read != written) ++wrong[static_cast<size_t>(t)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

// The driver of a client, which shares memory of its own.
class Client {
 public:
  Client() : driver_(CudaDriver::Open(NEREID_FAKE_CUDA)) {
    address_ = driver_->Allocate(100, 1).value();
    const auto library = base::SharedLibrary::Open(NEREID_FAKE_CUDA).value();
    library->Find<int(char*, CudaAddress)>("cuIpcGetMemHandle")(handle_.bytes.data(), address_);
  }
  ~Client() { EXPECT_TRUE(driver_->Free(address_, 1).ok()); }
  void Write(const char* text) {
    EXPECT_TRUE(driver_->Copy(FromCudaAddress(address_), text, std::strlen(text) + 1, 1).ok());
  }
  std::string Read() {
    char text[100] = {};
    EXPECT_TRUE(driver_->Copy(text, FromCudaAddress(address_), 100, 1).ok());
    return text;
  }
  CudaRegionSpec Spec(uint64_t byte_size) {
    return {.name = "r", .handle = handle_, .device = 1, .byte_size = byte_size};
  }

 private:
  std::unique_ptr<CudaDriver> driver_;
  CudaAddress address_ = 0;
  CudaIpcHandle handle_{};
};

TEST(CudaRegions, AreReadAndWrittenWhereTheClientHasThem) {
  Gpus gpus(Options());
  RegionTable table(true, false, &gpus);
  Client client;
  ASSERT_TRUE(table.RegisterCuda(client.Spec(100)).ok());
  client.Write("from the client");
  {
    const RegionUse use = table.Use("r", 5, 11).value();
    EXPECT_EQ(use.region().where(), kSecondGpu);
    EXPECT_NE(use.region().cuda_ipc_handle(), nullptr);
    char text[12] = {};
    ASSERT_TRUE(use.Read(reinterpret_cast<std::byte*>(text)).ok());
    EXPECT_STREQ(text, "the client\0");
    ASSERT_TRUE(use.Write(reinterpret_cast<const std::byte*>("the server"), 11).ok());
  }
  EXPECT_EQ(client.Read(), "from the server");
  const RegionStatus status = table.ReadStatus(RegionKind::kCuda, "r").value().front();
  EXPECT_EQ(status.device, 1);
  EXPECT_EQ(status.byte_size, 100u);
  EXPECT_TRUE(table.Unregister(RegionKind::kCuda, "r").ok());
}

TEST(CudaRegions, ThatDoNotFitAreRefused) {
  Gpus gpus(Options());
  RegionTable table(true, false, &gpus);
  Client client;
  EXPECT_EQ(MessageOf(table.RegisterCuda(client.Spec(101))),
            "failed to register shared memory region 'r': invalid args");
  CudaRegionSpec wrong = client.Spec(100);
  wrong.handle = {};
  EXPECT_EQ(MessageOf(table.RegisterCuda(wrong)),
            "failed to register shared memory region: invalid args");
  wrong = client.Spec(100);
  wrong.device = 7;
  EXPECT_FALSE(table.RegisterCuda(wrong).ok());
}

}  // namespace
}  // namespace nereid::memory
