// SPDX-License-Identifier: Apache-2.0
// Non-blocking sockets on 127.0.0.1.
#pragma once

#include "loadgen/poller.h"

namespace nereid::bench {

// Returns a connected, non-blocking socket that does not delay small packets. Ends the process if
// no server listens.
int ConnectTo(int port);

// For the lower limits: a listening socket on 127.0.0.1, and a connection from it, like that of
// ConnectTo.
int ListenAt(int port);
int AcceptFrom(int listener);

// Raises the process's limit of open files to the maximum that the system allows.
void RaiseFileLimit();

using loadgen::Poller;

}  // namespace nereid::bench
