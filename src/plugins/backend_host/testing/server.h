// SPDX-License-Identifier: Apache-2.0
// A server for the tests of this module. Backends only get its address.
#pragma once

#include "triton/core/tritonserver.h"

struct TRITONSERVER_Server {};
