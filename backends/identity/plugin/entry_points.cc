// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the identity backend.
#include "backend_kit/entry_points.h"
#include "identity_backend/model.h"

NEREID_KIT_ENTRY_POINTS(nereid::identity::BackendState, nereid::identity::Model,
                        nereid::identity::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS |
                            NEREIDBACKEND_TRAIT_STANDS_CHANGES)
