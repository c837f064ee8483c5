// SPDX-License-Identifier: Apache-2.0
#include "checksum_agent/file_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace nereid::checksum_agent {
namespace {

class AFile : public testing::Test {
 protected:
  AFile() {
    std::string path = (std::filesystem::temp_directory_path() / "checksum-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
    std::filesystem::create_directories(folder_ + "/1");
    std::ofstream(folder_ + "/1/model.bin") << "hello world";
  }
  ~AFile() override { std::filesystem::remove_all(folder_); }

  // Returns the error's text; empty for success.
  std::string Check(std::string_view key, std::string_view expected) {
    const backend::Error error = CheckFile(folder_, key, expected);
    return error.message();
  }

  std::string folder_;
};

constexpr char kHash[] = "5eb63bbbe01eeed093cb22bb8f5acdc3";

TEST_F(AFile, WithItsChecksumPasses) {
  EXPECT_EQ(Check("MD5:1/model.bin", kHash), "");
  EXPECT_EQ(Check("md5:1/../1/model.bin", kHash), "");
}

TEST_F(AFile, WithAnotherChecksumIsNamed) {
  EXPECT_EQ(
      Check("MD5:1/model.bin", "invalid_checksum"),
      std::string("Mismatched MD5 hash for file 1/model.bin, expect: invalid_checksum, got: ") +
          kHash);
}

TEST_F(AFile, ThatIsMissingIsNamed) {
  EXPECT_EQ(Check("MD5:2/model.bin", kHash),
            "failed to open text file for read 2/model.bin: No such file or directory");
}

TEST_F(AFile, ThatIsAPipeIsNotRead) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(Check("MD5:pipe", kHash), "failed to open text file for read pipe: not a regular file");
}

TEST_F(AFile, NeedsAKeyThatNamesAlgorithmAndPath) {
  EXPECT_EQ(Check("1/model.bin", kHash), "failed to parse key: 1/model.bin");
  EXPECT_EQ(Check("CRC:1/model.bin", kHash), "Unsupported checksum algorithm: CRC");
}

// S02: a configuration must not reach files beside the model's.
TEST_F(AFile, OutsideTheModelIsNotRead) {
  for (const char* path : {"../x", "1/../../x", "/etc/hostname"}) {
    EXPECT_EQ(Check(std::string("MD5:") + path, kHash),
              std::string("file path '") + path + "' is outside model directory");
  }
}

}  // namespace
}  // namespace nereid::checksum_agent
