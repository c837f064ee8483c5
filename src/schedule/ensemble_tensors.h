// SPDX-License-Identifier: Apache-2.0
// Passes tensors from step to step and to the client: the inputs of a step's request, and the
// ensemble's response.
#pragma once

#include "base/status.h"
#include "core/model.h"
#include "core/request.h"
#include "core/response.h"
#include "schedule/ensemble_frame.h"

namespace nereid::schedule {

// Sets the inputs of `step` in `request`, whose model is set: views of the tensors in `frame`, with
// the batch dimension added or removed if only one of the two models has one.
void FillStepInputs(core::Request& request, const EnsembleStep& step, const EnsembleFrame& frame);

// Returns the sequence that a request of `step` belongs to: that of the responses it reads, or that
// of the ensemble's `client` request if it reads none. A text in it belongs to those.
EnsembleSequence SequenceOfStep(const core::Request& client, const EnsembleStep& step,
                                const EnsembleFrame& frame);

// Makes the response of `ensemble` to `client` from the tensors in `frame`, which must have all
// outputs. Its tensors are shared with the steps' responses, which the frame then no longer reads.
base::Result<core::ResponsePtr> MakeEnsembleResponse(core::Request& client,
                                                     const core::Model& ensemble,
                                                     const EnsembleFrame& frame);

}  // namespace nereid::schedule
