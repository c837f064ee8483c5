// SPDX-License-Identifier: Apache-2.0
// Keeps what TensorFlow writes while it is opened out of the server's output.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace nereid::tensorflow {

// Runs `body` while the standard error stream goes to memory. Afterwards writes what is there to
// the stream, except lines of Abseil's log from before its initialization, which are returned: no
// setting suppresses these. Other threads may write meanwhile; their lines come out a little later.
std::vector<std::string> HoldBackAbseilLines(const std::function<void()>& body);

}  // namespace nereid::tensorflow
