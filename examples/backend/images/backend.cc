// SPDX-License-Identifier: Apache-2.0
// The backend "images", which preprocesses and postprocesses for a classifier of small gray images,
// so that clients send a file and receive a word. One library has two kinds of models, selected by
// the parameter "operation":
//
//   decode  IMAGE, a PGM file of any size (TYPE_STRING [1])
//           ->  PIXELS (TYPE_FP32 [height * width])
//           parameters "width", "height", "white": the size and the level of white that the
//           classifier expects
//   label   PROBABILITIES (TYPE_FP32 [classes])
//           ->  LABEL (TYPE_STRING [1]), CONFIDENCE (TYPE_FP32 [1])
//           labels.txt in the model's folder has a line for each class
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/bytes.h"
#include "backend_kit/config.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/location.h"
#include "backend_kit/tensors.h"
#include "nereid/backend_traits.h"
#include "operations.h"

namespace {

namespace kit = nereid::backend;
using kit::Error;
using kit::InputView;
using kit::Result;
using kit::StrCat;

enum class Operation { kDecode, kLabel };

// A model. Immutable.
class Model {
 public:
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle, kit::NoBackendState&) {
    NEREID_KIT_ASSIGN(const kit::ModelConfig config, kit::ModelConfig::Load(handle));
    auto model = std::make_unique<Model>();
    model->is_batching = config.max_batch_size() > 0;
    const std::string operation = config.Parameter("operation").value_or("");
    if (operation == "decode") {
      NEREID_KIT_TRY(model->InitDecode(config));
    } else if (operation == "label") {
      NEREID_KIT_ASSIGN(const kit::ModelLocation location, kit::Locate(handle));
      NEREID_KIT_TRY(model->InitLabel(config, location.folder + "/labels.txt"));
    } else {
      return Error::InvalidArgument(
          StrCat("the parameter 'operation' must be 'decode' or 'label', got '", operation, "'"));
    }
    return model;
  }

  Operation operation = Operation::kDecode;
  bool is_batching = false;
  int width = 8;
  int height = 8;
  int white = 1;
  std::vector<std::string> labels;

 private:
  Error InitDecode(const kit::ModelConfig& config) {
    NEREID_KIT_ASSIGN(width, config.IntParameter("width", width));
    NEREID_KIT_ASSIGN(height, config.IntParameter("height", height));
    NEREID_KIT_ASSIGN(white, config.IntParameter("white", white));
    if (width <= 0 || width > 4096 || height <= 0 || height > 4096) {
      return Error::InvalidArgument("'width' and 'height' must be between 1 and 4096");
    }
    NEREID_KIT_TRY(kit::ExpectTensors(config, "input", {{"IMAGE", "TYPE_STRING", {1}}}));
    return kit::ExpectTensors(config, "output",
                              {{"PIXELS", "TYPE_FP32", {int64_t{width} * height}}});
  }
  Error InitLabel(const kit::ModelConfig& config, const std::string& path) {
    operation = Operation::kLabel;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      labels.push_back(line);
    }
    if (labels.empty()) {
      return Error::Unavailable(StrCat("no labels could be read from '", path, "'"));
    }
    const auto classes = static_cast<int64_t>(labels.size());
    NEREID_KIT_TRY(
        kit::ExpectTensors(config, "input", {{"PROBABILITIES", "TYPE_FP32", {classes}}}));
    return kit::ExpectTensors(config, "output",
                              {{"LABEL", "TYPE_STRING", {1}}, {"CONFIDENCE", "TYPE_FP32", {1}}});
  }
};

class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    NEREID_KIT_TRY(kit::RequireCpu(handle, "images"));
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), model_(model) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    batch_.Process(handle_, requests, count, [this]() -> uint64_t {
      uint64_t images = 0;
      batch_.MarkComputeStart();
      for (uint32_t r = 0; r < batch_.size(); ++r) {
        if (!batch_.live(r)) {
          continue;
        }
        if (auto served = Serve(r); served.ok()) {
          images += served.value();
        } else {
          batch_.Fail(r, served.TakeError());
        }
      }
      batch_.MarkComputeEnd();
      return images;
    });
  }

 private:
  // Fills the response of request r; returns the number of its images.
  Result<uint64_t> Serve(uint32_t r) {
    NEREID_KIT_ASSIGN(const InputView input, kit::ReadInput(batch_.request(r), 0));
    NEREID_KIT_ASSIGN(const std::span<const char> bytes,
                      kit::ContiguousInput(input, sizeof(float), scratch_));
    const int64_t images = model_.is_batching ? input.shape[0] : 1;
    NEREID_KIT_TRY(model_.operation == Operation::kDecode ? Decode(r, input, bytes, images)
                                                          : Label(r, bytes, images));
    return static_cast<uint64_t>(images);
  }

  Error Decode(uint32_t r, const InputView& input, std::span<const char> bytes, int64_t images) {
    const auto width = static_cast<size_t>(model_.width);
    const auto height = static_cast<size_t>(model_.height);
    const size_t pixels = width * height;
    NEREID_KIT_ASSIGN(
        char* const buffer,
        AddOutput(r, "PIXELS", TRITONSERVER_TYPE_FP32, images, model_.width * model_.height,
                  static_cast<uint64_t>(images) * pixels * sizeof(float)));
    auto* next = reinterpret_cast<float*>(buffer);
    std::string problem;
    // The server has checked the number of elements against the shape, but not their contents.
    NEREID_KIT_TRY(kit::ForEachString(bytes, images, input.name, [&](std::string_view file) {
      if (problem.empty()) {
        problem = images::DecodePgm(file, width, height, static_cast<float>(model_.white),
                                    {next, pixels});
      }
      next += pixels;
    }));
    return problem.empty() ? Error() : Error::InvalidArgument(problem);
  }

  Error Label(uint32_t r, std::span<const char> bytes, int64_t images) {
    const auto* const values = reinterpret_cast<const float*>(bytes.data());
    const size_t classes = model_.labels.size();
    const auto row = [&](int64_t i) {
      return std::span<const float>(values + static_cast<size_t>(i) * classes, classes);
    };
    uint64_t text_size = 0;
    for (int64_t i = 0; i < images; ++i) {
      text_size += sizeof(uint32_t) + model_.labels[images::Largest(row(i))].size();
    }
    NEREID_KIT_ASSIGN(char* text,
                      AddOutput(r, "LABEL", TRITONSERVER_TYPE_BYTES, images, 1, text_size));
    NEREID_KIT_ASSIGN(char* const confidence,
                      AddOutput(r, "CONFIDENCE", TRITONSERVER_TYPE_FP32, images, 1,
                                static_cast<uint64_t>(images) * sizeof(float)));
    for (int64_t i = 0; i < images; ++i) {
      const size_t best = images::Largest(row(i));
      text = kit::StoreString(text, model_.labels[best]);
      reinterpret_cast<float*>(confidence)[i] = row(i)[best];
    }
    return {};
  }

  // Adds an output of [images, size], or [size] for a model without batching.
  Result<char*> AddOutput(uint32_t r, const char* name, TRITONSERVER_DataType type, int64_t images,
                          int64_t size, uint64_t byte_size) {
    const int64_t shape[] = {images, size};
    return kit::AddOutput(batch_.response(r), name, type,
                          std::span(shape).subspan(model_.is_batching ? 0 : 1), byte_size);
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Model& model_;
  kit::Batch batch_;
  kit::ScratchBuffer scratch_;
};

}  // namespace

NEREID_KIT_ENTRY_POINTS(kit::NoBackendState, Model, Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
