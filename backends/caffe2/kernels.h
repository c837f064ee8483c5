// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX lacks, as custom operators of ONNX Runtime (domain Graph::kOwnDomain).
#pragma once

#include "onnxruntime_backend/ort.h"

namespace nereid::caffe2 {

// SegmentReduce(data, indices?, lengths, weights?, mapping?, scale_bias?) → rows
//
// Row m of the result combines the next lengths[m] rows of data: those that the indices name, or
// those that follow. The attribute `reduction` says how.
inline constexpr int64_t kSum = 0;
inline constexpr int64_t kMean = 1;
inline constexpr int64_t kMax = 2;
// Weights are factors of the rows, one for each index, or, with `by_position`, one for each
// position in a segment. A mapping replaces an index by mapping[index], -1 leaving it out.
//
// Tables of bytes have a scale and a bias for each row: in scale_bias, or, if `fused_bits` is 8, 4
// or 2, at the end of the row (as floats after 8 bits, in 16 bits each after fewer).
//
// SparseLookup(indices, lengths, mapping, weights?) → indices, lengths, weights
//
// Replaces indices in the same way; the results have no trace of those that are left out.
//
// CtcGreedy(scores, lengths?) → lengths, values, and CtcBeams(scores, lengths?) → lengths, values,
// probabilities read labels from the scores [time, batch, label] of a network for sequences, where
// label 0 means none.

// Makes the domain, which outlives every session that uses it.
backend::Result<onnxruntime::Owned<OrtCustomOpDomain>> MakeDomain();

}  // namespace nereid::caffe2
