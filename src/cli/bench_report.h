// SPDX-License-Identifier: Apache-2.0
// The report of `nereid bench` as one HTML page that needs no other file.
#pragma once

#include <string>
#include <string_view>

#include "cli/bench_result.h"
#include "cli/table.h"

namespace nereid::cli {

// `before` is an earlier run to compare with, or null.
std::string BenchReport(const BenchResult& result, const BenchResult* before);

// A page with this heading around `body`.
std::string HtmlPage(std::string_view heading, std::string_view body);

// The table as HTML. It scrolls by itself where it is too wide, also by keyboard; `label` is read
// to people who do not see it.
std::string HtmlTable(const Table& table, std::string_view label);

}  // namespace nereid::cli
