// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include "doctor/folders.h"
#include "doctor/gpu.h"
#include "doctor/machine.h"
#include "doctor/versions.h"

namespace nereid::doctor {

Report Examine(const Options& options) {
  const base::SystemFiles files;
  Report report;
  ExaminePorts(files, options.ports, report);
  ExamineLimits(files, report);
  ExamineProcessor(files, report);
  ExamineGpus(files, TryCudaDriver, report);
  ExaminePlugins(options.plugins, report);
  ExamineRepositories(options.repositories, report);
  ExamineTemporaryFolder(report);
  ExamineClocks(files, report);
  ExamineKernel(files, report);
  ListVersions(files, options.version, report);
  return report;
}

}  // namespace nereid::doctor
