// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/package.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "pytorch_backend/zip_file.h"

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;
using Files = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kFolder = "p/data/aotinductor/model/";

std::string Little(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

std::string Deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 100, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

// A whole archive. `size_in_directory` is what the directory says of each file, if it lies.
std::string Zip(const Files& files, bool compresses = false, int64_t size_in_directory = -1) {
  std::string archive;
  std::string directory;
  for (const auto& [name, text] : files) {
    const std::string data = compresses ? Deflated(text) : text;
    const uint64_t size =
        size_in_directory < 0 ? text.size() : static_cast<uint64_t>(size_in_directory);
    const std::string common = Little(compresses ? 8 : 0, 2) + Little(0, 8) +
                               Little(data.size(), 4) + Little(size, 4) + Little(name.size(), 2) +
                               Little(0, 2);
    directory += "PK\x01\x02" + std::string(6, '\0') + common + std::string(10, '\0') +
                 Little(archive.size(), 4) + name;
    archive += "PK\x03\x04" + std::string(4, '\0') + common + name + data;
  }
  return archive + directory + "PK\x05\x06" + std::string(4, '\0') + Little(files.size(), 2) +
         Little(files.size(), 2) + Little(directory.size(), 4) + Little(archive.size(), 4) +
         Little(0, 2);
}

// A shared library of this machine, as far as its header says.
std::string Library(size_t size = 200'000) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  self.read(reinterpret_cast<char*>(&header), sizeof(header));
  header.e_type = ET_DYN;
  header.e_phoff = sizeof(header);
  header.e_phnum = 1;
  Elf64_Phdr part{};
  part.p_type = PT_LOAD;
  part.p_filesz = size;
  std::string library(reinterpret_cast<const char*>(&header), sizeof(header));
  library.append(reinterpret_cast<const char*>(&part), sizeof(part));
  library.resize(size, 'x');
  return library;
}

Files GoodFiles(const std::string& metadata = R"({"AOTI_DEVICE_KEY": "cpu"})") {
  return {{kFolder + std::string("a.wrapper.so"), Library()},
          {kFolder + std::string("a.wrapper.cpp"), "the source"},
          {kFolder + std::string("a.wrapper_metadata.json"), metadata},
          {"p/archive_format", "pt2"}};
}

class PackageTest : public ::testing::Test {
 protected:
  PackageTest() { std::filesystem::create_directories(folder_); }
  ~PackageTest() override { std::filesystem::remove_all(folder_); }

  backend::Result<Package> Read(const std::string& content) {
    const std::string path = folder_ + "/model.pt2";
    std::ofstream(path, std::ios::binary) << content;
    return Package::Read(path);
  }
  // The error of reading and unpacking; empty if both work.
  std::string Load(const std::string& content) {
    auto package = Read(content);
    if (!package.ok()) return package.TakeError().message();
    return package.value().Unpack(folder_ + "/out").message();
  }
  std::string MachineError(const std::string& metadata, std::string_view flags) {
    auto package = Read(Zip(GoodFiles(metadata)));
    EXPECT_TRUE(package.ok());
    return package.ok() ? package.value().CheckMachine(flags).message() : "";
  }

  std::string DeviceError(const std::string& metadata, const Device& device) {
    auto package = Read(Zip(GoodFiles(metadata)));
    EXPECT_TRUE(package.ok());
    return package.ok() ? package.value().CheckDevice(device).message() : "";
  }

  const std::string folder_ = ::testing::TempDir() + "/package_" +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(PackageTest, UnpacksStoredAndCompressedFilesBelowTheFolder) {
  for (const bool compresses : {false, true}) {
    EXPECT_EQ(Load(Zip(GoodFiles(), compresses)), "");
    const std::string library = folder_ + "/out/data/aotinductor/model/a.wrapper.so";
    EXPECT_EQ(std::filesystem::file_size(library), 200'000U);
    // Sources are not unpacked: nothing must compile them.
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/out/data/aotinductor/model/a.wrapper.cpp"));
  }
}

TEST_F(PackageTest, ReadsMetadataAndSource) {
  auto package = Read(Zip(GoodFiles()));
  ASSERT_TRUE(package.ok());
  EXPECT_EQ(package.value().model, "model");
  EXPECT_EQ(package.value().source, "the source");
  EXPECT_EQ(package.value().metadata.at("AOTI_DEVICE_KEY"), "cpu");
}

TEST_F(PackageTest, RefusesFilesOutsideOfTheArchive) {
  for (const char* const name :
       {"../../etc/x.so", "p/data/../../x.so", "/etc/x.so", "p\\..\\x.so", "p//x.so", "./x.so"}) {
    Files files = GoodFiles();
    files.emplace_back(name, "x");
    EXPECT_THAT(Load(Zip(files)), HasSubstr("written outside of its folder")) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(PackageTest, RefusesFilesThatAreLargerThanTheDirectorySays) {
  EXPECT_THAT(Load(Zip(GoodFiles(), true, 5)), HasSubstr("damaged or cut off"));
  EXPECT_THAT(Load(Zip(GoodFiles(), true, 300'000)), HasSubstr("damaged or cut off"));
  EXPECT_THAT(Load(Zip(GoodFiles(), false, 5)), HasSubstr("damaged or cut off"));
}

TEST_F(PackageTest, RefusesAnArchiveWithDamageAnywhereWithoutHarm) {
  const std::string good = Zip({{kFolder + std::string("a.so"), Library(4000)},
                                {kFolder + std::string("a.wrapper_metadata.json"), "{}"}},
                               true);
  ASSERT_EQ(Load(good), "");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    static_cast<void>(Load(damaged));
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(Load(good.substr(0, size)), "");
  }
}

TEST_F(PackageTest, RefusesALibraryThatIsCutOffOrNone) {
  const auto load = [&](std::string library) {
    return Load(Zip({{kFolder + std::string("a.so"), std::move(library)}}));
  };
  EXPECT_EQ(load(Library()), "");
  for (const size_t size : {70, 120, 4000, 199'999}) {
    EXPECT_THAT(load(Library().substr(0, size)), HasSubstr("is damaged: its library is cut off"));
  }
  EXPECT_THAT(load("text"), HasSubstr("is damaged: its library is no shared library"));
  std::string other = Library();
  other[18] = static_cast<char>(other[18] ^ 1);
  EXPECT_THAT(load(other), HasSubstr("compiled for another processor"));
}

TEST_F(PackageTest, RefusesAPackageOfSources) {
  EXPECT_THAT(Load(Zip({{kFolder + std::string("a.wrapper.cpp"), "int main() {}"}})),
              HasSubstr("compile it without the option aot_inductor.package_cpp_only"));
}

TEST_F(PackageTest, TakesTheOnlyModelAndRefusesToChoose) {
  const Files one = {{"p/data/aotinductor/net/a.so", "x"}};
  auto package = Read(Zip(one));
  ASSERT_TRUE(package.ok());
  EXPECT_EQ(package.value().model, "net");
  EXPECT_THAT(Load(Zip({{"p/data/aotinductor/a/a.so", "x"}, {"p/data/aotinductor/b/b.so", "x"}})),
              HasSubstr("has several models (a, b): call the one to serve 'model'"));
}

TEST_F(PackageTest, RefusesWhatThisMachineCannotRun) {
  const std::string cpu = R"({"AOTI_CPU_ISA": "AVX512 AVX512_VNNI AMX_TILE"})";
  constexpr std::string_view kAll =
      " fma avx512f avx512dq avx512vl avx512bw avx512_vnni amx_tile amx_bf16 amx_int8 ";
  EXPECT_EQ(MachineError(cpu, kAll), "");
  EXPECT_THAT(MachineError(cpu, " fma avx512f avx512dq avx512vl avx512bw avx512_vnni "),
              HasSubstr("was compiled for a processor with AVX512 AVX512_VNNI AMX_TILE, and this "
                        "one has no AMX_TILE: compile it again"));
  EXPECT_THAT(MachineError(cpu, " sse4_2 "), HasSubstr("has no AVX512:"));
  EXPECT_EQ(MachineError(R"({"AOTI_CPU_ISA": "INVALID_VEC_ISA"})", " "), "");
  EXPECT_THAT(MachineError(R"({"AOTI_PLATFORM": "darwin", "AOTI_MACHINE": "arm64"})", kAll),
              HasSubstr("was compiled for darwin on arm64"));
}

TEST_F(PackageTest, RefusesDevicesThatItWasNotCompiledFor) {
  const Device cpu;
  const Device as_saved{.kind = Device::Kind::kAsSaved};
  const Device gpu{.kind = Device::Kind::kGpu, .index = 1};
  for (const char* const metadata : {"{}", R"({"AOTI_DEVICE_KEY": "cpu"})"}) {
    EXPECT_EQ(DeviceError(metadata, cpu), "");
    EXPECT_EQ(DeviceError(metadata, as_saved), "");
    EXPECT_THAT(DeviceError(metadata, gpu),
                HasSubstr("was compiled for the CPU, and an instance is to run on GPU 1: use "
                          "KIND_CPU"));
  }
  for (const Device& device : {cpu, as_saved, gpu}) {
    EXPECT_THAT(DeviceError(R"({"AOTI_DEVICE_KEY": "cuda"})", device),
                HasSubstr("was compiled for the device 'cuda', and compiled models are served on "
                          "the CPU only"));
  }
}

TEST(IsInsideArchive, AcceptsPlainPathsOnly) {
  for (const char* const name : {"a", "a/b.so", "a/b/", "..a/b..", "a/...b"}) {
    EXPECT_TRUE(IsInsideArchive(name)) << name;
  }
  for (const char* const name : {"", "/a", "..", "a/..", "../a", "a//b", "a/./b", "a\\b"}) {
    EXPECT_FALSE(IsInsideArchive(name)) << name;
  }
}

}  // namespace
}  // namespace nereid::pytorch
