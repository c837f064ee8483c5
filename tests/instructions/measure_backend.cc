// SPDX-License-Identifier: Apache-2.0
// Runs executions as a backend for a framework does, with the kit's gathering and scattering, so
// that check.py can count what a batch of 8 costs beside the framework, which takes no time here.
// The fake server is counted, too.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/scatter.h"
#include "backend_kit/testing/fake_host.h"
#include "measured_runs.h"

// The functions of the server that this needs besides the kit's fakes.
extern "C" TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char*) {
  return TRITONSERVER_TYPE_FP32;
}
extern "C" const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType) { return "FP32"; }

using namespace nereid;

namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kColumns = 4;  // few, because the fake server clears memory byte by byte

// A failure here is a mistake in this file.
template <typename T>
T Must(backend::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.TakeError().message());
    std::exit(1);
  }
  return std::move(result).value();
}

backend::Ports MakePorts() {
  return Must(backend::Ports::FromConfig(Must(backend::ModelConfig::Parse(
      R"({"max_batch_size":8,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[4]}],
          "output":[{"name":"y","data_type":"TYPE_FP32","dims":[4]}]})"))));
}

// An instance whose framework returns the input.
class EchoInstance {
 public:
  void Execute(std::span<TRITONBACKEND_Request*> requests) {
    batch_.Process(&handle_, requests.data(), static_cast<uint32_t>(requests.size()), [this] {
      return gathering_.ForEachExecution(batch_, [this] { return Serve(); });
    });
    handle_.executed_batches.clear();
  }

 private:
  backend::Error Serve() {
    NEREID_KIT_ASSIGN(const std::span<const char> rows, gathering_.Data(batch_, 0));
    batch_.MarkComputeStart();
    batch_.MarkComputeEnd();
    scattering_.ToResponses(batch_, 0, {.shape = gathering_.ShapeOf(0), .data = rows.data()});
    return {};
  }

  TRITONBACKEND_ModelInstance handle_;
  const backend::Ports ports_ = MakePorts();
  backend::Batch batch_;
  backend::Gathering gathering_{ports_, "m_0", kRows};
  backend::Scattering scattering_{ports_, gathering_};
};

// An execution of `count` requests that have 8 rows together.
void MeasureExecution(const char* name, int64_t count) {
  EchoInstance instance;
  const std::string rows(static_cast<size_t>(kRows / count * kColumns) * sizeof(float), '\1');
  std::vector<TRITONBACKEND_Request> requests(static_cast<size_t>(count));
  std::vector<TRITONBACKEND_Request*> pointers;
  for (TRITONBACKEND_Request& request : requests) {
    request.inputs = {{.name = "x",
                       .datatype = TRITONSERVER_TYPE_FP32,
                       .shape = {kRows / count, kColumns},
                       .views = {rows}}};
    request.wanted = {"y"};
    pointers.push_back(&request);
  }
  Measure(name, [&] {
    std::vector<TRITONBACKEND_Request*> batch = pointers;
    instance.Execute(batch);
    for (TRITONBACKEND_Request& request : requests) request.answer = {};
  });
}

}  // namespace

int main() {
  MeasureExecution("backend_request_of_8_rows", 1);
  MeasureExecution("backend_8_requests_of_a_row", 8);
}
