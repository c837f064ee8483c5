// SPDX-License-Identifier: Apache-2.0
// LogSettings and TraceSetting: reading and changing the log and trace settings of a running
// server.
#pragma once

#include "base/status.h"
#include "grpc_service.pb.h"
#include "service/service.h"

namespace nereid::grpc {

// Each applies all changes of the request or, with an error, none, and returns the resulting
// settings. Clients cannot change where the log and the traces are written.
base::Status LogSettings(service::Service& service, const inference::LogSettingsRequest& request,
                         inference::LogSettingsResponse& reply);
base::Status TraceSetting(service::Service& service, const inference::TraceSettingRequest& request,
                          inference::TraceSettingResponse& reply);

}  // namespace nereid::grpc
