// SPDX-License-Identifier: Apache-2.0
// A short report on standard error when the process crashes: the signal, what the thread was
// executing (core/execution_mark.h) and its stack. Most crashes are those of plug-ins, and whoever
// runs the server has to know which model, and which request, brought it down.
//
// The process then ends as it would have without a report, with the same signal and core dump.
#pragma once

namespace nereid::app {

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, except those that something else handles
// already, such as a sanitizer. Called once, by the main thread.
void InstallCrashReport();

}  // namespace nereid::app
