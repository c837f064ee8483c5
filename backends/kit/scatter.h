// SPDX-License-Identifier: Apache-2.0
// Deals the outputs of an execution out to the responses of its requests, and to their states.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/output_writer.h"

namespace nereid::backend {

// A member of the instance that each execution reuses. Confined to the thread that executes.
class Scattering {
 public:
  // Both outlive this.
  Scattering(const Ports& ports, const Gathering& gathering)
      : ports_(ports), gathering_(gathering) {}

  // Adds each member's rows of output `o` (a position in the ports) to its response, if it requests
  // them. A member fails if that fails.
  void ToResponses(Batch& batch, size_t o, const ModelOutput& output) {
    const OutputPort& port = ports_.outputs[o];
    if (!port.is_declared) {
      return;
    }
    if (port.scatter) {
      ByInputShapes(batch, o, output);
    } else {
      ForEachMember(batch, o, output, false);
    }
  }

  // Whether a member wants output `o` elsewhere than in the memory of `device`, or it is a state.
  bool NeedsHostData(const Batch& batch, size_t o, int64_t device) const {
    const OutputPort& port = ports_.outputs[o];
    return port.is_state ||
           std::any_of(gathering_.members().begin(), gathering_.members().end(), [&](uint32_t r) {
             return gathering_.wants(r, o) && batch.live(r) &&
                    !OutputWriter::WantsDevice(batch.request(r), port, device);
           });
  }

  // Makes each member's rows of output `o` the next value of its state. Called once all responses
  // are filled, because a failed request must leave its sequence unchanged.
  void ToStates(Batch& batch, size_t o, const ModelOutput& output) {
    if (ports_.outputs[o].is_state) {
      ForEachMember(batch, o, output, true);
    }
  }

 private:
  void ForEachMember(Batch& batch, size_t o, const ModelOutput& output, bool to_state) {
    const OutputPort& port = ports_.outputs[o];
    const OutputWriter writer(batch, port, output);
    const Error mismatch = MakeRowsShape(port, output.shape);
    uint64_t next = 0;
    for (const uint32_t r : gathering_.members()) {
      if (gathering_.is_batching() && !rows_shape_.empty()) {
        rows_shape_[0] = gathering_.batch_size(r);
      }
      auto elements = ElementCount(rows_shape_);
      const OutputPart part{.shape = rows_shape_,
                            .first = next,
                            .count = elements.ok() ? static_cast<uint64_t>(elements.value()) : 0};
      next += part.count;
      if (!batch.live(r) || !(to_state || gathering_.wants(r, o))) {
        continue;
      }
      Error error = !mismatch.ok()
                        ? Error(mismatch.code(),
                                StrCat(RequestIdPrefix(batch.request(r)), mismatch.message()))
                    : !elements.ok() ? elements.TakeError()
                    : to_state       ? writer.ToState(r, part)
                                     : writer.ToResponse(r, part);
      if (!error.ok()) {
        batch.Fail(r, std::move(error));
      }
    }
  }

  // Sets rows_shape_ to the shape of one request's part, with any number of rows. Fails if the
  // output does not have one row for each row of the batch.
  Error MakeRowsShape(const OutputPort& port, std::span<const int64_t> shape) {
    rows_shape_.assign(shape.begin(), shape.end());
    if (shape.empty()) {
      return MakeScalarShape(port);
    }
    const int64_t expected = gathering_.total_batch_size();
    if (!gathering_.is_batching() || shape[0] == expected) {
      return {};
    }
    return Error::Unsupported(StrCat(
        "failed to split the output tensor '", port.name, "' in responses: expected batch size of ",
        shape[0] < expected ? "at least " : "", expected, " in model output, got ", shape[0]));
  }

  // A configuration cannot have no dimensions, so a scalar has as many of size one as it says.
  Error MakeScalarShape(const OutputPort& port) {
    rows_shape_.assign(std::max<size_t>(port.dims.size(), 1), 1);
    if (gathering_.is_batching()) {
      rows_shape_.push_back(1);
    }
    const bool is_single = std::all_of(port.dims.begin(), port.dims.end(),
                                       [](int64_t dim) { return dim == 1 || dim == -1; });
    if (is_single && (!gathering_.is_batching() || gathering_.total_batch_size() == 1)) {
      return {};
    }
    return Error::InvalidArgument(
        StrCat("output '", port.name, "' is a scalar which is not supported."));
  }

  // Sets rows_shape_ to the shape that request r's part of the output has.
  Error TakeInputShape(const BatchOutput& scatter, uint32_t r) {
    NEREID_KIT_ASSIGN(const std::span<const int64_t> shape, gathering_.ShapeIn(scatter.source, r));
    rows_shape_ = scatter.shape;
    for (size_t d = 0; d < rows_shape_.size(); ++d) {
      if (rows_shape_[d] == -1 && d >= shape.size()) {
        return Error::Internal(StrCat("input '", scatter.source,
                                      "' has too few dimensions to give an output its shape"));
      }
      rows_shape_[d] = rows_shape_[d] == -1 ? shape[d] : rows_shape_[d];
    }
    return {};
  }

  Error CheckElements(const OutputPort& port, int64_t elements) {
    int64_t expected = 0;
    for (const uint32_t r : gathering_.members()) {
      NEREID_KIT_TRY(TakeInputShape(*port.scatter, r));
      NEREID_KIT_ASSIGN(const int64_t count, ElementCount(rows_shape_));
      if (__builtin_add_overflow(expected, count, &expected)) {
        return Error::InvalidArgument(
            "unexpected integer overflow while calculating element count.");
      }
    }
    if (expected == elements) {
      return {};
    }
    return Error::Unsupported(StrCat("failed to split the output tensor '", port.name,
                                     "' in responses: expected ", expected,
                                     " elements by the shapes of input '", port.scatter->source,
                                     "' in model output, got ", elements));
  }

  void ByInputShapes(Batch& batch, size_t o, const ModelOutput& output) {
    const OutputPort& port = ports_.outputs[o];
    const OutputWriter writer(batch, port, output);
    auto elements = ElementCount(output.shape);
    const Error mismatch =
        elements.ok() ? CheckElements(port, elements.value()) : elements.TakeError();
    uint64_t next = 0;
    for (const uint32_t r : gathering_.members()) {
      const auto give = [&]() -> Error {
        if (!mismatch.ok()) {
          return Error(mismatch.code(),
                       StrCat(RequestIdPrefix(batch.request(r)), mismatch.message()));
        }
        NEREID_KIT_TRY(TakeInputShape(*port.scatter, r));
        NEREID_KIT_ASSIGN(const int64_t count, ElementCount(rows_shape_));
        const OutputPart part{
            .shape = rows_shape_, .first = next, .count = static_cast<uint64_t>(count)};
        next += part.count;
        return batch.live(r) && gathering_.wants(r, o) ? writer.ToResponse(r, part) : Error();
      };
      if (Error error = give(); !error.ok() && gathering_.wants(r, o)) {
        batch.Fail(r, std::move(error));
      }
    }
  }

  const Ports& ports_;
  const Gathering& gathering_;
  std::vector<int64_t> rows_shape_;
};

}  // namespace nereid::backend
