// SPDX-License-Identifier: Apache-2.0
#include "schedule/response_caching.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

#include "core/response.h"
#include "core/testing/fakes.h"
#include "schedule/cache_key.h"

namespace nereid::schedule {
namespace {

// Stores the number of outputs of each response.
class FakeCache final : public core::ResponseCache {
 public:
  base::Status Lookup(const core::CacheKey& key, core::Response& response) override {
    ++lookups;
    if (!lookup_error.ok()) return lookup_error;
    if (!kept.contains(std::string(key.view()))) return base::NotFoundError("not there");
    response.AddParameter({"cached", true});
    return base::OkStatus();
  }
  base::Status Insert(const core::CacheKey& key, const core::Response&) override {
    ++inserts;
    if (!insert_error.ok()) return insert_error;
    return kept.emplace(key.view(), 1).second ? base::OkStatus()
                                              : base::AlreadyExistsError("is there");
  }

  std::map<std::string, int> kept;
  base::Status lookup_error;
  base::Status insert_error;
  int lookups = 0;
  int inserts = 0;
};

std::unique_ptr<core::Model> MakeModel(std::shared_ptr<config::ModelConfig> config,
                                       const char* name = "model", int64_t version = 1,
                                       const char* files = "files") {
  core::ModelOptions options;
  options.name = name;
  options.id_text = name;
  options.version = version;
  options.fingerprint = files;
  options.config = std::move(config);
  core::ModelTensor tensor;
  tensor.type = tensor::DataType::kFp32;
  tensor.dims = {-1};
  tensor.model_dims = {-1};
  for (const char* input : {"INPUT0", "INPUT1"}) {
    tensor.name = input;
    options.inputs.push_back(tensor);
  }
  for (const char* output : {"OUTPUT0", "OUTPUT1"}) {
    tensor.name = output;
    options.outputs.push_back(tensor);
  }
  return std::make_unique<core::Model>(std::move(options));
}

template <typename... Arguments>
std::unique_ptr<core::Model> MakeModel(bool caches, Arguments... arguments) {
  auto config = std::make_shared<config::ModelConfig>();
  config->response_cache = caches;
  return MakeModel(std::move(config), arguments...);
}

class ResponseCachingTest : public testing::Test {
 protected:
  core::RequestPtr MakeRequest(core::Model& model) {
    core::RequestPtr request = core::Request::Create(sink_);
    EXPECT_TRUE(model.TryPin());
    request->model = core::ModelHandle(model);
    request->times.request_start_ns = base::NowNs();
    core::RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kFp32);
    input.shape = {4};
    input.Append({data_.data(), data_.size(), {}});
    return request;
  }
  core::RequestPtr MakeRequest() { return MakeRequest(*model_); }

  // Plays an instance.
  static void Execute(core::RequestPtr request, base::Status error = {}) {
    core::ResponsePtr response = core::Response::Create(*request);
    response->SetError(std::move(error));
    core::ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(std::move(response), true);
  }
  // Returns whether the response came from the cache.
  bool Run(base::Status error = {}) {
    core::RequestPtr request = MakeRequest();
    if (core::ResponsePtr known = caching_->Find(*request)) {
      Complete(std::move(request), std::move(known));
      return true;
    }
    Execute(std::move(request), std::move(error));
    return false;
  }
  core::StatisticsSnapshot Statistics() { return model_->statistics().Read(); }

  std::array<std::byte, 16> data_{};
  const std::unique_ptr<core::Model> model_ = MakeModel(true);
  FakeCache cache_;
  core::FakeSink sink_;
  const std::unique_ptr<ResponseCaching> caching_ = ResponseCaching::ForModel(*model_, &cache_);
};

TEST_F(ResponseCachingTest, IsOnlyForModelsThatAskForItOnServersThatHaveACache) {
  EXPECT_NE(caching_, nullptr);
  EXPECT_EQ(ResponseCaching::ForModel(*MakeModel(false), &cache_), nullptr);
  EXPECT_EQ(ResponseCaching::ForModel(*model_, nullptr), nullptr);
}

TEST_F(ResponseCachingTest, ServesTheSecondRequestFromTheCache) {
  EXPECT_FALSE(Run());
  EXPECT_TRUE(Run());
  EXPECT_TRUE(Run());
  EXPECT_EQ(sink_.final_count(), 3u);
  EXPECT_TRUE(sink_.WaitForGone(3));
  const core::StatisticsSnapshot statistics = Statistics();
  EXPECT_EQ(statistics.cache_miss.count, 1u);
  EXPECT_EQ(statistics.cache_hit.count, 2u);
  EXPECT_EQ(statistics.success.count, 2u);
  EXPECT_EQ(statistics.inference_count, 0u);
}

TEST_F(ResponseCachingTest, AFailureIsNotKeptAndNoMiss) {
  EXPECT_FALSE(Run(base::InternalError("broken")));
  EXPECT_EQ(cache_.inserts, 0);
  EXPECT_EQ(Statistics().cache_miss.count, 0u);
  EXPECT_EQ(sink_.results(), std::vector<std::string>{"broken"});
  EXPECT_FALSE(Run());
}

TEST_F(ResponseCachingTest, OneOfSeveralResponsesIsNotKept) {
  core::RequestPtr request = MakeRequest();
  ASSERT_EQ(caching_->Find(*request), nullptr);
  core::ResponseSink& sink = request->sink();
  sink.Send(core::Response::Create(*request), false);
  Execute(std::move(request));
  request = MakeRequest();
  ASSERT_EQ(caching_->Find(*request), nullptr);
  core::ResponseSink& second = request->sink();
  second.Send(core::Response::Create(*request), false);
  second.Send(nullptr, true);
  request.reset();
  EXPECT_EQ(cache_.inserts, 0);
  EXPECT_TRUE(sink_.WaitForGone(2));
}

TEST_F(ResponseCachingTest, WhatAnotherRequestInsertedMeanwhileIsNoMiss) {
  core::RequestPtr first = MakeRequest();
  core::RequestPtr second = MakeRequest();
  ASSERT_EQ(caching_->Find(*first), nullptr);
  ASSERT_EQ(caching_->Find(*second), nullptr);
  Execute(std::move(first));
  Execute(std::move(second));
  EXPECT_EQ(cache_.inserts, 2);
  EXPECT_EQ(Statistics().cache_miss.count, 1u);
}

TEST_F(ResponseCachingTest, ABrokenCacheCostsNoResponse) {
  cache_.lookup_error = base::InternalError("gone");
  cache_.insert_error = base::InternalError("gone");
  EXPECT_FALSE(Run());
  EXPECT_FALSE(Run());
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(Statistics().cache_miss.count, 2u);
}

TEST_F(ResponseCachingTest, DataElsewhereThanInCpuMemoryIsNotLookedUp) {
  core::RequestPtr request = MakeRequest();
  request->inputs[0].first.where = {memory::MemoryType::kGpu, 0};
  EXPECT_EQ(caching_->Find(*request), nullptr);
  EXPECT_EQ(&request->sink(), &sink_);
  EXPECT_EQ(cache_.lookups, 0);
}

// Rules can lead the steps of an ensemble to another version while the ensemble stays what it is.
TEST_F(ResponseCachingTest, AnEnsembleForgetsInANewEpoch) {
  auto config = std::make_shared<config::ModelConfig>();
  config->response_cache = true;
  config->scheduling_choice = config::Ensembling{};
  const std::unique_ptr<core::Model> ensemble = MakeModel(config, "ensemble");
  const auto caching = ResponseCaching::ForModel(*ensemble, &cache_);
  // Returns whether the response came from the cache; calls `meanwhile` during the execution.
  const auto run = [&](const ResponseCaching& by, core::Model& model, auto meanwhile) {
    core::RequestPtr request = MakeRequest(model);
    core::ResponsePtr known = by.Find(*request);
    const bool is_hit = known != nullptr;
    meanwhile();
    if (is_hit) {
      Complete(std::move(request), std::move(known));
    } else {
      Execute(std::move(request));
    }
    return is_hit;
  };
  const auto nothing = [] {};
  EXPECT_FALSE(run(*caching, *ensemble, nothing));
  EXPECT_FALSE(run(*caching_, *model_, nothing));
  EXPECT_TRUE(run(*caching, *ensemble, nothing));
  cache_.BeginEpoch(7);
  // What is executed across the change is of neither epoch.
  EXPECT_FALSE(run(*caching, *ensemble, [&] { cache_.BeginEpoch(8); }));
  EXPECT_EQ(cache_.inserts, 2);
  EXPECT_FALSE(run(*caching, *ensemble, nothing));
  EXPECT_TRUE(run(*caching, *ensemble, nothing));
  // The responses of all others are what they were.
  EXPECT_TRUE(run(*caching_, *model_, nothing));
  EXPECT_TRUE(sink_.WaitForGone(7));
}

TEST(ModelFingerprint, DiffersBetweenFilesAndConfigurations) {
  config::ModelConfig config;
  config.name = "model";
  const std::string fingerprint = ModelFingerprint(1, config);
  EXPECT_EQ(ModelFingerprint(1, config), fingerprint);
  EXPECT_NE(ModelFingerprint(2, config), fingerprint);
  config::ModelConfig other = config;
  other.parameters["threshold"] = "0.5";
  EXPECT_NE(ModelFingerprint(1, other), fingerprint);
  other = config;
  other.default_model_filename = "other.onnx";
  EXPECT_NE(ModelFingerprint(1, other), fingerprint);
  other = config;
  other.instance_group.emplace_back();
  EXPECT_EQ(ModelFingerprint(1, other), fingerprint);
}

using Change = void (*)(core::Request&);

class CacheKeyTest : public ResponseCachingTest {
 protected:
  std::string KeyAfter(Change change) {
    const core::RequestPtr request = MakeRequest();
    change(*request);
    return std::string(MakeCacheKey(*request).value().view());
  }
};

TEST_F(CacheKeyTest, IsTheSameForTheSameQuestion) {
  const std::string key = KeyAfter([](core::Request&) {});
  EXPECT_EQ(key.size(), core::CacheKey::kSize);
  // The client, the priority and the id are not part of the key.
  EXPECT_EQ(KeyAfter([](core::Request& request) {
              request.id = "another";
              request.priority = 3;
              request.timeout_us = 9;
            }),
            key);
  EXPECT_EQ(KeyAfter([](core::Request& request) {
              request.outputs = {{"OUTPUT0", 0, 5}, {"OUTPUT1", 1, 6}};
            }),
            key);
  // Neither is the way in which the bytes are split.
  EXPECT_EQ(KeyAfter([](core::Request& request) {
              const core::DataChunk all = request.inputs[0].first;
              request.inputs[0].first.size = 7;
              request.inputs[0].more.push_back({all.data + 7, all.size - 7, {}});
            }),
            key);
}

TEST_F(CacheKeyTest, DiffersWithEverythingThatTheResponseMayDependOn) {
  static constexpr std::array<std::byte, 16> kOther = {std::byte{0}, std::byte{1}};
  std::map<std::string, int> keys;
  int changes = 0;
  const auto expect_new = [&](Change change) {
    ++changes;
    EXPECT_TRUE(keys.emplace(KeyAfter(change), changes).second) << "change " << changes;
  };
  expect_new([](core::Request&) {});
  expect_new([](core::Request& r) { r.inputs[0].first.data = kOther.data(); });
  expect_new([](core::Request& r) { r.inputs[0].shape = {2, 2}; });
  expect_new([](core::Request& r) { r.inputs[0].shape = {1, 4}; });
  expect_new([](core::Request& r) { r.inputs[0].type = tensor::DataType::kInt32; });
  expect_new([](core::Request& r) { r.inputs[0].name = "INPUT1"; });
  expect_new([](core::Request& r) {
    r.inputs[0].byte_size = 15;
    r.inputs[0].first.size = 15;
  });
  expect_new([](core::Request& r) { r.AddInput("INPUT1", tensor::DataType::kFp32).shape = {0}; });
  expect_new([](core::Request& r) { r.outputs = {{"OUTPUT0", 0, 0}}; });
  expect_new([](core::Request& r) { r.outputs = {{"OUTPUT1", 1, 0}}; });
  expect_new([](core::Request& r) { r.parameters = {{"a", int64_t{1}}}; });
  expect_new([](core::Request& r) { r.parameters = {{"a", int64_t{2}}}; });
  expect_new([](core::Request& r) { r.parameters = {{"a", true}}; });
  expect_new([](core::Request& r) { r.parameters = {{"a", std::string_view("1")}}; });
  expect_new([](core::Request& r) { r.correlation_id = uint64_t{1}; });
  expect_new([](core::Request& r) { r.correlation_id = std::string_view("1"); });
  expect_new([](core::Request& r) { r.flags = core::kSequenceStart; });
}

TEST_F(CacheKeyTest, DiffersBetweenModelsVersionsAndFiles) {
  const auto other_name = MakeModel(true, "mode1");
  const auto other_version = MakeModel(true, "model", 2);
  const auto other_files = MakeModel(true, "model", 1, "changed files");
  const std::string key = KeyAfter([](core::Request&) {});
  EXPECT_NE(MakeCacheKey(*MakeRequest(*other_name))->view(), key);
  EXPECT_NE(MakeCacheKey(*MakeRequest(*other_version))->view(), key);
  EXPECT_NE(MakeCacheKey(*MakeRequest(*other_files))->view(), key);
}

TEST_F(CacheKeyTest, LongAndShortPiecesMeetAtEveryBoundary) {
  // Sizes around that of the buffer in which small pieces are gathered.
  std::array<std::byte, 2048> data;
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  for (const size_t size : {0, 1, 255, 256, 257, 400, 511, 512, 513, 2048}) {
    std::map<std::string, size_t> keys;
    for (const size_t cut : {size_t{0}, size / 3, size / 2, size}) {
      const core::RequestPtr request = MakeRequest();
      core::RequestInput& input = request->inputs[0];
      input.first = {data.data(), cut, {}};
      input.byte_size = cut;
      input.Append({data.data() + cut, size - cut, {}});
      keys.emplace(MakeCacheKey(*request)->view(), cut);
    }
    EXPECT_EQ(keys.size(), 1u) << size;
  }
}

core::CacheSecret Secret(unsigned char fill) {
  core::CacheSecret secret;
  secret.hash_key.fill(fill);
  secret.digest_key.fill(fill);
  return secret;
}

TEST_F(CacheKeyTest, WithASecretItDependsOnTheSecretAndOnEveryByteHoweverTheyAreCut) {
  const core::CacheSecret secret = Secret(1);
  const core::CacheSecret other = Secret(2);
  for (const size_t size :
       {size_t{16}, size_t{1023}, size_t{1024}, size_t{5000}, size_t{100'000}}) {
    std::vector<std::byte> data(size);
    for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7);
    const auto key = [&](const core::CacheSecret* with, size_t cut) {
      const core::RequestPtr request = MakeRequest();
      core::RequestInput& input = request->inputs[0];
      input.first = {data.data(), cut, {}};
      input.byte_size = cut;
      input.Append({data.data() + cut, size - cut, {}});
      return std::string(MakeCacheKey(*request, with)->view());
    };
    const std::string whole = key(&secret, size);
    EXPECT_EQ(key(&secret, size / 3), whole);
    EXPECT_NE(key(&other, size), whole);
    EXPECT_EQ(key(&secret, size), whole);
    EXPECT_NE(key(nullptr, size), whole);
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      data[place] ^= std::byte{0x80};
      EXPECT_NE(key(&secret, size), whole) << size << " " << place;
      data[place] ^= std::byte{0x80};
    }
    EXPECT_EQ(key(&secret, size), whole);
    data.push_back(std::byte{0});  // one more zero is a different request
    const core::RequestPtr longer = MakeRequest();
    longer->inputs[0].first = {data.data(), size + 1, {}};
    longer->inputs[0].byte_size = size + 1;
    EXPECT_NE(MakeCacheKey(*longer, &secret)->view(), whole);
  }
}

}  // namespace
}  // namespace nereid::schedule
