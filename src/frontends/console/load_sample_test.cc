// SPDX-License-Identifier: Apache-2.0
#include "console/load_sample.h"

#include <cmath>

#include <gtest/gtest.h>

#include "console/history.h"

namespace nereid::console {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Their addresses are the identities of models.
constexpr char kA[] = "a";
constexpr char kB[] = "b";
constexpr char kC[] = "c";

service::ModelLoad Model(const char* identity, uint64_t successes, uint64_t failures = 0) {
  service::ModelLoad model{identity, {.successes = successes, .failures = failures}};
  model.counts.request_buckets[6] = successes;  // from 0.5 to 1 ms
  return model;
}

LoadReading At(uint64_t seconds, std::vector<service::ModelLoad> models) {
  LoadReading reading;
  reading.now_ns = (100 + seconds) * kSecond;
  reading.time_s = static_cast<int64_t>(1000 + seconds);
  reading.models = std::move(models);
  return reading;
}

TEST(LoadMeter, CountsWhatHappenedBetweenTwoReadings) {
  LoadMeter meter;
  EXPECT_FALSE(meter.Next(At(0, {Model(kA, 1000, 7)})));
  const auto sample = meter.Next(At(2, {Model(kA, 1100, 11)}));
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->time_s, 1002);
  EXPECT_FLOAT_EQ(sample->requests, 50);
  EXPECT_FLOAT_EQ(sample->errors, 2);
  EXPECT_FLOAT_EQ(sample->p50_ms, 0.75F);
}

TEST(LoadMeter, TakesModelsThatComeAndGoForWhatTheyAre) {
  LoadMeter meter;
  meter.Next(At(0, {Model(kA, 1000), Model(kB, 50)}));
  // One is unloaded, one is loaded again and counts from 0, one is new.
  const auto sample = meter.Next(At(1, {Model(kB, 3), Model(kC, 4)}));
  ASSERT_TRUE(sample);
  EXPECT_FLOAT_EQ(sample->requests, 7);
}

TEST(LoadMeter, KnowsNoLatencyWithoutARequest) {
  LoadMeter meter;
  meter.Next(At(0, {Model(kA, 1000)}));
  const auto sample = meter.Next(At(1, {Model(kA, 1000)}));
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->requests, 0);
  EXPECT_TRUE(std::isnan(sample->p50_ms));
}

TEST(LoadMeter, MeasuresTheMachine) {
  LoadMeter meter;
  LoadReading first = At(0, {});
  first.machine.process_cpu_ns = 5 * kSecond;
  first.machine.cpu = {.busy = 100, .idle = 100};
  meter.Next(first);
  LoadReading second = At(1, {});
  second.machine.process_cpu_ns = 6 * kSecond + kSecond / 2;
  second.machine.process_bytes = 3 << 20;
  second.machine.cpu = {.busy = 130, .idle = 110};
  second.machine.gpus = {{"GPU-1", 0.5, 1000.0, 2.0 * (1 << 20)}, {"GPU-2", {}, {}, {}}};
  const auto sample = meter.Next(second);
  ASSERT_TRUE(sample);
  EXPECT_FLOAT_EQ(sample->process_cpus, 1.5F);
  EXPECT_FLOAT_EQ(sample->process_mib, 3);
  EXPECT_FLOAT_EQ(sample->machine_cpu, 0.75F);
  EXPECT_TRUE(std::isnan(sample->machine_mib));
  EXPECT_FLOAT_EQ(sample->gpu_use[0], 0.5F);
  EXPECT_FLOAT_EQ(sample->gpu_mib[0], 2);
  EXPECT_TRUE(std::isnan(sample->gpu_use[1]));
}

TEST(ReadMachine, SeesThisProcess) {
  const MachineReading reading = ReadMachine();
  EXPECT_GT(reading.process_bytes, uint64_t{1} << 20);
  ASSERT_TRUE(reading.cpu);
  EXPECT_GT(reading.cpu->busy, 0u);
  ASSERT_TRUE(reading.memory);
  EXPECT_GT(reading.memory->total, reading.memory->used);
}

TEST(QuantileMs, LiesInTheBucketOfTheQuantile) {
  core::DurationBuckets counts{};
  EXPECT_TRUE(std::isnan(QuantileMs(counts, 0.5)));
  counts[0] = 98;                 // below 10 us
  counts[counts.size() - 1] = 2;  // above 30 s, without a bound
  EXPECT_NEAR(QuantileMs(counts, 0.49), 0.005, 1e-6);
  EXPECT_FLOAT_EQ(QuantileMs(counts, 0.99), 30'000);
}

LoadSample SampleAt(int64_t time_s) {
  LoadSample sample;
  sample.time_s = time_s;
  sample.requests = static_cast<float>(time_s);
  sample.p50_ms = std::nanf("");
  return sample;
}

TEST(History, KeepsTheLastSamplesInOrder) {
  History history(3);
  history.SetSize({.cpus = 4,
                   .host_cpus = 8,
                   .memory_bytes = 1024,
                   .host_memory_bytes = 4096,
                   .gpus = {{"GPU-\"1", 99}}});
  for (int64_t time = 1; time <= 5; ++time) history.Add(SampleAt(time));
  const std::string json = history.Json();
  EXPECT_NE(json.find("\"time_s\":[3,4,5]"), std::string::npos) << json;
  EXPECT_NE(json.find("\"requests\":[3,4,5]"), std::string::npos) << json;
  EXPECT_NE(json.find("\"p50_ms\":[null,null,null]"), std::string::npos) << json;
  EXPECT_NE(
      json.find(
          "\"machine\":{\"cpus\":4,\"host_cpus\":8,\"memory_bytes\":1024,"
          "\"host_memory_bytes\":4096,\"gpus\":[{\"name\":\"GPU-\\\"1\",\"memory_bytes\":99}]}"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find("\"gpus\":[{\"use\":[0,0,0],\"mib\":[0,0,0]}]}"), std::string::npos) << json;
}

TEST(History, WritesOneSampleLikeAll) {
  LoadSample sample = SampleAt(7);
  sample.requests = 123456.7F;
  sample.errors = 0.12345F;
  const std::string json = ToJson(sample, 1);
  EXPECT_TRUE(
      json.starts_with("{\"time_s\":7,\"requests\":123457,\"errors\":0.1235,\"p50_ms\":null"))
      << json;
  EXPECT_TRUE(json.ends_with("\"gpus\":[{\"use\":0,\"mib\":0}]}")) << json;
}

}  // namespace
}  // namespace nereid::console
