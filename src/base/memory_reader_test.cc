// SPDX-License-Identifier: Apache-2.0
#include "base/memory_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

TEST(MemoryReader, CopiesWhatIsThere) {
  const MemoryReader reader;
  const std::string text = "some text";
  std::string copy(text.size(), ' ');
  EXPECT_TRUE(reader.Read(copy.data(), text.data(), text.size()));
  EXPECT_EQ(copy, text);
}

TEST(MemoryReader, SaysThatMemoryIsGoneAndThenReadsOther) {
  const MemoryReader reader;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  char* const memory = static_cast<char*>(
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  memory[page - 1] = 'x';
  // As good as gone. Were it really given back, another thread could get it before it is read.
  ASSERT_EQ(::mprotect(memory + page, page, PROT_NONE), 0);
  std::array<char, 16> copy{};
  EXPECT_FALSE(reader.Read(copy.data(), memory + page, 1));
  EXPECT_FALSE(reader.Read(copy.data(), memory + page - 8, copy.size()));  // half of it is gone
  EXPECT_FALSE(reader.Read(copy.data(), nullptr, 1));
  EXPECT_TRUE(reader.Read(copy.data(), memory + page - 1, 1));
  EXPECT_EQ(copy[0], 'x');
  ::munmap(memory, 2 * page);
}

}  // namespace
}  // namespace nereid::base
