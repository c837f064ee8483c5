// SPDX-License-Identifier: Apache-2.0
#include "console/history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/json_text.h"

namespace nereid::console {
namespace {

// A column of the samples, by the name that it has in JSON.
struct Column {
  std::string_view name;
  float LoadSample::* value;
};

constexpr std::array<Column, 9> kColumns = {{
    {"requests", &LoadSample::requests},
    {"errors", &LoadSample::errors},
    {"p50_ms", &LoadSample::p50_ms},
    {"p99_ms", &LoadSample::p99_ms},
    {"queued", &LoadSample::queued},
    {"process_cpus", &LoadSample::process_cpus},
    {"machine_cpu", &LoadSample::machine_cpu},
    {"process_mib", &LoadSample::process_mib},
    {"machine_mib", &LoadSample::machine_mib},
}};

// A column of the GPUs.
struct GpuColumn {
  std::string_view name;
  std::array<float, kMaxGpus> LoadSample::* values;
};

constexpr std::array<GpuColumn, 2> kGpuColumns = {{
    {"use", &LoadSample::gpu_use},
    {"mib", &LoadSample::gpu_mib},
}};

// Four digits are more than a chart shows.
void AppendValue(std::string& json, float value) {
  if (!std::isfinite(value)) {
    json += "null";
  } else if (std::abs(value) >= 1000) {
    fmt::format_to(std::back_inserter(json), "{:.0f}", value);
  } else {
    fmt::format_to(std::back_inserter(json), "{:.4g}", value);
  }
}

template <typename Value>
void AppendColumn(std::string& json, std::string_view name, const std::vector<LoadSample>& samples,
                  const Value& value) {
  json += '"';
  json += name;
  json += "\":[";
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i > 0) json += ',';
    AppendValue(json, value(samples[i]));
  }
  json += ']';
}

void AppendSize(std::string& json, const MachineSize& size) {
  fmt::format_to(std::back_inserter(json),
                 "\"machine\":{{\"cpus\":{},\"host_cpus\":{},\"memory_bytes\":{},"
                 "\"host_memory_bytes\":{},\"gpus\":[",
                 size.cpus, size.host_cpus, size.memory_bytes, size.host_memory_bytes);
  for (size_t i = 0; i < size.gpus.size(); ++i) {
    if (i > 0) json += ',';
    json += "{\"name\":";
    base::AppendJsonString(json, size.gpus[i].name);
    fmt::format_to(std::back_inserter(json), ",\"memory_bytes\":{}}}", size.gpus[i].memory_bytes);
  }
  json += "]}";
}

}  // namespace

void History::Add(const LoadSample& sample) {
  base::MutexLock lock(mutex_);
  if (samples_.size() < capacity_) {
    samples_.push_back(sample);
    return;
  }
  samples_[next_] = sample;
  next_ = (next_ + 1) % capacity_;
}

void History::SetSize(MachineSize size) {
  base::MutexLock lock(mutex_);
  size_ = std::move(size);
}

std::vector<LoadSample> History::InOrder() const {
  base::MutexLock lock(mutex_);
  std::vector<LoadSample> samples = samples_;
  std::ranges::rotate(samples, samples.begin() + static_cast<ptrdiff_t>(next_));
  return samples;
}

std::string History::Json() const {
  const std::vector<LoadSample> samples = InOrder();
  MachineSize size;
  {
    base::MutexLock lock(mutex_);
    size = size_;
  }
  std::string json = "{";
  json.reserve(samples.size() * 60 + 1024);
  AppendSize(json, size);
  json += ",\"time_s\":[";
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i > 0) json += ',';
    base::AppendJsonInteger(json, samples[i].time_s);
  }
  json += ']';
  for (const Column& column : kColumns) {
    json += ',';
    AppendColumn(json, column.name, samples,
                 [&](const LoadSample& sample) { return sample.*column.value; });
  }
  json += ",\"gpus\":[";
  for (size_t gpu = 0; gpu < size.gpus.size(); ++gpu) {
    json += gpu > 0 ? ",{" : "{";
    for (const GpuColumn& column : kGpuColumns) {
      if (json.back() != '{') json += ',';
      AppendColumn(json, column.name, samples,
                   [&](const LoadSample& sample) { return (sample.*column.values)[gpu]; });
    }
    json += '}';
  }
  json += "]}";
  return json;
}

std::string ToJson(const LoadSample& sample, size_t gpu_count) {
  std::string json = "{\"time_s\":";
  base::AppendJsonInteger(json, sample.time_s);
  for (const Column& column : kColumns) {
    json += ",\"";
    json += column.name;
    json += "\":";
    AppendValue(json, sample.*column.value);
  }
  json += ",\"gpus\":[";
  for (size_t gpu = 0; gpu < std::min(gpu_count, kMaxGpus); ++gpu) {
    json += gpu > 0 ? ",{" : "{";
    for (const GpuColumn& column : kGpuColumns) {
      if (json.back() != '{') json += ',';
      json += '"';
      json += column.name;
      json += "\":";
      AppendValue(json, (sample.*column.values)[gpu]);
    }
    json += '}';
  }
  json += "]}";
  return json;
}

}  // namespace nereid::console
