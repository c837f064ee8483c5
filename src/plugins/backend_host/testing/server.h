// SPDX-License-Identifier: Apache-2.0
// A server for the tests of this module, in which backends get its address and nothing else.
#pragma once

#include "triton/core/tritonserver.h"

struct TRITONSERVER_Server {};
