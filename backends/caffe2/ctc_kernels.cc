// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/ctc_kernels.h"

#include <array>

#include "caffe2_backend/ctc.h"
#include "caffe2_backend/custom_operator.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::StrCat;

namespace {

// Both operators; they differ in how they read one sequence.
template <bool kIsBeam>
class Ctc {
 public:
  static constexpr const char* kName = kIsBeam ? "CtcBeams" : "CtcGreedy";
  static constexpr OperatorTensor kInputs[] = {{kFloats}, {kInt64s, true}};
  static constexpr auto kOutputs = [] {
    std::array<OperatorTensor, kIsBeam ? 3 : 2> outputs{};
    outputs[0] = {kInt32s};
    outputs[1] = {kInt32s};
    if constexpr (kIsBeam) {
      outputs[2] = {kFloats, true};
    }
    return outputs;
  }();

  explicit Ctc(const NodeAttributes& attributes)
      : merge_(attributes.Int("merge") != 0),
        search_{.width = static_cast<size_t>(attributes.Int("beam_width")),
                .candidates = static_cast<size_t>(attributes.Int("candidates")),
                .threshold = attributes.Real("threshold")} {}

  Error Compute(const Arguments& arguments) const {
    NEREID_KIT_ASSIGN(const InputTensor scores, arguments.Input(0));
    NEREID_KIT_ASSIGN(const InputTensor lengths, arguments.Input(1));
    if (scores.dims.size() != 3 || scores.dims[2] < 1) {
      return Error::InvalidArgument("scores need the dimensions time, batch and label");
    }
    const auto times = static_cast<size_t>(scores.dims[0]);
    const auto batch = static_cast<size_t>(scores.dims[1]);
    const auto labels = static_cast<size_t>(scores.dims[2]);
    if (lengths && lengths.size != batch) {
      return Error::InvalidArgument(
          StrCat("there are ", lengths.size, " lengths for a batch of ", batch));
    }
    CtcResult result;
    for (size_t n = 0; n < batch; ++n) {
      const int64_t length = lengths ? lengths.as<int64_t>()[n] : static_cast<int64_t>(times);
      if (length < 0 || static_cast<size_t>(length) > times) {
        return Error::InvalidArgument(
            StrCat("a sequence has the length ", length, ", where there are ", times, " times"));
      }
      const CtcScores one{.first = scores.as<float>().data() + n * labels,
                          .times = static_cast<size_t>(length),
                          .stride = batch * labels,
                          .labels = labels};
      if constexpr (kIsBeam) {
        SearchBeams(one, search_, &result);
      } else {
        DecodeGreedily(one, merge_, &result);
      }
    }
    NEREID_KIT_TRY(arguments.Put<int32_t>(0, result.lengths));
    NEREID_KIT_TRY(arguments.Put<int32_t>(1, result.labels));
    return kIsBeam ? arguments.Put<float>(2, result.probabilities) : Error();
  }

 private:
  const bool merge_;
  const CtcSearch search_;
};

}  // namespace

const OrtCustomOp* CtcGreedyOperator() {
  static const CustomOperator<Ctc<false>> greedy;
  return &greedy;
}

const OrtCustomOp* CtcBeamsOperator() {
  static const CustomOperator<Ctc<true>> beams;
  return &beams;
}

}  // namespace nereid::caffe2
