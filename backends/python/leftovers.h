// SPDX-License-Identifier: Apache-2.0
// What would outlive a server that ends by std::quick_exit, which runs no destructors: folders and
// processes. The kernel ends workers with the server, but not the processes that they have started;
// process groups serve for this. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

namespace nereid::python {

// Registers a folder that is removed at a quick exit, unless it is unregistered before.
void NoteFolder(const std::string& path);
void ForgetFolder(const std::string& path);

// Registers a process that leads its own group, which is killed at a quick exit.
void NoteGroup(pid_t leader);
// Kills the rest of the group. REQUIRES: its leader has ended and has not been waited for.
void EndGroup(pid_t leader);

}  // namespace nereid::python
