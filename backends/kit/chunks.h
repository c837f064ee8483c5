// SPDX-License-Identifier: Apache-2.0
// The buffers of an input one after the other, wherever they are.
#pragma once

#include <cstdint>

#include "backend_kit/tensors.h"

namespace nereid::backend {

// Calls take(offset, chunk), an Error() callable, for each buffer of an input, in order, with its
// place in the input. Fails if the buffers hold more or less than view.byte_size.
template <typename Take>
Error ForEachChunk(const InputView& view, Take&& take) {
  uint64_t taken = 0;
  for (uint32_t b = 0; b < view.buffer_count; ++b) {
    NEREID_KIT_ASSIGN(const InputChunk chunk, ReadChunk(view, b));
    if (chunk.size > view.byte_size - taken) {
      return Error::InvalidArgument(StrCat("buffer size for input '", view.name,
                                           "' exceeds batch byte size ", view.byte_size));
    }
    NEREID_KIT_TRY(take(taken, chunk));
    taken += chunk.size;
  }
  if (taken != view.byte_size) {
    return Error::InvalidArgument(StrCat("unexpected total byte size ", taken, " for input '",
                                         view.name, "', expecting ", view.byte_size));
  }
  return {};
}

}  // namespace nereid::backend
