// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "pytorch_backend/zip_directory.h"

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;

std::string Little(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

// An archive of empty files with these names and sizes in its directory.
std::string Zip(const std::vector<std::pair<std::string, uint32_t>>& files) {
  std::string archive = "PK\x03\x04" + std::string(26, '\0');
  std::string directory;
  for (const auto& [name, size] : files) {
    directory += "PK\x01\x02" + std::string(16, '\0') + Little(10, 4) + Little(size, 4) +
                 Little(name.size(), 2) + std::string(16, '\0') + name;
  }
  return archive + directory + "PK\x05\x06" + std::string(4, '\0') + Little(files.size(), 2) +
         Little(files.size(), 2) + Little(directory.size(), 4) + Little(archive.size(), 4) +
         Little(0, 2);
}

const std::string& TorchScript() {
  static const std::string archive =
      Zip({{"m/data.pkl", 9}, {"m/code/__torch__.py", 9}, {"m/constants.pkl", 4}});
  return archive;
}

class ModelFile : public ::testing::Test {
 protected:
  ~ModelFile() override { std::filesystem::remove(path_); }

  std::string Write(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }
  std::string Script(const std::string& content) {
    const Error error = CheckTorchScriptFile(Write(content));
    return error.message();
  }
  using Error = backend::Error;

 private:
  const std::string path_ = ::testing::TempDir() + "/" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".pt";
};

TEST_F(ModelFile, AcceptsTorchScript) { EXPECT_EQ(Script(TorchScript()), ""); }

TEST_F(ModelFile, SaysWhatAnotherFileIsAndWhatToDo) {
  EXPECT_THAT(Script(""), HasSubstr("is empty"));
  EXPECT_THAT(Script("\x80\x02moduleq"), HasSubstr("saved by torch.save before PyTorch 1.6"));
  EXPECT_THAT(Script("\x08\x08\x12\x07pytorch"), HasSubstr("an ONNX model"));
  EXPECT_THAT(Script("<!DOCTYPE html>"), HasSubstr("a web page"));
  EXPECT_THAT(Script("version https://git-lfs.github.com/spec/v1"), HasSubstr("git lfs pull"));
  EXPECT_THAT(Script(std::string(4096, '\0')), HasSubstr("not a file of PyTorch"));
  EXPECT_THAT(Script(std::string(4096, '\0')), HasSubstr("torch.jit.script(model).save"));
}

TEST_F(ModelFile, TellsTheArchivesOfPyTorchApart) {
  EXPECT_THAT(Script(Zip({{"m/data.pkl", 9}, {"m/data/0", 9}})),
              HasSubstr("an object saved by torch.save, whose code is not in the file"));
  EXPECT_THAT(Script(Zip({{"e/models/model.json", 9}})), HasSubstr("an exported program"));
  EXPECT_THAT(Script(Zip({{"p/data/aotinductor/model/x.so", 9}})),
              HasSubstr("compiled by AOTInductor: set platform: \"torch_aoti\""));
  EXPECT_THAT(Script(Zip({{"word/document.xml", 9}})), HasSubstr("without a TorchScript model"));
}

TEST_F(ModelFile, AcceptsOnlyCompiledPackagesForThatPlatform) {
  const auto compiled = [&](const std::string& content) {
    auto entries = ReadCompiledEntries(Write(content));
    return entries.ok() ? std::string() : std::string(entries.TakeError().message());
  };
  EXPECT_EQ(compiled(Zip({{"p/data/aotinductor/model/x.so", 9}})), "");
  EXPECT_THAT(
      compiled(Zip({{"e/models/model.json", 9}})),
      HasSubstr("not compiled: compile the model: torch._inductor.aoti_compile_and_package"));
  EXPECT_THAT(compiled(TorchScript()), HasSubstr("set platform: \"pytorch_libtorch\""));
  EXPECT_THAT(compiled(Zip({{"m/data.pkl", 9}})), HasSubstr("whose code is not in the file"));
  EXPECT_THAT(compiled("<html>"), HasSubstr("a web page"));
}

TEST_F(ModelFile, RefusesAFolder) {
  EXPECT_THAT(CheckTorchScriptFile(::testing::TempDir()).message(), HasSubstr("is a folder"));
}

TEST_F(ModelFile, RefusesAnArchiveAtWhateverPlaceItIsCutOff) {
  for (size_t size = 4; size < TorchScript().size(); ++size) {
    EXPECT_NE(Script(TorchScript().substr(0, size)), "") << size;
  }
}

TEST_F(ModelFile, SurvivesADamagedDirectory) {
  for (size_t at = 30; at < TorchScript().size(); ++at) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string archive = TorchScript();
      archive[at] = value;
      static_cast<void>(ReadZipDirectory(Write(archive)).ok());
    }
  }
}

TEST_F(ModelFile, RefusesAnArchiveThatIsMadeToFillTheMemory) {
  EXPECT_THAT(Script(Zip({{"m/data.pkl", 0xf0000000}, {"m/code/__torch__.py", 9}})),
              HasSubstr("far larger when unpacked"));
}

TEST_F(ModelFile, ReadsSizesOfLargeFiles) {
  // A directory that begins beyond four gigabytes is found by its 64-bit record.
  const std::string start = "PK\x03\x04" + std::string(26, '\0');
  const std::string extra =
      Little(1, 2) + Little(16, 2) + Little(uint64_t{5} << 30, 8) + Little(uint64_t{5} << 30, 8);
  const std::string entry = "PK\x01\x02" + std::string(16, '\0') + Little(0xffffffff, 4) +
                            Little(0xffffffff, 4) + Little(1, 2) + Little(extra.size(), 2) +
                            std::string(14, '\0') + "w" + extra;
  const std::string end64 =
      "PK\x06\x06" + std::string(36, '\0') + Little(entry.size(), 8) + Little(start.size(), 8);
  const std::string locator =
      "PK\x06\x07" + Little(0, 4) + Little(start.size() + entry.size(), 8) + Little(1, 4);
  const std::string end =
      "PK\x05\x06" + std::string(8, '\xff') + std::string(8, '\xff') + Little(0, 2);
  auto entries = ReadZipDirectory(Write(start + entry + end64 + locator + end));
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries.value().size(), 1U);
  EXPECT_EQ(entries.value()[0].size, uint64_t{5} << 30);
  EXPECT_EQ(entries.value()[0].compressed_size, uint64_t{5} << 30);
}

}  // namespace
}  // namespace nereid::pytorch
