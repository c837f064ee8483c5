// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_result.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

// Changes with the meaning of a member; a reader refuses other numbers.
constexpr unsigned kFormat = 1;

double RealOf(const rapidjson::Value& object, std::string_view name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  return value != nullptr && value->IsNumber() ? value->GetDouble() : 0;
}

// Writes members of objects of one document.
class JsonWriter {
 public:
  explicit JsonWriter(rapidjson::Document& document) : document_(document) {}

  void Text(rapidjson::Value& object, const char* name, std::string_view text) {
    AddMember(document_, object, name, TextValue(text, document_));
  }
  template <typename T>
  void Number(rapidjson::Value& object, const char* name, T value) {
    AddMember(document_, object, name, rapidjson::Value(value));
  }
  void Add(rapidjson::Value& object, const char* name, rapidjson::Value value) {
    AddMember(document_, object, name, std::move(value));
  }
  rapidjson::Value List(const std::vector<double>& values) {
    rapidjson::Value list(rapidjson::kArrayType);
    for (const double value : values) list.PushBack(value, document_.GetAllocator());
    return list;
  }
  void Push(rapidjson::Value& list, rapidjson::Value value) {
    list.PushBack(value, document_.GetAllocator());
  }

  rapidjson::Value Of(const Estimate& estimate);
  rapidjson::Value Of(const LevelResult& level);

 private:
  rapidjson::Document& document_;
};

rapidjson::Value JsonWriter::Of(const Estimate& estimate) {
  rapidjson::Value object(rapidjson::kObjectType);
  Number(object, "value", estimate.value);
  // JSON has no infinity.
  Add(object, "margin",
      std::isfinite(estimate.margin) ? rapidjson::Value(estimate.margin) : rapidjson::Value());
  Add(object, "samples", List(estimate.samples));
  Add(object, "rounds", List(estimate.rounds));
  return object;
}

rapidjson::Value JsonWriter::Of(const LevelResult& level) {
  rapidjson::Value object(rapidjson::kObjectType);
  Text(object, "mode", level.is_open ? "open" : "closed");
  Number(object, level.is_open ? "rate" : "concurrency", level.load);
  Number(object, "seconds", level.seconds);
  Number(object, "requests", level.succeeded);
  Number(object, "failed", level.failed());
  Number(object, "unfinished", level.unfinished);
  Add(object, "requests_per_s", Of(level.rate));
  rapidjson::Value latency(rapidjson::kObjectType);
  Number(latency, "mean", level.mean_us);
  Number(latency, "max", level.max_us);
  for (size_t i = 0; i < level.quantiles_us.size(); ++i) {
    Add(latency, kBenchQuantiles[i].name.data(), Of(level.quantiles_us[i]));
  }
  Add(object, "latency_us", std::move(latency));
  rapidjson::Value errors(rapidjson::kArrayType);
  for (const auto& [text, count] : level.errors) {
    rapidjson::Value error(rapidjson::kObjectType);
    Text(error, "text", text);
    Number(error, "count", count);
    Push(errors, std::move(error));
  }
  Add(object, "errors", std::move(errors));
  if (level.server) {
    rapidjson::Value server(rapidjson::kObjectType);
    Number(server, "queue_us", level.server->queue_us);
    Number(server, "compute_us", level.server->compute_us);
    Number(server, "batch", level.server->batch);
    Number(server, "executions", level.server->executions);
    Number(server, "cache_hits", level.server->cache_hits);
    Add(object, "server", std::move(server));
  }
  Number(object, "generator_busy", level.busy);
  rapidjson::Value moments(rapidjson::kArrayType);
  for (const BenchMoment& one : level.moments) {
    rapidjson::Value moment(rapidjson::kObjectType);
    Number(moment, "round", one.round);
    Number(moment, "requests_per_s", one.rate);
    Number(moment, "p50_us", one.p50_us);
    Number(moment, "p99_us", one.p99_us);
    Push(moments, std::move(moment));
  }
  Add(object, "intervals", std::move(moments));
  return object;
}

std::vector<double> ReadList(const rapidjson::Value& object, std::string_view name) {
  std::vector<double> values;
  for (const rapidjson::Value& value : ListOf(object, name)) {
    if (value.IsNumber()) values.push_back(value.GetDouble());
  }
  return values;
}

Estimate ReadEstimate(const rapidjson::Value* object) {
  Estimate estimate;
  if (object == nullptr) return estimate;
  estimate.value = RealOf(*object, "value");
  const rapidjson::Value* const margin = MemberOf(*object, "margin");
  estimate.margin = margin != nullptr && margin->IsNumber()
                        ? margin->GetDouble()
                        : std::numeric_limits<double>::infinity();
  estimate.samples = ReadList(*object, "samples");
  estimate.rounds = ReadList(*object, "rounds");
  return estimate;
}

LevelResult ReadLevel(const rapidjson::Value& object) {
  LevelResult level;
  level.is_open = TextOf(object, "mode") == "open";
  level.load = RealOf(object, level.is_open ? "rate" : "concurrency");
  level.seconds = RealOf(object, "seconds");
  level.succeeded = NumberOf(object, "requests");
  level.unfinished = NumberOf(object, "unfinished");
  level.rate = ReadEstimate(MemberOf(object, "requests_per_s"));
  level.quantiles_us.resize(std::size(kBenchQuantiles));
  if (const rapidjson::Value* const latency = MemberOf(object, "latency_us")) {
    level.mean_us = RealOf(*latency, "mean");
    level.max_us = RealOf(*latency, "max");
    for (size_t i = 0; i < level.quantiles_us.size(); ++i) {
      level.quantiles_us[i] = ReadEstimate(MemberOf(*latency, kBenchQuantiles[i].name));
    }
  }
  for (const rapidjson::Value& error : ListOf(object, "errors")) {
    level.errors[std::string(TextOf(error, "text"))] = NumberOf(error, "count");
  }
  if (const rapidjson::Value* const server = MemberOf(object, "server")) {
    level.server = ServerShare{.queue_us = RealOf(*server, "queue_us"),
                               .compute_us = RealOf(*server, "compute_us"),
                               .batch = RealOf(*server, "batch"),
                               .executions = NumberOf(*server, "executions"),
                               .cache_hits = NumberOf(*server, "cache_hits")};
  }
  level.busy = RealOf(object, "generator_busy");
  for (const rapidjson::Value& moment : ListOf(object, "intervals")) {
    level.moments.push_back({.round = static_cast<int>(NumberOf(moment, "round")),
                             .rate = RealOf(moment, "requests_per_s"),
                             .p50_us = RealOf(moment, "p50_us"),
                             .p99_us = RealOf(moment, "p99_us")});
  }
  return level;
}

// The texts of a result and their names in the file.
struct TextMember {
  const char* name;
  std::string BenchResult::* text;
};
constexpr TextMember kTexts[] = {{"model", &BenchResult::model},
                                 {"version", &BenchResult::version},
                                 {"protocol", &BenchResult::protocol},
                                 {"server", &BenchResult::server},
                                 {"url", &BenchResult::url},
                                 {"started", &BenchResult::started},
                                 {"machine", &BenchResult::machine},
                                 {"inputs", &BenchResult::inputs},
                                 {"distribution", &BenchResult::distribution}};

}  // namespace

uint64_t LevelResult::failed() const {
  uint64_t sum = 0;
  for (const auto& [text, count] : errors) sum += count;
  return sum;
}

std::string LevelResult::Title() const {
  return is_open ? fmt::format("{:g} requests/s", load) : fmt::format("concurrency {:g}", load);
}

uint64_t BenchResult::failed() const {
  uint64_t sum = 0;
  for (const LevelResult& level : levels) sum += level.failed();
  return sum;
}

rapidjson::Document BenchJson(const BenchResult& result) {
  rapidjson::Document document;
  document.SetObject();
  JsonWriter writer(document);
  writer.Number(document, "nereid_bench", kFormat);
  for (const TextMember& member : kTexts) writer.Text(document, member.name, result.*member.text);
  writer.Number(document, "batch_size", result.batch_size);
  rapidjson::Value levels(rapidjson::kArrayType);
  for (const LevelResult& level : result.levels) writer.Push(levels, writer.Of(level));
  writer.Add(document, "levels", std::move(levels));
  return document;
}

base::Result<BenchResult> ReadBenchJson(const rapidjson::Value& document) {
  if (NumberOf(document, "nereid_bench") != kFormat) {
    return base::InvalidArgumentError("it is no result that 'nereid bench --save' has written");
  }
  BenchResult result;
  for (const TextMember& member : kTexts) result.*member.text = TextOf(document, member.name);
  result.batch_size = static_cast<int64_t>(NumberOf(document, "batch_size"));
  for (const rapidjson::Value& level : ListOf(document, "levels")) {
    result.levels.push_back(ReadLevel(level));
  }
  return result;
}

std::vector<LevelComparison> CompareResults(const BenchResult& before, const BenchResult& after) {
  std::vector<LevelComparison> levels;
  for (const LevelResult& now : after.levels) {
    for (const LevelResult& then : before.levels) {
      if (then.is_open != now.is_open || then.load != now.load) continue;
      levels.push_back({.before = &then,
                        .after = &now,
                        .rate = Compare(then.rate, now.rate),
                        .p50 = Compare(then.quantiles_us[kP50], now.quantiles_us[kP50]),
                        .p99 = Compare(then.quantiles_us[kP99], now.quantiles_us[kP99])});
      break;
    }
  }
  return levels;
}

std::string VerdictOf(const BenchResult& before, const BenchResult& after,
                      const std::vector<LevelComparison>& levels) {
  if (levels.empty()) return "The two runs have no level of load in common.";
  size_t better = 0;
  size_t worse = 0;
  for (const LevelComparison& level : levels) {
    // In an open loop, the rate is what was asked for: latencies tell.
    const bool is_better = level.rate.verdict == Verdict::kHigher ||
                           level.p50.verdict == Verdict::kLower ||
                           level.p99.verdict == Verdict::kLower;
    const bool is_worse = level.rate.verdict == Verdict::kLower ||
                          level.p50.verdict == Verdict::kHigher ||
                          level.p99.verdict == Verdict::kHigher;
    better += is_better ? 1 : 0;
    worse += is_worse ? 1 : 0;
  }
  std::string text;
  if (better == 0 && worse == 0) {
    text = "No difference beyond the noise of these measurements.";
  } else if (worse == 0) {
    text = fmt::format("Better at {} of {} levels, worse at none.", better, levels.size());
  } else if (better == 0) {
    text = fmt::format("Worse at {} of {} levels, better at none.", worse, levels.size());
  } else {
    text = fmt::format("Better in something at {} of {} levels, worse in something at {}.", better,
                       levels.size(), worse);
  }
  for (const TextMember& member : kTexts) {
    const std::string_view name = member.name;
    if (name == "started" || name == "url" || before.*member.text == after.*member.text) continue;
    text += fmt::format(" Beware: {} differs ('{}', '{}').", name, before.*member.text,
                        after.*member.text);
  }
  if (before.batch_size != after.batch_size) {
    text += fmt::format(" Beware: the batch size differs ({}, {}).", before.batch_size,
                        after.batch_size);
  }
  return text;
}

}  // namespace nereid::cli
