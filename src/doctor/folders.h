// SPDX-License-Identifier: Apache-2.0
// Folders that a server reads and writes: repositories, and that for temporary files.
#pragma once

#include <string>
#include <vector>

#include "doctor/report.h"

namespace nereid::doctor {

void ExamineTemporaryFolder(Report& report);
// A repository in an object store is only named: nothing is sent anywhere.
void ExamineRepositories(const std::vector<std::string>& repositories, Report& report);

}  // namespace nereid::doctor
