// SPDX-License-Identifier: Apache-2.0
// The object behind TRITONSERVER_InferenceRequest*: a request of an embedder, or of a backend that
// calls the server. It may be submitted many times, one after the other; each time it becomes a
// core::Request whose tensors are views of the caller's buffers. Texts of errors:
// core/src/infer_request.cc of Triton.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "capi/inference_call.h"
#include "capi/server.h"
#include "core/model_handle.h"
#include "core/request.h"
#include "observe/trace.h"
#include "tensor/shape.h"
#include "triton/core/tritonserver.h"

// Thread-compatible, except for Cancel and IsCancelled while it is submitted.
struct TRITONSERVER_InferenceRequest final : public nereid::core::RequestHandle {
  // Makes a request for a version that is ready, which stays loaded until the request is deleted.
  static nereid::base::Result<TRITONSERVER_InferenceRequest*> Create(TRITONSERVER_Server& server,
                                                                     const char* model_name,
                                                                     int64_t model_version);
  // Fails with INVALID_ARG while it is submitted and not released.
  static nereid::base::Status Delete(TRITONSERVER_InferenceRequest* request);

  std::string id;
  uint32_t flags = 0;
  std::variant<uint64_t, std::string> correlation_id = uint64_t{0};
  uint64_t timeout_us = 0;
  nereid::capi::Callbacks callbacks;

  uint64_t priority() const { return priority_; }
  // A level that the model does not have becomes its default one.
  void SetPriority(uint64_t priority);

  nereid::base::Status AddInput(std::string_view name, nereid::tensor::DataType type,
                                std::span<const int64_t> shape);
  // Adds the only input of the request; its type and shape follow from the model's configuration.
  nereid::base::Status AddRawInput(std::string_view name);
  nereid::base::Status RemoveInput(std::string_view name);
  void RemoveAllInputs();
  // An empty `policy` means instances of all policies without data of their own.
  nereid::base::Status AppendData(std::string_view name, nereid::core::DataChunk chunk,
                                  std::string_view policy);
  nereid::base::Status RemoveAllData(std::string_view name);
  nereid::base::Status AddOutput(std::string_view name);
  void RemoveOutput(std::string_view name);
  void RemoveAllOutputs() { outputs_.clear(); }
  void AddParameter(const char* name, std::variant<std::string, int64_t, bool, double> value);

  // Submits the request. After success it belongs to the server until the release callback; after
  // an error it belongs to the caller, and no callback is called. The trace, which may be null,
  // belongs to the server in any case.
  nereid::base::Status Submit(TRITONSERVER_InferenceTrace* trace_handle);
  nereid::base::Status Cancel();
  nereid::base::Result<bool> IsCancelled() const;

  // nereid::core::RequestHandle
  nereid::core::RequestRef Refer() override;
  bool is_backend_request() const override { return false; }

  // Called before the release callback.
  void MarkReleased() { is_submitted_.store(false); }

  // For ObjectPool.
  void Recycle();

 private:
  // An input as the caller described it.
  struct Input {
    std::string_view name() const { return own_name.empty() ? model_name : own_name; }

    std::string_view model_name;  // the model's own spelling
    std::string own_name;         // of an input that the model does not have
    nereid::tensor::DataType type = nereid::tensor::DataType::kInvalid;
    nereid::tensor::Shape shape;
    nereid::core::DataChunk first;
    std::vector<nereid::core::DataChunk> more;
    std::vector<nereid::core::HostPolicyData> host_policies;
    size_t byte_size = 0;
  };
  // A parameter of the request; the name and texts are copies.
  struct Parameter {
    std::string name;
    std::variant<std::string, int64_t, bool, double> value;
  };

  std::string LogPrefix() const;
  size_t FindInput(std::string_view name) const;  // inputs_.size() if there is none
  nereid::base::Status MissingInput(std::string_view name) const;
  Input& NewInput(std::string_view name);
  // Fills the request for the engine.
  void Fill(nereid::core::Request& request) const;
  nereid::base::Status FillRawInput(nereid::core::Request& request) const;
  void DropCall();

  TRITONSERVER_Server* server_ = nullptr;
  nereid::core::ModelHandle model_;
  uint64_t priority_ = 0;
  std::vector<Input> inputs_;
  bool has_raw_input_ = false;
  bool has_gpu_inputs_ = false;  // or had some
  std::vector<std::string> outputs_;
  std::vector<Parameter> parameters_;
  nereid::capi::InferenceCall* call_ = nullptr;  // of the last submission
  std::atomic<bool> is_submitted_{false};
};

// backend_host::FromAnyHandle relies on the RequestHandle being at the beginning.
extern TRITONSERVER_InferenceRequest nereid_layout_probe;  // for its address, never defined
static_assert(static_cast<void*>(static_cast<nereid::core::RequestHandle*>(&nereid_layout_probe)) ==
              static_cast<void*>(&nereid_layout_probe));
