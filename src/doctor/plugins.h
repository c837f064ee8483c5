// SPDX-License-Identifier: Apache-2.0
// The plug-ins of a server, and the frameworks that backends need: each is opened in a process of
// its own, so that it may crash.
#pragma once

#include <string>

#include "doctor/report.h"

namespace nereid::doctor {

// The folders in which a server looks for plug-ins.
struct PluginFolders {
  std::string backends;
  std::string caches;
  std::string repository_agents;
};

void ExaminePlugins(const PluginFolders& folders, Report& report);

}  // namespace nereid::doctor
