// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/session.h"

#include "onnxruntime_backend/external_files.h"
#include "onnxruntime_backend/first_use.h"
#include "onnxruntime_backend/providers.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

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

// ONNX Runtime's table of domains belongs to the process.
FirstUse& Firsts() {
  static FirstUse firsts;
  return firsts;
}

// Calls create(), an OrtStatus*() callable that makes a session with `operators`, if there are any.
template <typename Create>
Error CreateWith(const std::string& operators, const Create& create) {
  const auto make = [&] { return FromOrt(create()); };
  return operators.empty() ? make() : Firsts().Call(operators, make);
}

std::string OperatorsOf(const Settings& settings) {
  std::string names;
  for (const std::string& library : settings.op_libraries) {
    names += library + '\n';
  }
  return names;
}

}  // namespace

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
  Error failure = CreateWith(OperatorsOf(settings), [&] {
    return Api().CreateSession(environment.get(), path.c_str(), raw_options, &raw_session);
  });
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
  const std::string operators =
      StrCat(OperatorsOf(settings), "domain at ", reinterpret_cast<uintptr_t>(domain));
  NEREID_KIT_TRY(CreateWith(operators, [&] {
    return Api().CreateSessionFromArray(environment.get(), bytes.data(), bytes.size(),
                                        options.get(), &raw_session);
  }));
  session->session_.reset(raw_session);
  NEREID_KIT_ASSIGN(session->signature_, ReadSignature(raw_session));
  return session;
}

}  // namespace nereid::onnxruntime
