// SPDX-License-Identifier: Apache-2.0
// What would outlive a server that ends by std::quick_exit, which runs no destructors: folders, and
// processes. The kernel ends workers with the server, but not what they have started; that goes by
// process group. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

namespace nereid::python {

// Removed at a quick exit unless forgotten before.
void NoteFolder(const std::string& path);
void ForgetFolder(const std::string& path);

// A process that leads a group of its own: killed at a quick exit with all that is in it.
void NoteGroup(pid_t leader);
// Kills what is left of the group. Its leader has ended, and nobody has waited for it yet.
void EndGroup(pid_t leader);

}  // namespace nereid::python
