// SPDX-License-Identifier: Apache-2.0
// The instructions that this machine's processor has, and that a compiled model needs.
#pragma once

#include <string>
#include <string_view>

namespace nereid::pytorch {

// The flags in /proc/cpuinfo, with a space on each side.
std::string CpuFlags();

// Returns the first group of instructions in `needed`, as AOTI_CPU_ISA lists them, that a processor
// with these flags lacks; nothing if it has all.
std::string LackingInstructions(std::string_view needed, std::string_view cpu_flags);

}  // namespace nereid::pytorch
