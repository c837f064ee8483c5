// SPDX-License-Identifier: Apache-2.0
// TensorFlow without a server: what a SavedModel costs in a loop, with one thread for each
// operation.
//
//   tensorflow_loop --model=FOLDER --rows=8 --columns=256 [--inter=1] [--input=in_x]
//                   [--output=out_y] [--seconds=2] [--pause-us=0]
//
// --inter is the number of threads that run operations: -1 runs them on the thread that asks, as
// TF_NUM_INTER_THREADS does. The model takes one FP32 tensor [rows, columns]. Prints what
// MeasureLoop does.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "load/loop.h"
#include "load/options.h"

namespace nereid::bench {
namespace {

// TF_Output.
struct Place {
  void* operation = nullptr;
  int index = 0;
};

constexpr int kFloat = 1;  // TF_FLOAT

// The functions of TensorFlow's C API that are needed here, whose objects are all void*.
class TensorFlow {
 public:
  TensorFlow() : library_(dlopen("libtensorflow_cc.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) Die(dlerror());
  }

  template <typename Function>
  Function* Find(const char* name) const {
    void* const function = dlsym(library_, name);
    if (function == nullptr) Die(std::string(name) + " is missing");
    return reinterpret_cast<Function*>(function);
  }

 private:
  void* const library_;
};

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}

// A ConfigProto: intra_op_parallelism_threads (2) is one, inter_op_parallelism_threads (5) as
// given.
std::string Config(int inter) {
  return "\x10\x01\x28" + Varint(static_cast<uint64_t>(static_cast<int64_t>(inter)));
}

// A session and what a run needs.
class Model {
 public:
  explicit Model(const Options& options)
      : run_(tensorflow_.Find<RunFunction>("TF_SessionRun")),
        make_(tensorflow_.Find<MakeFunction>("TF_NewTensor")),
        free_(tensorflow_.Find<void(void*)>("TF_DeleteTensor")),
        code_(tensorflow_.Find<int(const void*)>("TF_GetCode")),
        status_(tensorflow_.Find<void*()>("TF_NewStatus")()),
        shape_{static_cast<int64_t>(options.Count("rows", 8)),
               static_cast<int64_t>(options.Count("columns", 256))} {
    void* const graph = tensorflow_.Find<void*()>("TF_NewGraph")();
    void* const settings = tensorflow_.Find<void*()>("TF_NewSessionOptions")();
    const std::string config = Config(static_cast<int>(options.Number("inter", 1)));
    tensorflow_.Find<void(void*, const void*, size_t, void*)>("TF_SetConfig")(
        settings, config.data(), config.size(), status_);
    const char* const tag = "serve";
    session_ = tensorflow_.Find<LoadFunction>("TF_LoadSessionFromSavedModel")(
        settings, nullptr, options.Text("model", "").c_str(), &tag, 1, graph, nullptr, status_);
    Check();
    const auto find = tensorflow_.Find<void*(void*, const char*)>("TF_GraphOperationByName");
    input_.operation = find(graph, options.Text("input", "in_x").c_str());
    output_.operation = find(graph, options.Text("output", "out_y").c_str());
    // TensorFlow takes memory that is aligned to 64 bytes as it is.
    const size_t bytes = static_cast<size_t>(shape_[0] * shape_[1]) * sizeof(float);
    rows_ = static_cast<float*>(std::aligned_alloc(64, bytes));
    std::fill_n(rows_, shape_[0] * shape_[1], 0.5F);
  }

  void Run() {
    void* const in = make_(
        kFloat, shape_, 2, rows_, static_cast<size_t>(shape_[0] * shape_[1]) * sizeof(float),
        [](void*, size_t, void*) {}, nullptr);
    void* out = nullptr;
    run_(session_, nullptr, &input_, &in, 1, &output_, &out, 1, nullptr, 0, nullptr, status_);
    Check();
    free_(in);
    free_(out);
  }

 private:
  using RunFunction = void(void*, const void*, const Place*, void* const*, int, const Place*,
                           void**, int, const void* const*, int, void*, void*);
  using MakeFunction = void*(int, const int64_t*, int, void*, size_t,
                             void (*)(void*, size_t, void*), void*);
  using LoadFunction = void*(const void*, const void*, const char*, const char* const*, int, void*,
                             void*, void*);

  void Check() const {
    if (code_(status_) != 0) {
      Die(tensorflow_.Find<const char*(const void*)>("TF_Message")(status_));
    }
  }

  const TensorFlow tensorflow_;
  RunFunction* const run_;
  MakeFunction* const make_;
  void (*const free_)(void*);
  int (*const code_)(const void*);
  void* const status_;
  const int64_t shape_[2];
  void* session_ = nullptr;
  Place input_;
  Place output_;
  float* rows_ = nullptr;
};

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  using namespace nereid::bench;
  const Options options(argc, argv);
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", /*overwrite=*/0);  // before the library is opened
  Model model(options);
  MeasureLoop(options, [&] { model.Run(); });
}
