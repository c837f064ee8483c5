// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/session.h"

#include "onnxruntime_backend/external_files.h"
#include "onnxruntime_backend/providers.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

const TensorInfo* FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name) {
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name == name) {
      return &tensor;
    }
  }
  return nullptr;
}

namespace {

// The functions for one of the three lists of a session's tensors; otherwise the lists are read in
// the same way.
struct ListFunctions {
  OrtStatus*(ORT_API_CALL* count)(const OrtSession*, size_t*);
  OrtStatus*(ORT_API_CALL* name)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus*(ORT_API_CALL* type)(const OrtSession*, size_t, OrtTypeInfo**);
};

std::string_view KindName(ONNXType type) {
  switch (type) {
    case ONNX_TYPE_TENSOR:
      return "ONNX_TYPE_TENSOR";
    case ONNX_TYPE_SEQUENCE:
      return "ONNX_TYPE_SEQUENCE";
    case ONNX_TYPE_MAP:
      return "ONNX_TYPE_MAP";
    case ONNX_TYPE_OPAQUE:
      return "ONNX_TYPE_OPAQUE";
    case ONNX_TYPE_SPARSETENSOR:
      return "ONNX_TYPE_SPARSETENSOR";
    default:
      return "ONNX_TYPE_UNKNOWN";
  }
}

// One input or output: a tensor, or something else.
struct Border {
  TensorInfo tensor;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
};

Result<Border> ReadBorder(const OrtSession* session, size_t index, const ListFunctions& list) {
  Border border;
  TensorInfo& info = border.tensor;
  OrtAllocator* allocator = nullptr;
  NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
  char* name = nullptr;
  NEREID_ORT_TRY(list.name(session, index, allocator, &name));
  info.name = name;
  NEREID_ORT_TRY(Api().AllocatorFree(allocator, name));
  OrtTypeInfo* raw = nullptr;
  NEREID_ORT_TRY(list.type(session, index, &raw));
  const Owned<OrtTypeInfo> type(raw);
  NEREID_ORT_TRY(Api().GetOnnxTypeFromTypeInfo(raw, &border.kind));
  if (border.kind != ONNX_TYPE_TENSOR) {
    return border;
  }
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  NEREID_ORT_TRY(Api().CastTypeInfoToTensorInfo(raw, &tensor));
  NEREID_ORT_TRY(Api().GetTensorElementType(tensor, &info.type));
  size_t rank = 0;
  NEREID_ORT_TRY(Api().GetDimensionsCount(tensor, &rank));
  info.dims.resize(rank);
  NEREID_ORT_TRY(Api().GetDimensions(tensor, info.dims.data(), rank));
  return border;
}

std::string UnsupportedText(std::string_view kind, const std::string& name) {
  return StrCat("Unsupported ONNX Type '", kind, "' for I/O '", name,
                "', expected 'ONNX_TYPE_TENSOR'.");
}

// Reads a list of inputs or outputs. Those that are not tensors are added to `others`, or are an
// error if that is null.
Result<std::vector<TensorInfo>> ReadTensors(const OrtSession* session, const ListFunctions& list,
                                            std::vector<OtherOutput>* others = nullptr) {
  size_t count = 0;
  NEREID_ORT_TRY(list.count(session, &count));
  std::vector<TensorInfo> tensors;
  for (size_t i = 0; i < count; ++i) {
    NEREID_KIT_ASSIGN(Border border, ReadBorder(session, i, list));
    if (border.kind == ONNX_TYPE_TENSOR) {
      tensors.push_back(std::move(border.tensor));
    } else if (others != nullptr) {
      others->push_back({.name = std::move(border.tensor.name), .kind = KindName(border.kind)});
    } else {
      return Error::Unsupported(UnsupportedText(KindName(border.kind), border.tensor.name));
    }
  }
  return tensors;
}

Result<Signature> ReadSignature(const OrtSession* session) {
  const OrtApi& api = Api();
  Signature signature;
  NEREID_KIT_ASSIGN(signature.inputs,
                    ReadTensors(session, {api.SessionGetInputCount, api.SessionGetInputName,
                                          api.SessionGetInputTypeInfo}));
  NEREID_KIT_ASSIGN(signature.outputs,
                    ReadTensors(session,
                                {api.SessionGetOutputCount, api.SessionGetOutputName,
                                 api.SessionGetOutputTypeInfo},
                                &signature.other_outputs));
  NEREID_KIT_ASSIGN(signature.initializers,
                    ReadTensors(session, {api.SessionGetOverridableInitializerCount,
                                          api.SessionGetOverridableInitializerName,
                                          api.SessionGetOverridableInitializerTypeInfo}));
  return signature;
}

Error ApplyThreads(OrtSessionOptions* options, const Settings& settings, bool global_pool) {
  if (global_pool) {
    return FromOrt(Api().DisablePerSessionThreads(options));
  }
  const int intra = settings.intra_op_threads > 0 ? settings.intra_op_threads : DefaultThreads();
  if (intra > 0) {
    NEREID_ORT_TRY(Api().SetIntraOpNumThreads(options, intra));
  }
  if (settings.inter_op_threads > 0) {
    NEREID_ORT_TRY(Api().SetInterOpNumThreads(options, settings.inter_op_threads));
  }
  return {};
}

Error Apply(OrtSessionOptions* options, const Settings& settings, bool global_pool) {
  const OrtApi& api = Api();
  NEREID_ORT_TRY(api.SetSessionGraphOptimizationLevel(options, settings.graph_level));
  NEREID_ORT_TRY(api.SetSessionExecutionMode(options, settings.execution_mode));
  NEREID_KIT_TRY(ApplyThreads(options, settings, global_pool));
  if (settings.memory_arena.has_value()) {
    NEREID_ORT_TRY(*settings.memory_arena ? api.EnableCpuMemArena(options)
                                          : api.DisableCpuMemArena(options));
  }
  if (settings.memory_pattern.has_value()) {
    NEREID_ORT_TRY(*settings.memory_pattern ? api.EnableMemPattern(options)
                                            : api.DisableMemPattern(options));
  }
  for (const auto& [key, value] : settings.session_entries) {
    NEREID_ORT_TRY(api.AddSessionConfigEntry(options, key.c_str(), value.c_str()));
  }
  for (const std::string& library : settings.op_libraries) {
    NEREID_ORT_TRY(api.RegisterCustomOpsLibrary_V2(options, library.c_str()));
  }
  return {};
}

Result<Owned<OrtSessionOptions>> MakeOptions(const Environment& environment,
                                             const Settings& settings, const Placement& placement,
                                             const std::string& model_name) {
  OrtSessionOptions* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateSessionOptions(&raw));
  Owned<OrtSessionOptions> options(raw);
  NEREID_KIT_TRY(Apply(raw, settings, environment.options().global_thread_pool));
  NEREID_KIT_TRY(AddProviders(raw, settings, placement, model_name));
  return options;
}

}  // namespace

Error NoTensorError(const OtherOutput& output, const Signature& signature) {
  std::string text = UnsupportedText(output.kind, output.name);
  if (output.kind == KindName(ONNX_TYPE_SEQUENCE) || output.kind == KindName(ONNX_TYPE_MAP)) {
    text +=
        " Converters of classifiers make such outputs by ZipMap: convert the model with "
        "zipmap=False (skl2onnx: to_onnx(model, X, options={'zipmap': False})), and the output is "
        "a "
        "tensor.";
  }
  if (!signature.outputs.empty()) {
    text += " Or name only the outputs that are tensors in the model's configuration:";
    for (const TensorInfo& tensor : signature.outputs) {
      text += StrCat(&tensor == &signature.outputs.front() ? " '" : ", '", tensor.name, "'");
    }
    text += ".";
  }
  return Error::Unsupported(text);
}

Result<std::shared_ptr<Session>> Session::Prepare(const Placement& placement, uint64_t file_bytes) {
  std::shared_ptr<Session> session(new Session());
  session->placement_ = placement;
  session->file_bytes_ = file_bytes;
  if (placement.gpu) {
    OrtMemoryInfo* raw_info = nullptr;
    NEREID_ORT_TRY(Api().CreateMemoryInfo("Cuda", OrtDeviceAllocator, placement.device,
                                          OrtMemTypeDefault, &raw_info));
    session->gpu_memory_.reset(raw_info);
  }
  return session;
}

Result<std::shared_ptr<Session>> Session::Load(const Environment& environment,
                                               const std::string& path, const Settings& settings,
                                               const Placement& placement,
                                               const std::string& model_name) {
  NEREID_KIT_ASSIGN(const Owned<OrtSessionOptions> options,
                    MakeOptions(environment, settings, placement, model_name));
  OrtSessionOptions* const raw_options = options.get();
  NEREID_KIT_ASSIGN(const ModelFile model, ModelFile::Read(path));
  NEREID_KIT_ASSIGN(const ExternalFiles external, ExternalFiles::Open(path, model));
  NEREID_KIT_TRY(external.AddTo(raw_options));
  const uint64_t file_bytes = static_cast<uint64_t>(model.facts.st_size) + external.byte_size();
  NEREID_KIT_ASSIGN(std::shared_ptr<Session> session, Prepare(placement, file_bytes));
  OrtSession* raw_session = nullptr;
  Error failure =
      FromOrt(Api().CreateSession(environment.get(), path.c_str(), raw_options, &raw_session));
  session->session_.reset(raw_session);
  // Checked first, because a file that was changed explains any other error.
  NEREID_KIT_TRY(external.Finish());
  NEREID_KIT_TRY(std::move(failure));
  NEREID_KIT_ASSIGN(session->signature_, ReadSignature(raw_session));
  return session;
}

Result<std::shared_ptr<Session>> Session::LoadBytes(
    const Environment& environment, std::string_view bytes, OrtCustomOpDomain* domain,
    const Settings& settings, const Placement& placement, const std::string& model_name) {
  NEREID_KIT_ASSIGN(const Owned<OrtSessionOptions> options,
                    MakeOptions(environment, settings, placement, model_name));
  NEREID_ORT_TRY(Api().AddCustomOpDomain(options.get(), domain));
  NEREID_KIT_ASSIGN(std::shared_ptr<Session> session, Prepare(placement, bytes.size()));
  OrtSession* raw_session = nullptr;
  NEREID_ORT_TRY(Api().CreateSessionFromArray(environment.get(), bytes.data(), bytes.size(),
                                              options.get(), &raw_session));
  session->session_.reset(raw_session);
  NEREID_KIT_ASSIGN(session->signature_, ReadSignature(raw_session));
  return session;
}

}  // namespace nereid::onnxruntime
