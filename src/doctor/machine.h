// SPDX-License-Identifier: Apache-2.0
// The machine that a server would run on: what limits it, its processor, memory, clocks and the
// settings of its kernel. Each function adds findings of one area.
#pragma once

#include "base/system_files.h"
#include "doctor/report.h"

namespace nereid::doctor {

// Descriptors, processes, locked memory, shared memory, and the limits of control groups.
void ExamineLimits(const base::SystemFiles& files, Report& report);
// Features of the processor, cores, NUMA nodes, how busy it is, and memory.
void ExamineProcessor(const base::SystemFiles& files, Report& report);
// Clocks, as far as the server and its traces, timeouts and caches of files depend on them.
void ExamineClocks(const base::SystemFiles& files, Report& report);
// Settings of the kernel that servers feel.
void ExamineKernel(const base::SystemFiles& files, Report& report);

// The part of ExamineLimits about open files, for tests: what it finds depends on nothing else.
void JudgeDescriptors(uint64_t soft, uint64_t hard, Report& report);
// Returns the level of x86-64 (1 to 4) that a processor with these features has.
int LevelOfX86(const std::vector<std::string_view>& features);

}  // namespace nereid::doctor
