// SPDX-License-Identifier: Apache-2.0
#include "cache_host/cache_library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/testing/fakes.h"

namespace nereid::cache_host {
namespace {

using base::StatusCode;
using Settings = std::map<std::string, std::string>;

core::CacheKey Key(char fill) {
  core::CacheKey key;
  std::fill_n(key.text.begin(), core::CacheKey::kSize, fill);
  return key;
}

class CacheLibraryTest : public testing::Test {
 protected:
  std::unique_ptr<CacheLibrary> Load(const std::string& name, Settings settings,
                                     const std::string& directory = TEST_CACHE_DIRECTORY) {
    auto loaded = CacheLibrary::Load({directory, name, std::move(settings)});
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return loaded.ok() ? std::move(loaded).value() : nullptr;
  }

  // Makes a response with OUTPUT0 of these values and one parameter of each kind.
  core::ResponsePtr MakeResponse(std::vector<float> values) {
    core::ResponsePtr response = core::Response::Create(*request_);
    const int64_t dims[] = {static_cast<int64_t>(values.size())};
    core::ResponseOutput& output = *response->AddOutput("OUTPUT0", tensor::DataType::kFp32, dims);
    EXPECT_TRUE(response->AllocateBuffer(output, values.size() * sizeof(float), {}, false).ok());
    std::memcpy(output.data, values.data(), output.byte_size);
    response->AddParameter({"text", std::string_view("value")});
    response->AddParameter({"integer", int64_t{-7}});
    response->AddParameter({"flag", true});
    response->AddParameter({"double", 0.5});
    return response;
  }

  base::Status LookUp(core::ResponseCache& cache, char key) {
    found_ = core::Response::Create(*request_);
    return cache.Lookup(Key(key), *found_);
  }

  void ExpectFound(const std::vector<float>& values) {
    ASSERT_EQ(found_->output_count(), 1u);
    const core::ResponseOutput& output = found_->output(0);
    EXPECT_EQ(output.name, "OUTPUT0");
    EXPECT_EQ(output.type, tensor::DataType::kFp32);
    EXPECT_EQ(output.shape, tensor::Shape({static_cast<int64_t>(values.size())}));
    ASSERT_EQ(output.byte_size, values.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(output.data, values.data(), output.byte_size), 0);
    ASSERT_EQ(found_->parameters().size(), 4u);
    EXPECT_EQ(std::get<std::string_view>(found_->parameters()[0].value), "value");
    EXPECT_EQ(std::get<int64_t>(found_->parameters()[1].value), -7);
    EXPECT_EQ(std::get<bool>(found_->parameters()[2].value), true);
    EXPECT_EQ(std::get<double>(found_->parameters()[3].value), 0.5);
  }

  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {-1});
  core::FakeSink sink_;
  const core::RequestPtr request_ = core::MakeFakeRequest(*model_, sink_, {2});
  core::ResponsePtr found_;
};

TEST_F(CacheLibraryTest, TheLocalCacheGivesBackWhatItWasGiven) {
  const auto cache = Load("local", {{"size", "100000"}}, CACHE_DIRECTORY);
  EXPECT_EQ(LookUp(*cache, 'a').code(), StatusCode::kNotFound);
  const core::ResponsePtr response = MakeResponse({1, 2, 3});
  ASSERT_TRUE(cache->Insert(Key('a'), *response).ok());
  EXPECT_EQ(cache->Insert(Key('a'), *response).code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(LookUp(*cache, 'a').ok());
  ExpectFound({1, 2, 3});
  EXPECT_EQ(LookUp(*cache, 'b').code(), StatusCode::kNotFound);
}

TEST_F(CacheLibraryTest, AResponseWithoutOutputsIsKeptToo) {
  const auto cache = Load("local", {{"size", "100000"}}, CACHE_DIRECTORY);
  ASSERT_TRUE(cache->Insert(Key('a'), *core::Response::Create(*request_)).ok());
  ASSERT_TRUE(LookUp(*cache, 'a').ok());
  EXPECT_EQ(found_->output_count(), 0u);
}

TEST_F(CacheLibraryTest, WhatIsLargerThanTheLocalCacheIsRefused) {
  const auto cache = Load("local", {{"size", "500"}}, CACHE_DIRECTORY);
  const base::Status status = cache->Insert(Key('a'), *MakeResponse(std::vector<float>(1000)));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("is greater than total cache size: 500"), std::string::npos);
}

TEST_F(CacheLibraryTest, TheLocalCacheNeedsItsSize) {
  const auto error = [](Settings settings) {
    return CacheLibrary::Load({CACHE_DIRECTORY, "local", std::move(settings)}).status().ToString();
  };
  EXPECT_EQ(error({}),
            "Invalid argument: Failed to initialize LocalCache: config didn't contain a valid "
            "'size' field.");
  for (const char* size : {"abc", "0", "-1", ""}) {
    EXPECT_NE(error({{"size", size}}).find("Internal: Failed to initialize LocalCache: "),
              std::string::npos)
        << size;
  }
}

TEST_F(CacheLibraryTest, OnlyACacheWithTheTraitGetsKeysOfThisProcess) {
  const auto local = Load("local", {{"size", "100000"}}, CACHE_DIRECTORY);
  const auto second = Load("local", {{"size", "100000"}}, CACHE_DIRECTORY);
  ASSERT_NE(local->secret(), nullptr);
  ASSERT_NE(second->secret(), nullptr);
  EXPECT_NE(local->secret()->hash_key, second->secret()->hash_key);
  EXPECT_NE(local->secret()->digest_key, local->secret()->hash_key);
  EXPECT_EQ(Load("odd", {})->secret(), nullptr);
}

TEST_F(CacheLibraryTest, AWellBehavedForeignCacheWorks) {
  const auto cache = Load("odd", {});
  EXPECT_EQ(LookUp(*cache, 'a').code(), StatusCode::kNotFound);
  ASSERT_TRUE(cache->Insert(Key('a'), *MakeResponse({4, 5})).ok());
  ASSERT_TRUE(LookUp(*cache, 'a').ok());
  ExpectFound({4, 5});
}

TEST_F(CacheLibraryTest, AnEntryOfAnotherKeyIsAMiss) {
  const auto cache = Load("odd", {});
  ASSERT_TRUE(cache->Insert(Key('a'), *MakeResponse({4, 5})).ok());
  EXPECT_FALSE(LookUp(*cache, 'b').ok());
}

TEST_F(CacheLibraryTest, ADamagedEntryIsAMiss) {
  for (const char* manner : {"flip", "cut", "two", "nothing", "twice", "gpu"}) {
    const auto cache = Load("odd", {{"manner", manner}});
    ASSERT_TRUE(cache->Insert(Key('a'), *MakeResponse({4, 5})).ok());
    EXPECT_FALSE(LookUp(*cache, 'a').ok()) << manner;
  }
}

TEST_F(CacheLibraryTest, ALibraryThatIsNotACacheIsNotLoaded) {
  const auto error = [](const char* name, Settings settings) {
    return CacheLibrary::Load({TEST_CACHE_DIRECTORY, name, std::move(settings)})
        .status()
        .ToString();
  };
  EXPECT_EQ(error("odd", {{"manner", "fail"}}), "Invalid argument: no cache today");
  EXPECT_NE(
      error("empty", {}).find("unable to find required entrypoint 'TRITONCACHE_CacheInitialize'"),
      std::string::npos);
  EXPECT_EQ(error("absent", {}),
            "Invalid argument: unable to find 'libtritoncache_absent.so' for cache. "
            "Searched: " TEST_CACHE_DIRECTORY);
  EXPECT_FALSE(CacheLibrary::Load({"", "odd", {}}).ok());
}

// A cache library under development makes mistakes like null arguments and invalid indices.
TEST(CacheApi, RefusesBadArguments) {
  const auto code = [](TRITONSERVER_Error* error) {
    const TRITONSERVER_Error_Code code =
        error == nullptr ? TRITONSERVER_ERROR_UNKNOWN : TRITONSERVER_ErrorCode(error);
    TRITONSERVER_ErrorDelete(error);
    return code;
  };
  size_t count = 0;
  void* base = nullptr;
  EXPECT_EQ(code(TRITONCACHE_CacheEntryBufferCount(nullptr, &count)),
            TRITONSERVER_ERROR_INVALID_ARG);
  EXPECT_EQ(code(TRITONCACHE_CacheEntryAddBuffer(nullptr, nullptr, nullptr)),
            TRITONSERVER_ERROR_INVALID_ARG);
  EXPECT_EQ(code(TRITONCACHE_CacheEntryGetBuffer(nullptr, 0, &base, nullptr)),
            TRITONSERVER_ERROR_INVALID_ARG);
  EXPECT_EQ(code(TRITONCACHE_CacheEntrySetBuffer(nullptr, 0, nullptr, nullptr)),
            TRITONSERVER_ERROR_INVALID_ARG);
  EXPECT_EQ(code(TRITONCACHE_Copy(nullptr, nullptr)), TRITONSERVER_ERROR_INVALID_ARG);
  uint32_t major = 9;
  uint32_t minor = 9;
  EXPECT_EQ(TRITONCACHE_ApiVersion(&major, &minor), nullptr);
  EXPECT_EQ(major, static_cast<uint32_t>(TRITONCACHE_API_VERSION_MAJOR));
  EXPECT_EQ(minor, static_cast<uint32_t>(TRITONCACHE_API_VERSION_MINOR));
}

}  // namespace
}  // namespace nereid::cache_host
