// SPDX-License-Identifier: Apache-2.0
// The backend "forest", which serves decision forests written by LightGBM. A model needs
// `model.txt` in its version folder and only `backend: "forest"` in its configuration; the rest is
// read from the file. A request has `features`, FP32 [features of the model], and its response
// `prediction`, FP32 [outputs of the model].
#include <fstream>
#include <memory>
#include <sstream>

#include "backend_kit/batch.h"
#include "backend_kit/config.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/location.h"
#include "backend_kit/tensors.h"
#include "forest.h"
#include "nereid/backend_traits.h"

namespace {

namespace kit = nereid::backend;
using forest::Forest;
using kit::Error;
using kit::Result;

constexpr int64_t kDefaultMaxBatchSize = 64;

Result<Forest> LoadForest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error::Unavailable("cannot read '" + path + "'");
  }
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return Forest::Parse(text.view());
  } catch (const std::runtime_error& e) {
    return Error::InvalidArgument("'" + path + "': " + e.what());
  }
}

// One forest, which all instances of the model share. Immutable.
class Model {
 public:
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle, kit::NoBackendState&) {
    NEREID_KIT_ASSIGN(const kit::ModelLocation location, kit::Locate(handle));
    NEREID_KIT_ASSIGN(Forest forest, LoadForest(location.version_folder + "/model.txt"));
    NEREID_KIT_ASSIGN(kit::ModelConfig config, kit::ModelConfig::Load(handle));
    const auto features = static_cast<int64_t>(forest.feature_count());
    const auto outputs = static_cast<int64_t>(forest.output_count());
    // Settings that the user left out are completed, unless the server was started with
    // --disable-auto-complete-config; those that are written must fit the file.
    bool may_complete = false;
    NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &may_complete));
    const bool is_empty = config.tensors("input").Empty() && config.tensors("output").Empty();
    if (may_complete && is_empty) {
      config.AddTensor("input", "features", "TYPE_FP32", {{features}});
      config.AddTensor("output", "prediction", "TYPE_FP32", {{outputs}});
      if (config.max_batch_size() == 0) {
        config.SetMaxBatchSize(kDefaultMaxBatchSize);
      }
      NEREID_KIT_TRY(config.Store(handle));
    }
    NEREID_KIT_TRY(kit::ExpectTensors(config, "input", {{"features", "TYPE_FP32", {features}}}));
    NEREID_KIT_TRY(kit::ExpectTensors(config, "output", {{"prediction", "TYPE_FP32", {outputs}}}));
    kit::LogInfo(kit::StrCat("model '", location.name, "' is a forest of ", features,
                             " features and ", outputs, " outputs"));
    return std::make_unique<Model>(std::move(forest));
  }
  explicit Model(Forest f) : forest(std::move(f)) {}

  const Forest forest;
};

class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    NEREID_KIT_TRY(kit::RequireCpu(handle, "forest"));
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), forest_(model.forest) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    batch_.Process(handle_, requests, count, [this]() -> uint64_t {
      uint64_t rows = 0;
      batch_.MarkComputeStart();
      for (uint32_t r = 0; r < batch_.size(); ++r) {
        if (!batch_.live(r)) {
          continue;
        }
        if (auto predicted = Predict(r); predicted.ok()) {
          rows += predicted.value();
        } else {
          batch_.Fail(r, predicted.TakeError());
        }
      }
      batch_.MarkComputeEnd();
      return rows;
    });
  }

 private:
  // Predicts all rows of request r; returns their number.
  Result<uint64_t> Predict(uint32_t r) {
    NEREID_KIT_ASSIGN(const kit::InputView input, kit::ReadInput(batch_.request(r), 0));
    NEREID_KIT_ASSIGN(const std::span<const char> bytes,
                      kit::ContiguousInput(input, sizeof(float), scratch_));
    const std::span features(reinterpret_cast<const float*>(bytes.data()),
                             bytes.size() / sizeof(float));
    const size_t width = forest_.feature_count();
    const size_t rows = features.size() / width;
    shape_.assign(input.shape.begin(), input.shape.end());
    shape_.back() = static_cast<int64_t>(forest_.output_count());
    const uint64_t byte_size = rows * forest_.output_count() * sizeof(float);
    NEREID_KIT_ASSIGN(char* const buffer, kit::AddOutput(batch_.response(r), "prediction",
                                                         input.datatype, shape_, byte_size));
    const std::span predictions(reinterpret_cast<float*>(buffer), byte_size / sizeof(float));
    for (size_t row = 0; row < rows; ++row) {
      forest_.Predict(features.subspan(row * width, width),
                      predictions.subspan(row * forest_.output_count(), forest_.output_count()));
    }
    return rows;
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Forest& forest_;
  kit::Batch batch_;
  kit::ScratchBuffer scratch_;
  std::vector<int64_t> shape_;
};

}  // namespace

// The traits say that executions neither block nor depend on their thread, and write every byte of
// their outputs, so that a server that knows them may take shorter paths.
NEREID_KIT_ENTRY_POINTS(kit::NoBackendState, Model, Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
