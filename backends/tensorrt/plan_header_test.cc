// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/plan_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace nereid::tensorrt {
namespace {

using ::testing::HasSubstr;

// The first bytes of a plan, as in real ones: tag, version of the layout, size of the file,
// version.
std::string Header(const std::string& tag, std::string_view version, char size = 0) {
  return tag + std::string(12, '\0') + size + std::string(7, '\0') + std::string(version) +
         std::string(36, '\0');
}

std::string ErrorOf(const std::string& start) {
  auto header = ParsePlanHeader(start, start.size());
  return header.ok() ? "" : header.TakeError().message();
}

TEST(PlanHeader, SaysWhichTensorRtMadeThePlan) {
  const std::string start = Header("ftrt", "\x0a\x03\x01\x1a", 'd');
  auto header = ParsePlanHeader(start, 99);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header.value().version(), "10.3.1.26");
  EXPECT_EQ(header.value().major, 10);
  EXPECT_EQ(header.value().file_size, 99U);
  EXPECT_EQ(header.value().declared_size, 100U);
}

TEST(PlanHeader, NumbersBeyond127AreNotNegative) {
  const std::string start = Header("ftrt", "\x0b\x04\xc8\xff");
  auto header = ParsePlanHeader(start, 64);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header.value().version(), "11.4.200.255");
}

TEST(PlanHeader, EnginesOfTensorRtForRtxAreRefusedByName) {
  EXPECT_THAT(ErrorOf(Header("vtrt", "\x01\x07\x01\x74")),
              HasSubstr("made by TensorRT for RTX 1.7.1.116"));
}

TEST(PlanHeader, AHeaderThatIsCutOffIsNotRead) {
  const std::string whole = Header("ftrt", "\x0a\x03\x01\x1a");
  for (size_t size = 4; size < 28; ++size) {
    EXPECT_THAT(ErrorOf(whole.substr(0, size)), HasSubstr("in the middle of its header"));
  }
  EXPECT_EQ(ErrorOf(whole.substr(0, 28)), "");
  EXPECT_THAT(ErrorOf("ft"), HasSubstr("not a plan of TensorRT"));
}

TEST(PlanHeader, FilesOfOthersAreNamed) {
  EXPECT_THAT(ErrorOf(std::string("PK\x03\x04", 4) + "abc"), HasSubstr("zip archive"));
  EXPECT_THAT(ErrorOf("\x08\x07\x12\x04onnx"), HasSubstr("ONNX"));
  EXPECT_THAT(ErrorOf(std::string(64, '\0')), HasSubstr("nothing but zeros"));
  EXPECT_THAT(ErrorOf("hello"), HasSubstr("not a plan of TensorRT"));
}

TEST(PlanHeader, AFolderIsNotAPlan) {
  auto header = ReadPlanHeader("/tmp");
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.TakeError().message(), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace nereid::tensorrt
