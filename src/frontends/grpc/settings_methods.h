// SPDX-License-Identifier: Apache-2.0
// LogSettings and TraceSetting: what may be changed of a running server's log and traces.
#pragma once

#include "base/status.h"
#include "grpc_service.pb.h"
#include "service/service.h"

namespace nereid::grpc {

// Each takes over all that the request wants changed or, with an error, nothing, and says what
// holds then. Where the log and the traces are written cannot be changed by clients.
base::Status LogSettings(service::Service& service, const inference::LogSettingsRequest& request,
                         inference::LogSettingsResponse& reply);
base::Status TraceSetting(service::Service& service, const inference::TraceSettingRequest& request,
                          inference::TraceSettingResponse& reply);

}  // namespace nereid::grpc
