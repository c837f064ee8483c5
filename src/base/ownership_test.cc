// SPDX-License-Identifier: Apache-2.0
// The small owners: of a function, a descriptor, a library, a thread.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/arithmetic.h"
#include "base/shared_library.h"
#include "base/thread.h"
#include "base/trim.h"
#include "base/unique_fd.h"
#include "base/unique_function.h"

namespace nereid::base {
namespace {

TEST(UniqueFunction, OwnsWhatCannotBeCopied) {
  auto value = std::make_unique<int>(40);
  UniqueFunction<int(int)> add = [value = std::move(value)](int more) { return *value + more; };
  EXPECT_EQ(add(2), 42);
  UniqueFunction<int(int)> moved = std::move(add);
  EXPECT_FALSE(add);  // NOLINT(bugprone-use-after-move): a moved-from function is empty
  EXPECT_EQ(moved(3), 43);
}

TEST(UniqueFunction, FreesItsCapturesWithItself) {
  const auto watched = std::make_shared<int>(1);
  UniqueFunction<void()> hold = [watched] {};
  EXPECT_EQ(watched.use_count(), 2);
  hold = {};
  EXPECT_EQ(watched.use_count(), 1);
  EXPECT_FALSE(hold);
}

TEST(UniqueFunction, KeepsItsStateBetweenCalls) {
  UniqueFunction<int()> count = [n = 0]() mutable { return ++n; };
  count();
  EXPECT_EQ(count(), 2);
}

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesItsDescriptorOnce) {
  int fd = -1;
  {
    UniqueFd first(::open("/dev/null", O_RDONLY));
    fd = first.get();
    UniqueFd second = std::move(first);
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): it is empty
    EXPECT_EQ(second.get(), fd);
    first = std::move(second);
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(UniqueFd, ClosesWhatItHeldWhenItGetsAnother) {
  UniqueFd held(::open("/dev/null", O_RDONLY));
  const int old = held.get();
  UniqueFd other(::open("/dev/null", O_RDONLY));
  held = std::move(other);
  EXPECT_FALSE(IsOpen(old));
  const int released = held.Release();
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(IsOpen(released));
  ::close(released);
}

TEST(SharedLibrary, FindsItsFunctions) {
  const auto library = SharedLibrary::Open("libc.so.6");
  ASSERT_TRUE(library.ok()) << library.status().message();
  auto* const length = (*library)->Find<size_t(const char*)>("strlen");
  ASSERT_NE(length, nullptr);
  EXPECT_EQ(length("four"), 4u);
  EXPECT_EQ((*library)->FindSymbol("no_such_function"), nullptr);
  EXPECT_EQ((*library)->path(), "libc.so.6");
}

TEST(SharedLibrary, SaysWhyItCannotBeOpened) {
  const auto library = SharedLibrary::Open("/no/such/library.so");
  ASSERT_FALSE(library.ok());
  EXPECT_NE(library.status().message().find("/no/such/library.so"), std::string::npos);
}

TEST(Thread, IsNamedAndJoinedByItsDestructor) {
  std::atomic<bool> has_ended{false};
  std::string name(16, '\0');
  {
    const Thread thread("a name that is too long", [&] {
      pthread_getname_np(pthread_self(), name.data(), name.size());
      has_ended = true;
    });
  }
  EXPECT_TRUE(has_ended);
  EXPECT_STREQ(name.c_str(), "a name that is ");
}

TEST(Thread, CanBeJoinedTwice) {
  Thread thread("t", [] {});
  EXPECT_TRUE(thread.joinable());
  thread.Join();
  thread.Join();
  EXPECT_FALSE(thread.joinable());
}

TEST(CheckedArithmetic, HasNoResultThatDoesNotFit) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  EXPECT_EQ(CheckedAdd<size_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd<size_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMul<size_t>(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(CheckedMul<size_t>(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(CheckedMul<int64_t>(std::numeric_limits<int64_t>::min(), -1), std::nullopt);
  EXPECT_EQ(CheckedAdd<int32_t>(-1, std::numeric_limits<int32_t>::min()), std::nullopt);
}

TEST(Trim, TakesBlanksFromBothEnds) {
  EXPECT_EQ(Trim(" \ta b\t ", " \t"), "a b");
  EXPECT_EQ(Trim(" \t ", " \t"), "");
  EXPECT_EQ(Trim("", " "), "");
  EXPECT_EQ(Trim("xax", "x"), "a");
}

}  // namespace
}  // namespace nereid::base
