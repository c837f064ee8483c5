// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend_kit/testing/test_folder.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {
namespace {

using testing::HasSubstr;

// Writes files into a folder of its own.
class OpenVinoModelFile : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  std::string Refusal(const std::string& name, const std::string& content) {
    auto format = CheckModelFile(Write(name, content));
    return format.ok() ? std::string("accepted") : std::string(format.TakeError().message());
  }

  const backend::TestFolder own_;
  const std::filesystem::path& folder_ = own_.path();
};

// A protobuf field with bytes.
std::string Bytes(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
         content;
}

const std::string kOnnx = "\x08\x08" + Bytes(7, "graph");

TEST_F(OpenVinoModelFile, IsKnownByItsEndingAndContents) {
  EXPECT_EQ(
      CheckModelFile(Write("m.xml", "<?xml version=\"1.0\"?>\n<net name=\"x\">\n</net>\n")).value(),
      ModelFormat::kIr);
  EXPECT_EQ(CheckModelFile(Write("m.onnx", kOnnx)).value(), ModelFormat::kOnnx);
  EXPECT_EQ(CheckModelFile(Write("m.pb", Bytes(1, Bytes(2, "Const")))).value(),
            ModelFormat::kTensorFlow);
  EXPECT_EQ(CheckModelFile(Write("m.tflite", std::string("\x1c\0\0\0TFL3....", 12))).value(),
            ModelFormat::kTensorFlowLite);
}

TEST_F(OpenVinoModelFile, MayBeTheFolderOfASavedModel) {
  Write("saved/saved_model.pb", "\x08\x01" + Bytes(2, "graph"));
  EXPECT_EQ(CheckModelFile((folder_ / "saved").string()).value(), ModelFormat::kTensorFlow);
}

TEST_F(OpenVinoModelFile, IsRefusedAsAFolderOfSomethingElse) {
  Write("other/file", "");
  auto format = CheckModelFile((folder_ / "other").string());
  ASSERT_FALSE(format.ok());
  EXPECT_THAT(format.TakeError().message(), HasSubstr("a folder without saved_model.pb"));
}

TEST_F(OpenVinoModelFile, IsRefusedIfCutOff) {
  EXPECT_THAT(Refusal("m.onnx", kOnnx.substr(0, kOnnx.size() - 1)), HasSubstr("cut off"));
  EXPECT_THAT(Refusal("m.xml", "<?xml version=\"1.0\"?>\n<net name=\"x\">\n<lay"),
              HasSubstr("its end is missing"));
}

TEST_F(OpenVinoModelFile, IsRefusedWithWhatItIs) {
  EXPECT_THAT(Refusal("m.xml", ""), HasSubstr("is empty"));
  EXPECT_THAT(Refusal("m.xml", std::string(1000, '\0')), HasSubstr("nothing but zeros"));
  EXPECT_THAT(Refusal("m.onnx", std::string(1000, '\0')), HasSubstr("nothing but zeros"));
  EXPECT_THAT(Refusal("m.xml", "version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("Git LFS"));
  EXPECT_THAT(Refusal("m.pb", "<!DOCTYPE html><html></html>"), HasSubstr("a web page"));
  EXPECT_THAT(Refusal("m.onnx", "PK\x03\x04 and so on"), HasSubstr("pytorch backend"));
  EXPECT_THAT(Refusal("m.pb", "\x89HDF\r\n"), HasSubstr("HDF5"));
}

TEST_F(OpenVinoModelFile, IsRefusedIfItsNodesAreDamaged) {
  EXPECT_THAT(Refusal("m.pb", Bytes(1, Bytes(2, "Const")) + Bytes(1, "\x07\x07 and more")),
              HasSubstr("damaged"));
}

TEST_F(OpenVinoModelFile, OfAnotherFrameworkIsRefused) {
  EXPECT_THAT(Refusal("m.xml", kOnnx), HasSubstr("another format"));
  EXPECT_THAT(Refusal("m.onnx", Bytes(1, "node")), HasSubstr("is not an ONNX model"));
  EXPECT_THAT(Refusal("m.pt", kOnnx), HasSubstr("has no ending that says its format"));
}

TEST(OpenVinoErrors, AreOneLineWithoutPlacesInSources) {
  EXPECT_EQ(PlainText("Exception from src/inference/src/cpp/core.cpp:92:\n"
                      "Check 'x > 0' failed at src/core/y.cpp:12:\n"
                      "  The input is wrong\n\nin every way\n\n"),
            "The input is wrong in every way");
  EXPECT_EQ(PlainText("Exception from a.cpp:1:\n"), "OpenVINO gives no reason");
}

}  // namespace
}  // namespace nereid::openvino
