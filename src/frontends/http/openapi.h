// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document of the v2 REST API: openapi.json beside this file, which must describe every
// route (openapi_test.cc) and nothing that is not served (tests/e2e/test_openapi.py).
#pragma once

#include <string_view>

namespace nereid::http {

std::string_view OpenApiDocument();

}  // namespace nereid::http
