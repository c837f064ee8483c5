// SPDX-License-Identifier: Apache-2.0
#include "object_store/path.h"

#include <gtest/gtest.h>

namespace nereid::object_store {
namespace {

TEST(APath, IsTakenApartAtItsSlashes) {
  std::string_view path = "bucket//a/b";
  EXPECT_EQ(TakeComponent(path), "bucket");
  EXPECT_EQ(path, "a/b");
  EXPECT_EQ(TakeComponent(path), "a");
  EXPECT_EQ(TakeComponent(path), "b");
  EXPECT_EQ(TakeComponent(path), "");
}

TEST(AKey, HasSingleSlashesAndNoneAtItsEnds) {
  EXPECT_EQ(CleanKey("//a//b/c//"), "a/b/c");
  EXPECT_EQ(CleanKey("/"), "");
  EXPECT_EQ(CleanKey(""), "");
}

}  // namespace
}  // namespace nereid::object_store
