// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/run.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backend_kit/scatter.h"
#include "tensorflow_backend/status.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::StrCat;

namespace {

// Memory that TensorFlow takes as it is, rather than copying it, is aligned to this.
constexpr size_t kAlignment = 64;

// TensorFlow prepares and keeps an execution for each set of outputs that it is asked for, so
// clients must not be able to make any number of sets.
constexpr size_t kMaxSets = 8;

void KeepMemory(void*, size_t, void*) {}

// Texts of an input.
void FreeTexts(void* data, size_t size, void* library) {
  auto* const texts = static_cast<c::Text*>(data);
  for (size_t i = 0; i < size / sizeof(c::Text); ++i) {
    static_cast<const Library*>(library)->StringDealloc(&texts[i]);
  }
  std::free(data);
}

// Calls TF_DeleteTensor.
struct Delete {
  const Library* library = nullptr;
  void operator()(c::Tensor* tensor) const { library->DeleteTensor(tensor); }
};

class TfRequest : public Request {
 public:
  explicit TfRequest(RunPlan plan)
      : plan_(std::move(plan)),
        library_(*plan_.library),
        status_(library_),
        results_(plan_.outputs.size()) {}
  ~TfRequest() override { TfRequest::Clear(); }

  Error Run(std::span<const CallInput> inputs, std::span<const char> wanted) override {
    Clear();
    if (plan_.turn != nullptr) {
      plan_.turn->acquire();
      has_turn_ = true;
    }
    feeds_.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_present) {
        NEREID_KIT_TRY(AddInput(i, inputs[i]));
      }
    }
    ChooseFetches(wanted);
    fetched_.assign(fetches_.size(), nullptr);
    library_.SessionRun(plan_.session, nullptr, feeds_.data(), values_.data(),
                        static_cast<int>(feeds_.size()), fetches_.data(), fetched_.data(),
                        static_cast<int>(fetches_.size()), nullptr, 0, nullptr, status_.get());
    for (size_t f = 0; f < fetched_.size(); ++f) {
      results_[positions_[f]].tensor = Owned(fetched_[f], Delete{&library_});
    }
    FreeInputs();
    return status_.ToError();
  }

  CallOutput Output(size_t o) override {
    Fetched& result = results_[o];
    c::Tensor* const tensor = result.shared != nullptr ? result.shared.get() : result.tensor.get();
    const int rank = library_.NumDims(tensor);
    result.shape.resize(static_cast<size_t>(rank));
    for (int d = 0; d < rank; ++d) {
      result.shape[static_cast<size_t>(d)] = library_.Dim(tensor, d);
    }
    CallOutput output{.shape = result.shape};
    const size_t size = library_.TensorByteSize(tensor);
    const auto* const data = static_cast<const char*>(library_.TensorData(tensor));
    if (plan_.outputs[o].type == kString) {
      ReadTexts(reinterpret_cast<const c::Text*>(data), size / sizeof(c::Text), &result.strings);
      output.strings = result.strings;
      return output;
    }
    output.data = data;
    if (size >= backend::OutputWriter::kMinLentBytes && !IsInput(data) && !plan_.changes_state) {
      if (result.shared == nullptr) {
        result.shared = std::move(result.tensor);
      }
      output.keeper = result.shared;
    }
    return output;
  }

  void Clear() override {
    FreeInputs();
    for (Fetched& result : results_) {
      result.tensor.reset();
      result.shared.reset();
      result.strings.clear();
    }
    lent_.clear();
    if (std::exchange(has_turn_, false)) {
      plan_.turn->release();
    }
  }

 private:
  using Owned = std::unique_ptr<c::Tensor, Delete>;

  struct Fetched {
    Owned tensor;
    std::shared_ptr<c::Tensor> shared;  // instead of tensor, once it may be lent
    std::vector<int64_t> shape;
    std::vector<std::string_view> strings;
  };

  Error AddInput(size_t i, const CallInput& input) {
    const TensorInfo& info = plan_.inputs[i];
    std::span<const int64_t> shape = input.shape;
    // A configuration cannot have no dimensions: a scalar comes with some of size one.
    const bool is_scalar =
        info.has_rank && info.dims.empty() &&
        std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d == 1; });
    if (is_scalar) {
      shape = {};
    }
    c::Tensor* const tensor = info.type == kString ? NewTexts(shape, input.strings)
                                                   : NewNumbers(info.type, shape, input.data);
    if (tensor == nullptr) {
      return Error::Internal(StrCat("failed to create a tensor for input '", info.place, "'"));
    }
    feeds_.push_back(plan_.feeds[i]);
    values_.push_back(tensor);
    return {};
  }

  // The tensor is the memory of the request if it is aligned and nothing keeps it after the run.
  // TensorFlow does not write to it, because it has another reference here.
  c::Tensor* NewNumbers(int type, std::span<const int64_t> shape, std::span<const char> data) {
    const auto rank = static_cast<int>(shape.size());
    const bool is_aligned = reinterpret_cast<uintptr_t>(data.data()) % kAlignment == 0;
    if (!plan_.changes_state && is_aligned && !data.empty()) {
      lent_.push_back(data);
      return library_.NewTensor(type, shape.data(), rank, const_cast<char*>(data.data()),
                                data.size(), KeepMemory, nullptr);
    }
    c::Tensor* const tensor = library_.AllocateTensor(type, shape.data(), rank, data.size());
    if (tensor != nullptr && !data.empty()) {
      std::memcpy(library_.TensorData(tensor), data.data(), data.size());
    }
    return tensor;
  }

  // Texts are copied: TensorFlow has them in objects of its own.
  c::Tensor* NewTexts(std::span<const int64_t> shape, std::span<const std::string_view> strings) {
    const size_t size = strings.size() * sizeof(c::Text);
    auto* const texts = static_cast<c::Text*>(
        std::aligned_alloc(kAlignment, (size + kAlignment) / kAlignment * kAlignment));
    if (texts == nullptr) {
      return nullptr;
    }
    for (size_t i = 0; i < strings.size(); ++i) {
      library_.StringInit(&texts[i]);
      library_.StringCopy(&texts[i], strings[i].data(), strings[i].size());
    }
    return library_.NewTensor(kString, shape.data(), static_cast<int>(shape.size()), texts, size,
                              FreeTexts, const_cast<Library*>(&library_));
  }

  // Fetches the wanted outputs, or all of them once there were too many different sets.
  void ChooseFetches(std::span<const char> wanted) {
    const bool any = std::any_of(wanted.begin(), wanted.end(), [](char one) { return one != 0; });
    const bool all = !any || !IsSmallNumberOfSets(wanted);
    fetches_.clear();
    positions_.clear();
    for (size_t o = 0; o < plan_.fetches.size(); ++o) {
      if (all || wanted[o] != 0) {
        fetches_.push_back(plan_.fetches[o]);
        positions_.push_back(o);
      }
    }
  }

  bool IsSmallNumberOfSets(std::span<const char> wanted) {
    const auto is_same = [&](const std::vector<char>& set) {
      return std::equal(set.begin(), set.end(), wanted.begin(), wanted.end());
    };
    if (std::any_of(sets_.begin(), sets_.end(), is_same)) {
      return true;
    }
    if (sets_.size() == kMaxSets) {
      return false;
    }
    sets_.emplace_back(wanted.begin(), wanted.end());
    return true;
  }

  void ReadTexts(const c::Text* texts, size_t count, std::vector<std::string_view>* strings) {
    strings->clear();
    for (size_t i = 0; i < count; ++i) {
      strings->emplace_back(library_.StringGetDataPointer(&texts[i]),
                            library_.StringGetSize(&texts[i]));
    }
  }

  // Whether an output is in the memory of a request, which is the client's after the response.
  bool IsInput(const char* data) const {
    return std::any_of(lent_.begin(), lent_.end(), [data](std::span<const char> input) {
      return std::less_equal<>()(input.data(), data) &&
             std::less<>()(data, input.data() + input.size());
    });
  }

  void FreeInputs() {
    for (c::Tensor* const tensor : values_) {
      library_.DeleteTensor(tensor);
    }
    values_.clear();
  }

  const RunPlan plan_;
  const Library& library_;
  const Status status_;
  std::vector<c::Output> feeds_;             // of this run
  std::vector<c::Tensor*> values_;           // of the feeds; owned
  std::vector<c::Output> fetches_;           // of this run
  std::vector<size_t> positions_;            // of the fetches among the outputs
  std::vector<c::Tensor*> fetched_;          // by TensorFlow
  std::vector<Fetched> results_;             // of each output
  std::vector<std::span<const char>> lent_;  // memory of requests in this run
  bool has_turn_ = false;                    // until Clear
  std::vector<std::vector<char>> sets_;      // of outputs that were wanted together
};

}  // namespace

std::unique_ptr<Request> MakeRequest(RunPlan plan) {
  return std::make_unique<TfRequest>(std::move(plan));
}

}  // namespace nereid::tensorflow
