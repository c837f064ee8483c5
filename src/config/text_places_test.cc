// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "config/text_diagnosis.h"

namespace nereid::config {
namespace {

// Returns "line:column value" of a field, or "nowhere".
std::string At(std::string_view text, std::string_view field, std::string_view found = {}) {
  const TextPlaces places = TextPlaces::Read(text);
  const TextPlace* const place = places.Find(field, found);
  return place == nullptr ? "nowhere"
                          : fmt::format("{}:{} {}", place->line, place->column, place->value);
}

constexpr std::string_view kText =
    "name: \"m\"\n"
    "max_batch_size: -4\n"
    "input [\n"
    "  { name: \"a\" dims: [ 3, -1 ] },\n"
    "  { name: \"b\" dims: 5 dims: 6 }\n"
    "]\n"
    "dynamic_batching { preferred_batch_size: [ 2, 8 ] }\n"
    "parameters { key: \"k.1\" value { string_value: \"v\" } }\n";

TEST(TextPlaces, AreThoseOfTheValuesOfScalars) {
  EXPECT_EQ(At(kText, "name"), "1:7 m");
  EXPECT_EQ(At(kText, "max_batch_size"), "2:17 -4");
  EXPECT_EQ(At(kText, "input[0].dims[1]"), "4:26 -1");
  EXPECT_EQ(At(kText, "input[1].dims[1]"), "5:29 6");
}

TEST(TextPlaces, AreThoseOfTheNamesOfListsAndTheBracesOfMessages) {
  EXPECT_EQ(At(kText, "input[0].dims"), "4:15 ");
  EXPECT_EQ(At(kText, "input[1]"), "5:3 ");
  EXPECT_EQ(At(kText, "dynamic_batching"), "7:1 ");
}

TEST(TextPlaces, OfWhatIsMissingAreThoseOfWhatIsAroundIt) {
  EXPECT_EQ(At(kText, "input[1].data_type"), "5:3 ");
  EXPECT_EQ(At(kText, "dynamic_batching.default_queue_policy.max_queue_size"), "7:1 ");
  EXPECT_EQ(At(kText, "output[0].name"), "nowhere");
}

TEST(TextPlaces, OfAListAreThoseOfTheElementThatWasFound) {
  EXPECT_EQ(At(kText, "dynamic_batching.preferred_batch_size", "8"), "7:47 8");
  EXPECT_EQ(At(kText, "dynamic_batching.preferred_batch_size", "9"), "7:20 ");
}

TEST(TextPlaces, OfMapEntriesAreFoundByTheirKeys) {
  EXPECT_EQ(At(kText, "parameters['k.1']"), "8:19 ");
  EXPECT_EQ(At(kText, "parameters['k.1'].string_value"), "8:47 v");
  EXPECT_EQ(
      At("cc_model_filenames { key: \"8.9\" value: \"m.plan\" }", "cc_model_filenames['8.9']"),
      "1:27 m.plan");
}

TEST(TextPlaces, AreReadFromTextsWithMistakes) {
  EXPECT_EQ(At("nme: 3\ninput [ { name: 3 dims: 7 ]\nmax_batch_size: 1\n", "input[0].dims"),
            "2:19 ");
}

}  // namespace
}  // namespace nereid::config
