// SPDX-License-Identifier: Apache-2.0
#include "common/load_report.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace nereid::common {
namespace {

constexpr std::string_view kCacheLines =
    "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"used\",model=\"m\"} 5\n"
    "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"m\"} 10\n"
    "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"tokens_per\",model=\"m\"} 64\n";

// Reads field 8, a map of texts and doubles, and expects nothing else.
std::map<std::string, double> NamedMetrics(std::string_view message) {
  std::map<std::string, double> metrics;
  while (!message.empty()) {
    EXPECT_EQ(message[0], 0x42);  // field 8, bytes
    const std::string_view entry = message.substr(2, static_cast<unsigned char>(message[1]));
    EXPECT_EQ(entry[0], 0x0A);  // field 1, bytes
    const size_t length = static_cast<unsigned char>(entry[1]);
    EXPECT_EQ(entry[2 + length], 0x11);  // field 2, fixed64
    uint64_t bits = 0;
    std::memcpy(&bits, entry.data() + 3 + length, sizeof(bits));
    metrics[std::string(entry.substr(2, length))] = std::bit_cast<double>(bits);
    message.remove_prefix(2 + entry.size());
  }
  return metrics;
}

TEST(LoadText, HasTheTotalsOfAllModels) {
  const service::LoadTotals totals{.requests_in_flight = 5, .queue_oldest_seconds = 0.25};
  EXPECT_EQ(LoadText("json", totals, "nereid_model_requests_in_flight{model=\"m\"} 2\n"),
            R"(JSON {"named_metrics":{"requests_in_flight":5,"queue_oldest_seconds":0.25}})");
  EXPECT_EQ(LoadText("text", totals, ""),
            "TEXT named_metrics.requests_in_flight=5, "
            "named_metrics.queue_oldest_seconds=0.250000");
  EXPECT_EQ(LoadText("bin", totals, kCacheLines), "");
}

TEST(LoadText, BeginsAsTritonsDoes) {
  EXPECT_EQ(LoadText("text", {}, kCacheLines),
            "TEXT named_metrics.kv_cache_utilization=0.500000, "
            "named_metrics.max_token_capacity=640, named_metrics.requests_in_flight=0, "
            "named_metrics.queue_oldest_seconds=0.000000");
  EXPECT_TRUE(LoadText("json", {}, kCacheLines)
                  .starts_with("JSON {\"named_metrics\":{\"kv_cache_utilization\":0.5,"
                               "\"max_token_capacity\":640,"));
}

TEST(LoadMessage, HasTheTotalsOfAllModels) {
  const std::map<std::string, double> metrics =
      NamedMetrics(LoadMessage({.requests_in_flight = 5, .queue_oldest_seconds = 0.25}, ""));
  EXPECT_EQ(metrics, (std::map<std::string, double>{{"requests_in_flight", 5},
                                                    {"queue_oldest_seconds", 0.25}}));
}

TEST(LoadMessage, HasTheCacheOfALanguageModel) {
  const std::map<std::string, double> metrics = NamedMetrics(LoadMessage({}, kCacheLines));
  EXPECT_EQ(metrics.at("kv_cache_utilization"), 0.5);
  EXPECT_EQ(metrics.at("max_token_capacity"), 640);
}

}  // namespace
}  // namespace nereid::common
