// SPDX-License-Identifier: Apache-2.0
// Which software and hardware this is, for reports of bugs.
#pragma once

#include <string>

#include "base/system_files.h"
#include "doctor/report.h"

namespace nereid::doctor {

// `version` is that of the program. Puts the versions in front of those that are there.
void ListVersions(const base::SystemFiles& files, const std::string& version, Report& report);

}  // namespace nereid::doctor
