// SPDX-License-Identifier: Apache-2.0
// What stands behind `nereid doctor`: examines this machine for all that keeps a server from
// starting or from being fast. Changes nothing, and sends nothing anywhere.
#pragma once

#include <string>
#include <vector>

#include "doctor/plugins.h"
#include "doctor/ports.h"
#include "doctor/report.h"

namespace nereid::doctor {

// What is examined.
struct Options {
  std::string version;  // of the program
  std::vector<Port> ports;
  std::vector<std::string> repositories;
  PluginFolders plugins;
};

// REQUIRES: this process has one thread, because plug-ins are tried in children.
Report Examine(const Options& options);

}  // namespace nereid::doctor
