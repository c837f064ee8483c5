// SPDX-License-Identifier: Apache-2.0
// The result of `nereid bench` as tables for people.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_result.h"
#include "cli/table.h"

namespace nereid::cli {

Table LevelTable(const BenchResult& result);
Table ErrorTable(const BenchResult& result);
Table ComparisonTable(const std::vector<LevelComparison>& levels);

// "± 1.2 %"; "-" if nothing is known.
std::string MarginText(const Estimate& estimate);
// "+12.3 % ± 2 %".
std::string ChangeText(const Difference& difference);
// "850 us"; "-" for zero.
std::string TimeText(double us);

// One sentence about each thing that makes the figures less than they seem.
std::vector<std::string> BenchWarnings(const BenchResult& result);

}  // namespace nereid::cli
