// SPDX-License-Identifier: Apache-2.0
// How tensors go from step to step and to the client: what a step's request is filled with, and
// what the ensemble's response is made from.
#pragma once

#include "base/status.h"
#include "core/model.h"
#include "core/request.h"
#include "core/response.h"
#include "schedule/ensemble_frame.h"

namespace nereid::schedule {

// Gives `request`, whose model is set, the inputs of `step`: views of the tensors in `frame`, with
// the batch dimension added or taken away where only one of the two models has one.
void FillStepInputs(core::Request& request, const EnsembleStep& step, const EnsembleFrame& frame);

// The sequence that a request of `step` belongs to: the one of the responses it reads, or that of
// the ensemble's `client` request when it reads none. A text belongs to those.
EnsembleSequence SequenceOfStep(const core::Request& client, const EnsembleStep& step,
                                const EnsembleFrame& frame);

// The response of `ensemble` to `client` from the tensors in `frame`, which needs all outputs. Its
// tensors are shared with the responses of the steps, which the frame then does not read any more.
base::Result<core::ResponsePtr> MakeEnsembleResponse(core::Request& client,
                                                     const core::Model& ensemble,
                                                     const EnsembleFrame& frame);

}  // namespace nereid::schedule
