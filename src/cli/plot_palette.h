// SPDX-License-Identifier: Apache-2.0
// The colours of reports, by the names that style sheets use. They are those of
// tools/plot_style.py; a test compares them.
#pragma once

#include <string_view>

namespace nereid::cli {

struct PlotColour {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

inline constexpr PlotColour kPlotPalette[] = {
    {"back", "#f5f7f8", "#10171d"},
    {"card", "#ffffff", "#18222b"},
    {"text", "#17212b", "#e6edf2"},
    {"muted", "#52606d", "#a3b2bf"},
    {"line", "#d5dce2", "#33424f"},
    {"good", "#14663a", "#7fdba3"},
    {"bad", "#a11527", "#ffa3ad"},
    // Of what is shown, PlotSeries::colour.
    {"c1", "#00796b", "#4db6a9"},
    {"c2", "#b0170c", "#ff8162"},
    {"c3", "#9f7f12", "#edd473"},
    {"c4", "#6b00a9", "#a664fe"},
    {"c5", "#0c84fa", "#538eb0"},
    {"c6", "#d53daf", "#fc94e6"},
    {"c7", "#590915", "#ee560c"},
    {"c8", "#2c1262", "#d1e7ff"},
    {"past", "#8a8f94", "#696c6e"},
};

}  // namespace nereid::cli
