// SPDX-License-Identifier: Apache-2.0
// The fake service under the names of this module.
#pragma once

#include "service/testing/fake_service.h"

namespace nereid::http {

using service::Echo;
using service::FakeService;
using service::MakeModel;
using service::Pin;

}  // namespace nereid::http
