// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/processor.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "backend_kit/error.h"

namespace nereid::pytorch {

using backend::StrCat;

namespace {

// What `AOTI_CPU_ISA` calls a group of instructions, and the flags of a processor that has it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kInstructions = {{
    {"AVX2", "avx2 fma f16c"},
    {"AVX512", "avx512f avx512dq avx512vl avx512bw fma"},
    {"AVX512_VNNI", "avx512_vnni"},
    {"AMX_TILE", "amx_tile amx_bf16 amx_int8"},
}};

template <typename Each>
void ForEachWord(std::string_view text, Each&& each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) {
      each(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::string CpuFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("flags")) {
      return line.substr(line.find(':') + 1) + " ";
    }
  }
  return " ";
}

std::string LackingInstructions(std::string_view needed, std::string_view cpu_flags) {
  std::string lacking;
  ForEachWord(needed, [&](std::string_view group) {
    for (const auto& [name, flags] : kInstructions) {
      if (name != group) {
        continue;
      }
      ForEachWord(flags, [&](std::string_view flag) {
        if (lacking.empty() && cpu_flags.find(StrCat(" ", flag, " ")) == cpu_flags.npos) {
          lacking = group;
        }
      });
    }
  });
  return lacking;
}

}  // namespace nereid::pytorch
