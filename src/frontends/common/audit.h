// SPDX-License-Identifier: Apache-2.0
// The line in the log for each request that changes how the server serves: who, what, from where,
// and what came of it.
#pragma once

#include <string>
#include <string_view>

#include "access/grant.h"

namespace nereid::common {

// A request to be logged once its result is known.
struct AuditedCall {
  std::string who;      // the id of the sender
  std::string what;     // "POST /v2/repository/models/m/load"
  std::string address;  // of the client
};

// Returns the id of the sender; null is nobody in particular.
std::string WhoIs(const access::Grant* grant);

// `is_refused` makes the line a warning.
void Audit(const AuditedCall& call, std::string_view result, bool is_refused);

}  // namespace nereid::common
