// SPDX-License-Identifier: Apache-2.0
// The implicit_state backend, for trying out the states that a server keeps. Controls START, END
// and READY (FP32); inputs INPUT and TEST_CASE (INT32), the state INPUT_STATE/OUTPUT_STATE.
// TEST_CASE selects what a request does:
//
//   0  uses a state that does not exist
//   1  writes INPUT plus the state into a new state without updating it; OUTPUT is the sum
//   2  gets the state's buffer, which must be that of the input (a shared buffer)
//   3  makes the state (INT8, growable) grow by 1 MiB and fills the new part; OUTPUT_STATE is
//      all of it
//
// Models are those of Triton's test backend of the same name, on the CPU.
#include "backend_kit/batch.h"
#include "backend_kit/controls.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/states.h"

namespace nereid::implicit_state {
namespace {

using backend::Error;
using backend::NewState;
using backend::Result;

constexpr int64_t kGrowth = 1024 * 1024;
constexpr int64_t kOne[] = {1};

// A model. Immutable.
struct Model {
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
    NEREID_KIT_TRY(backend::ExpectControls(config, {"START", "END", "READY"}));
    return std::make_unique<Model>();
  }
};

Result<int32_t> ReadInt(TRITONBACKEND_Request* request, const char* name) {
  NEREID_KIT_ASSIGN(const std::span<const char> bytes,
                    backend::ReadControlBytes(request, name, sizeof(int32_t)));
  int32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// An instance. Confined to the thread that executes. Serves one sequence at a time.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle, Model&) {
    return std::make_unique<Instance>(handle);
  }
  explicit Instance(TRITONBACKEND_ModelInstance* handle) : handle_(handle) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    batch_.Process(handle_, requests, count, [&]() -> uint64_t {
      batch_.MarkComputeStart();
      for (uint32_t r = 0; r < count; ++r) {
        if (!batch_.live(r)) continue;
        if (Error error = Serve(r); !error.ok()) batch_.Fail(r, std::move(error));
      }
      batch_.MarkComputeEnd();
      return count;
    });
  }

 private:
  Error Serve(uint32_t r) {
    TRITONBACKEND_Request* const request = batch_.request(r);
    NEREID_KIT_ASSIGN(const bool start, backend::ReadControl(request, "START"));
    if (start) {
      last_buffer_ = nullptr;
      growths_ = 0;
    }
    NEREID_KIT_ASSIGN(const int32_t test_case, ReadInt(request, "TEST_CASE"));
    switch (test_case) {
      case 0: {
        TRITONBACKEND_State* state = nullptr;
        return Error(TRITONBACKEND_StateNew(&state, request, "undefined_state",
                                            TRITONSERVER_TYPE_INT32, nullptr, 0));
      }
      case 1:
        return ForgetUpdate(r);
      case 2:
        return ShareBuffer(request);
      case 3:
        return Grow(r);
      default:
        return Error::InvalidArgument("TEST_CASE is none that the backend knows");
    }
  }

  Error ForgetUpdate(uint32_t r) {
    TRITONBACKEND_Request* const request = batch_.request(r);
    NEREID_KIT_ASSIGN(const int32_t input, ReadInt(request, "INPUT"));
    NEREID_KIT_ASSIGN(const int32_t state, ReadInt(request, "INPUT_STATE"));
    const int32_t sum = input + state;
    NEREID_KIT_ASSIGN(
        const NewState made,
        backend::MakeState(request, "OUTPUT_STATE", TRITONSERVER_TYPE_INT32, kOne, sizeof(sum)));
    NEREID_KIT_TRY(CheckAttributes(made, sizeof(sum)));
    std::memcpy(made.buffer, &sum, sizeof(sum));
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(batch_.response(r), "OUTPUT", TRITONSERVER_TYPE_INT32,
                                         kOne, sizeof(sum)));
    std::memcpy(to, &sum, sizeof(sum));
    return {};
  }

  static Error CheckAttributes(const NewState& made, size_t byte_size) {
    TRITONSERVER_BufferAttributes* attributes = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_StateBufferAttributes(made.state, &attributes));
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
    size_t said = 0;
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesMemoryType(attributes, &memory_type));
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesByteSize(attributes, &said));
    if (memory_type == TRITONSERVER_MEMORY_GPU || said != byte_size) {
      return Error::Unsupported("State buffer attributes are not set correctly.");
    }
    return {};
  }

  Error ShareBuffer(TRITONBACKEND_Request* request) {
    NEREID_KIT_ASSIGN(const std::span<const char> seen,
                      backend::ReadControlBytes(request, "INPUT_STATE", sizeof(int32_t)));
    if (last_buffer_ != nullptr && seen.data() != last_buffer_) {
      return Error::Unsupported("Input and output state are using different buffers.");
    }
    NEREID_KIT_ASSIGN(const NewState made,
                      backend::MakeState(request, "OUTPUT_STATE", TRITONSERVER_TYPE_INT32, kOne,
                                         sizeof(int32_t)));
    last_buffer_ = made.buffer;
    return {};
  }

  Error Grow(uint32_t r) {
    TRITONBACKEND_Request* const request = batch_.request(r);
    const int64_t size = (growths_ + 1) * kGrowth;
    const int64_t shape[] = {size};
    NEREID_KIT_ASSIGN(const NewState made,
                      backend::MakeState(request, "OUTPUT_STATE", TRITONSERVER_TYPE_INT8, shape,
                                         static_cast<uint64_t>(size)));
    std::memset(made.buffer + growths_ * kGrowth, static_cast<int>(growths_), kGrowth);
    ++growths_;
    NEREID_KIT_TRY(made.Update());
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(batch_.response(r), "OUTPUT_STATE", TRITONSERVER_TYPE_INT8,
                                         shape, static_cast<uint64_t>(size)));
    std::memcpy(to, made.buffer, static_cast<size_t>(size));
    return {};
  }

  TRITONBACKEND_ModelInstance* const handle_;
  backend::Batch batch_;
  const char* last_buffer_ = nullptr;  // of the state, in the previous request
  int64_t growths_ = 0;                // of the state since the sequence began
};

}  // namespace
}  // namespace nereid::implicit_state

NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::implicit_state::Model,
                        nereid::implicit_state::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
