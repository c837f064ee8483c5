// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "backend_kit/handles.h"
#include "backend_kit/mutex.h"
#include "tensorflow_backend/held_stderr.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::MutexLock;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kLibrary = "libtensorflow_cc.so.2";
constexpr const char* kFramework = "libtensorflow_framework.so.2";
constexpr const char* kLogLevel = "TF_CPP_MIN_LOG_LEVEL";

// TensorFlow logs through Abseil, whose C++ function this is in TensorFlow 2.21; other versions
// have another number in it.
constexpr const char* kSetMinLogLevel =
    "_ZN4absl12lts_2025081414SetMinLogLevelENS0_18LogSeverityAtLeastE";
constexpr int kFatal = 3;

// Never with RTLD_DEEPBIND or RTLD_GLOBAL: the library brings its own copies of what the server and
// other libraries have, too.
Result<void*> Open(const char* name) {
  void* const handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error::Unavailable(StrCat("TensorFlow's library cannot be opened: ", ::dlerror(),
                                     "; install it with 'tools/setup --with tensorflow', or put ",
                                     "the folder of ", kLibrary, " in LD_LIBRARY_PATH"));
  }
  return handle;
}

// TensorFlow would write lines of its own to the standard error stream. What went wrong is in its
// errors, which the server logs. REQUIRES: no thread uses TensorFlow yet.
void Silence(void* framework) {
  if (void* const function = ::dlsym(framework, kSetMinLogLevel); function != nullptr) {
    reinterpret_cast<void (*)(int)>(function)(kFatal);
  } else {
    setenv(kLogLevel, "3", /*overwrite=*/0);
  }
}

// Opens both libraries and returns the one with the C API.
Result<void*> OpenBoth() {
  NEREID_KIT_ASSIGN(void* const framework, Open(kFramework));
  NEREID_KIT_ASSIGN(void* const handle, Open(kLibrary));
  // Users who set TensorFlow's variable get what they ask for.
  if (std::getenv(kLogLevel) == nullptr) {
    Silence(framework);
  }
  return handle;
}

Result<void*> OpenSilently() {
  if (std::getenv(kLogLevel) != nullptr) {
    return OpenBoth();
  }
  std::optional<Result<void*>> handle;
  for (const std::string& line : HoldBackAbseilLines([&] { handle.emplace(OpenBoth()); })) {
    backend::Log(TRITONSERVER_LOG_VERBOSE, StrCat("TensorFlow: ", line));
  }
  return *std::move(handle);
}

// Fills the table.
class Resolver {
 public:
  explicit Resolver(void* handle) : handle_(handle) {}

  template <typename Function>
  void operator()(const char* name, Function* function) {
    void* const address = ::dlsym(handle_, name);
    missing_ = address == nullptr && missing_ == nullptr ? name : missing_;
    *function = reinterpret_cast<Function>(address);
  }
  const char* missing() const { return missing_; }

 private:
  void* const handle_;
  const char* missing_ = nullptr;
};

void ResolveGraphs(Resolver& resolve, Library* table) {
  resolve("TF_Version", &table->Version);
  resolve("TF_NewStatus", &table->NewStatus);
  resolve("TF_DeleteStatus", &table->DeleteStatus);
  resolve("TF_GetCode", &table->GetCode);
  resolve("TF_Message", &table->Message);
  resolve("TF_NewBuffer", &table->NewBuffer);
  resolve("TF_DeleteBuffer", &table->DeleteBuffer);
  resolve("TF_NewGraph", &table->NewGraph);
  resolve("TF_DeleteGraph", &table->DeleteGraph);
  resolve("TF_NewImportGraphDefOptions", &table->NewImportGraphDefOptions);
  resolve("TF_DeleteImportGraphDefOptions", &table->DeleteImportGraphDefOptions);
  resolve("TF_GraphImportGraphDef", &table->GraphImportGraphDef);
  resolve("TF_GraphOperationByName", &table->GraphOperationByName);
  resolve("TF_OperationNumOutputs", &table->OperationNumOutputs);
  resolve("TF_OperationOutputType", &table->OperationOutputType);
  resolve("TF_GraphGetTensorNumDims", &table->GraphGetTensorNumDims);
  resolve("TF_GraphGetTensorShape", &table->GraphGetTensorShape);
  resolve("TF_GraphGetOpDef", &table->GraphGetOpDef);
}

void ResolveRuns(Resolver& resolve, Library* table) {
  resolve("TF_NewSessionOptions", &table->NewSessionOptions);
  resolve("TF_DeleteSessionOptions", &table->DeleteSessionOptions);
  resolve("TF_SetConfig", &table->SetConfig);
  resolve("TF_NewSession", &table->NewSession);
  resolve("TF_LoadSessionFromSavedModel", &table->LoadSessionFromSavedModel);
  resolve("TF_CloseSession", &table->CloseSession);
  resolve("TF_DeleteSession", &table->DeleteSession);
  resolve("TF_SessionRun", &table->SessionRun);
  resolve("TF_NewTensor", &table->NewTensor);
  resolve("TF_AllocateTensor", &table->AllocateTensor);
  resolve("TF_DeleteTensor", &table->DeleteTensor);
  resolve("TF_NumDims", &table->NumDims);
  resolve("TF_Dim", &table->Dim);
  resolve("TF_TensorByteSize", &table->TensorByteSize);
  resolve("TF_TensorData", &table->TensorData);
  resolve("TF_StringInit", &table->StringInit);
  resolve("TF_StringCopy", &table->StringCopy);
  resolve("TF_StringGetDataPointer", &table->StringGetDataPointer);
  resolve("TF_StringGetSize", &table->StringGetSize);
  resolve("TF_StringDealloc", &table->StringDealloc);
  resolve("TF_LoadLibrary", &table->LoadLibrary);
  resolve("TF_DeleteLibraryHandle", &table->DeleteLibraryHandle);
}

Result<std::unique_ptr<const Library>> Load() {
  NEREID_KIT_ASSIGN(void* const handle, OpenSilently());
  auto table = std::make_unique<Library>();
  Resolver resolve(handle);
  ResolveGraphs(resolve, table.get());
  ResolveRuns(resolve, table.get());
  if (resolve.missing() != nullptr) {
    return Error::Unsupported(StrCat(kLibrary, " has no function ", resolve.missing(),
                                     ": it is too old, TensorFlow 2.5 or newer is needed"));
  }
  backend::LogInfo(StrCat("TensorFlow ", table->Version(), " is open"));
  return std::unique_ptr<const Library>(std::move(table));
}

}  // namespace

Result<const Library*> OpenLibrary() {
  static backend::Mutex mutex;
  static const Library* opened = nullptr;  // guarded by it; never freed, as the library itself
  const MutexLock lock(mutex);
  if (opened == nullptr) {
    NEREID_KIT_ASSIGN(std::unique_ptr<const Library> library, Load());
    opened = library.release();
  }
  return opened;
}

}  // namespace nereid::tensorflow
