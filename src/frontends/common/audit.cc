// SPDX-License-Identifier: Apache-2.0
#include "common/audit.h"

#include "base/log.h"

namespace nereid::common {

std::string WhoIs(const access::Grant* grant) {
  return grant == nullptr ? "anonymous" : grant->caller->id;
}

void Audit(const AuditedCall& call, std::string_view result, bool is_refused) {
  if (is_refused) {
    NEREID_LOG(kWarning, "audit: '{}' by '{}' from '{}': {}", call.what, call.who, call.address,
               result);
  } else {
    NEREID_LOG(kInfo, "audit: '{}' by '{}' from '{}': {}", call.what, call.who, call.address,
               result);
  }
}

}  // namespace nereid::common
