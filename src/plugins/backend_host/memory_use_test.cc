// SPDX-License-Identifier: Apache-2.0
#include "backend_host/memory_use.h"

#include <gtest/gtest.h>

#include <vector>

namespace nereid::backend_host {
namespace {

TRITONSERVER_BufferAttributes Use(TRITONSERVER_MemoryType type, int64_t device, size_t bytes) {
  TRITONSERVER_BufferAttributes attributes{};
  attributes.memory_type = type;
  attributes.memory_type_id = device;
  attributes.byte_size = bytes;
  return attributes;
}

base::Result<std::vector<core::MemoryUse>> Read(std::vector<TRITONSERVER_BufferAttributes> list) {
  std::vector<TRITONSERVER_BufferAttributes*> pointers;
  for (TRITONSERVER_BufferAttributes& one : list) pointers.push_back(&one);
  return ToMemoryUse(pointers);
}

TEST(MemoryUse, TellsKindsAndDevicesApartAndTakesTheLastReportOfEach) {
  const auto read = Read({Use(TRITONSERVER_MEMORY_CPU, 0, 10), Use(TRITONSERVER_MEMORY_GPU, 0, 20),
                          Use(TRITONSERVER_MEMORY_GPU, 1, 30), Use(TRITONSERVER_MEMORY_GPU, 0, 5),
                          Use(TRITONSERVER_MEMORY_CPU_PINNED, 0, 0)});
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 4U);
  EXPECT_EQ((*read)[0].bytes, 10U);
  EXPECT_EQ((*read)[1].bytes, 5U);
  EXPECT_EQ((*read)[2].bytes, 30U);
  EXPECT_EQ((*read)[2].where.id, 1);
  EXPECT_EQ((*read)[3].bytes, 0U);
}

TEST(MemoryUse, OfAKindThatDoesNotExistIsRefusedAltogether) {
  const auto unknown = static_cast<TRITONSERVER_MemoryType>(3);
  const auto read = Read({Use(TRITONSERVER_MEMORY_CPU, 0, 10), Use(unknown, 0, 1)});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), base::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Read({})->empty());
}

}  // namespace
}  // namespace nereid::backend_host
