// SPDX-License-Identifier: Apache-2.0
// The classes of program.h that call TensorFlow.
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "backend_kit/mutex.h"
#include "backend_kit/shape.h"
#include "tensorflow_backend/graph.h"
#include "tensorflow_backend/library.h"
#include "tensorflow_backend/program.h"
#include "tensorflow_backend/run.h"
#include "tensorflow_backend/stateful.h"
#include "tensorflow_backend/status.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

struct DeleteOptions {
  const Library* library;
  void operator()(c::SessionOptions* options) const { library->DeleteSessionOptions(options); }
};
struct DeleteImport {
  const Library* library;
  void operator()(c::ImportOptions* options) const {
    library->DeleteImportGraphDefOptions(options);
  }
};
// Ends the session first.
struct DeleteSession {
  const Library* library;
  void operator()(c::Session* session) const {
    const Status ignored(*library);
    library->CloseSession(session, ignored.get());
    library->DeleteSession(session, ignored.get());
  }
};

// A graph and its session. Immutable but for what TensorFlow itself locks.
class TfSession : public Session {
 public:
  TfSession(const Library& library, std::unique_ptr<c::Graph, DeleteGraph> graph,
            std::unique_ptr<c::Session, DeleteSession> session)
      : library_(library), graph_(std::move(graph)), session_(std::move(session)) {}

  std::optional<TensorInfo> Find(const std::string& place) override {
    const auto output = PlaceOf(place);
    if (!output) {
      return std::nullopt;
    }
    TensorInfo info{.place = place, .type = library_.OperationOutputType(*output), .dims = {}};
    const Status status(library_);
    const int rank = library_.GraphGetTensorNumDims(graph_.get(), *output, status.get());
    if (status.ok() && rank >= 0) {
      info.dims.resize(static_cast<size_t>(rank));
      library_.GraphGetTensorShape(graph_.get(), *output, info.dims.data(), rank, status.get());
      info.has_rank = status.ok();
    }
    return info;
  }

  std::unique_ptr<Request> NewRequest(const Bound& bound) override {
    RunPlan plan{.library = &library_,
                 .session = session_.get(),
                 .inputs = bound.inputs,
                 .outputs = bound.outputs,
                 .feeds = {},
                 .fetches = {},
                 .changes_state = bound.changes_state,
                 .turn = bound.changes_in_place ? &turn_ : nullptr};
    for (const TensorInfo& input : bound.inputs) {
      plan.feeds.push_back(PlaceOf(input.place).value_or(c::Output()));
    }
    for (const TensorInfo& output : bound.outputs) {
      plan.fetches.push_back(PlaceOf(output.place).value_or(c::Output()));
    }
    return MakeRequest(std::move(plan));
  }

  // Runs operations that have no results, in this order.
  Error RunOperations(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const c::Operation* const operation =
          library_.GraphOperationByName(graph_.get(), NodeOf(name).c_str());
      if (operation == nullptr) {
        return Error::InvalidArgument(
            StrCat("the initialization operation '", name, "' is not in the graph"));
      }
      const Status status(library_);
      library_.SessionRun(session_.get(), nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0,
                          &operation, 1, nullptr, status.get());
      NEREID_KIT_TRY(status.ToError(StrCat("the initialization operation '", name, "' failed: ")));
    }
    return {};
  }

 private:
  // Finds "node" and "node:1".
  std::optional<c::Output> PlaceOf(const std::string& place) {
    const std::string node = NodeOf(place);
    c::Output output{.operation = library_.GraphOperationByName(graph_.get(), node.c_str()),
                     .index = 0};
    if (node.size() + 1 < place.size()) {
      char* end = nullptr;
      const long index = std::strtol(place.c_str() + node.size() + 1, &end, 10);
      output.index =
          *end == '\0' && index >= 0 && index <= INT16_MAX ? static_cast<int>(index) : -1;
    }
    const bool exists = output.operation != nullptr && output.index >= 0 &&
                        output.index < library_.OperationNumOutputs(output.operation);
    return exists ? std::optional(output) : std::nullopt;
  }

  const Library& library_;
  const std::unique_ptr<c::Graph, DeleteGraph> graph_;
  std::binary_semaphore turn_{1};  // of requests that take turns
  const std::unique_ptr<c::Session, DeleteSession> session_;
};

// Thread-safe.
class TfRuntime : public Runtime {
 public:
  explicit TfRuntime(const Library& library) : library_(library) {}

  Result<std::shared_ptr<Session>> Load(const SessionSpec& spec) override {
    const std::unique_ptr<c::SessionOptions, DeleteOptions> options(library_.NewSessionOptions(),
                                                                    {&library_});
    const Status status(library_);
    library_.SetConfig(options.get(), spec.config.data(), spec.config.size(), status.get());
    NEREID_KIT_TRY(status.ToError());
    std::unique_ptr<c::Graph, DeleteGraph> graph(library_.NewGraph(), {&library_});
    std::unique_ptr<c::Session, DeleteSession> session(nullptr, {&library_});
    if (spec.is_graph_def) {
      NEREID_KIT_TRY(Import(spec.path, graph.get()));
      session.reset(library_.NewSession(graph.get(), options.get(), status.get()));
    } else {
      std::vector<const char*> tags;
      for (const std::string& tag : spec.tags) {
        tags.push_back(tag.c_str());
      }
      session.reset(library_.LoadSessionFromSavedModel(options.get(), nullptr, spec.path.c_str(),
                                                       tags.data(), static_cast<int>(tags.size()),
                                                       graph.get(), nullptr, status.get()));
    }
    NEREID_KIT_TRY(status.ToError());
    auto loaded = std::make_shared<TfSession>(library_, std::move(graph), std::move(session));
    NEREID_KIT_TRY(loaded->RunOperations(spec.init_ops));
    return std::shared_ptr<Session>(std::move(loaded));
  }

  bool MayChangeState(const std::set<std::string>& operations) override {
    return tensorflow::MayChangeState(library_, operations);
  }

  // Operations stay for the rest of the process.
  Error LoadOperations(const std::string& path) override {
    const backend::MutexLock lock(mutex_);
    if (operations_.contains(path)) {
      return {};
    }
    const Status status(library_);
    c::Library* const handle = library_.LoadLibrary(path.c_str(), status.get());
    NEREID_KIT_TRY(status.ToError(StrCat("failed to load the operations in '", path, "': ")));
    library_.DeleteLibraryHandle(handle);
    operations_.insert(path);
    return {};
  }

 private:
  Error Import(const std::string& path, c::Graph* graph) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file.tellg();
    std::vector<char> bytes(size > 0 ? static_cast<size_t>(size) : 0);
    file.seekg(0);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      return Error::Unavailable(StrCat("'", path, "' cannot be read"));
    }
    const c::Buffer buffer{.data = bytes.data(), .length = bytes.size()};
    const std::unique_ptr<c::ImportOptions, DeleteImport> options(
        library_.NewImportGraphDefOptions(), {&library_});
    const Status status(library_);
    library_.GraphImportGraphDef(graph, &buffer, options.get(), status.get());
    return status.ToError();
  }

  const Library& library_;
  backend::Mutex mutex_;
  std::set<std::string> operations_ NEREID_KIT_GUARDED_BY(mutex_);  // libraries
};

}  // namespace

Result<Runtime*> SharedRuntime() {
  NEREID_KIT_ASSIGN(const Library* const library, OpenLibrary());
  static TfRuntime* const runtime = new TfRuntime(*library);  // lives as long as the library
  return runtime;
}

}  // namespace nereid::tensorflow
