// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs: whether there are any, whether the driver works, and what is missing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/system_files.h"
#include "doctor/report.h"

namespace nereid::doctor {

// Opens the CUDA driver in a process of its own and returns a text for each GPU that it has.
base::Result<std::vector<std::string>> TryCudaDriver();

// `try_driver` is TryCudaDriver but in tests.
void ExamineGpus(const base::SystemFiles& files,
                 const std::function<base::Result<std::vector<std::string>>()>& try_driver,
                 Report& report);

}  // namespace nereid::doctor
