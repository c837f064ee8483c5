// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include <pybind11/stl.h>

#include "errors.h"
#include "without_gil.h"

namespace py = pybind11;

namespace nereid::python {

int64_t ToInt64(py::handle value, const char* what) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!number) throw py::error_already_set();
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) ThrowInvalidArgument(std::string(what) + " does not fit into 64 bits");
  return result;
}

Parameters::Parameters(const py::dict& values, const char* what) {
  pointers_.reserve(values.size());
  for (const auto& [key, value] : values) {
    const auto name_text = py::cast<std::string>(key);
    const char* const name = AsCText(name_text, what);
    TRITONSERVER_Parameter* made = nullptr;
    if (PyUnicode_Check(value.ptr())) {
      const auto text = py::cast<std::string>(value);
      made = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_STRING, AsCText(text, what));
    } else if (PyBool_Check(value.ptr())) {
      const bool flag = value.ptr() == Py_True;
      made = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_BOOL, &flag);
    } else if (PyBytes_Check(value.ptr())) {
      made = TRITONSERVER_ParameterBytesNew(name, PyBytes_AS_STRING(value.ptr()),
                                            static_cast<uint64_t>(PyBytes_GET_SIZE(value.ptr())));
    } else if (PyFloat_Check(value.ptr())) {
      const double number = PyFloat_AS_DOUBLE(value.ptr());
      made = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_DOUBLE, &number);
    } else if (PyIndex_Check(value.ptr())) {
      const int64_t number = ToInt64(value, what);
      made = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_INT, &number);
    }
    if (made == nullptr) {
      ThrowInvalidArgument(std::string(what) + " '" + name_text +
                           "' must be str, bool, int, float or bytes, not " +
                           Py_TYPE(value.ptr())->tp_name);
    }
    pointers_.push_back(made);
  }
}

Parameters::~Parameters() {
  for (const TRITONSERVER_Parameter* const parameter : pointers_) {
    TRITONSERVER_ParameterDelete(const_cast<TRITONSERVER_Parameter*>(parameter));
  }
}

Server::Server(TRITONSERVER_ServerOptions* options) {
  WithoutGil([&] { Check(TRITONSERVER_ServerNew(&server_, options)); });
}

void Server::Listen(const std::vector<std::string>& flags) {
  if (frontends_ != nullptr) ThrowInvalidArgument("the server listens already");
  std::vector<const char*> texts;
  texts.reserve(flags.size());
  for (const std::string& flag : flags) texts.push_back(AsCText(flag, "a flag"));
  WithoutGil(
      [&] { Check(NEREIDSERVER_FrontendsNew(&frontends_, server_, texts.data(), texts.size())); });
}

py::tuple Server::Ports() const {
  uint16_t http = 0;
  uint16_t grpc = 0;
  uint16_t metrics = 0;
  if (frontends_ != nullptr) {
    Check(NEREIDSERVER_FrontendsPorts(frontends_, &http, &grpc, &metrics));
  }
  return py::make_tuple(http, grpc, metrics);
}

TRITONSERVER_Error* Server::StopAll() {
  // What the frontends did not finish, the server reports.
  if (frontends_ != nullptr && !is_stopping_.exchange(true)) {
    Ignore(NEREIDSERVER_FrontendsStop(frontends_));
  }
  return TRITONSERVER_ServerStop(server_);
}

void Server::Stop() {
  if (IsForked()) return;
  WithoutGil([this] { Check(StopAll()); });
}

Server::~Server() {
  if (IsForked()) return;
  PyThreadState* const thread = PyEval_SaveThread();
  TRITONSERVER_Error* error = StopAll();
  if (error == nullptr) {
    if (frontends_ != nullptr) Ignore(NEREIDSERVER_FrontendsDelete(frontends_));
    error = TRITONSERVER_ServerDelete(server_);
  }
  PyEval_RestoreThread(thread);
  if (error == nullptr) return;
  PySys_WriteStderr("nereid: a server could not be taken apart: %.500s\n",
                    TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

namespace {

// Owns a message object of the C API.
class Message {
 public:
  Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() {
    if (message_ != nullptr) Ignore(TRITONSERVER_MessageDelete(message_));
  }
  TRITONSERVER_Message** out() { return &message_; }
  std::string ToJson() const {
    const char* text = nullptr;
    size_t size = 0;
    Check(TRITONSERVER_MessageSerializeToJson(message_, &text, &size));
    return {text, size};
  }

 private:
  TRITONSERVER_Message* message_ = nullptr;
};

// Requests a message and returns its JSON text, without the GIL.
template <typename Ask>
py::str AskForJson(Ask ask) {
  std::string json;
  WithoutGil([&] {
    Message message;
    Check(ask(message.out()));
    json = message.ToJson();
  });
  return ToText(json);
}

template <auto Function>
bool AskForBool(Server& server) {
  bool result = false;
  WithoutGil([&] { Check(Function(server.handle(), &result)); });
  return result;
}

template <auto Function>
uint32_t AskForFlags(Server& server, const std::string& model, int64_t version) {
  const char* const name = AsCText(model, "a model's name");
  uint32_t flags = 0;
  void* unused = nullptr;
  WithoutGil([&] { Check(Function(server.handle(), name, version, &flags, &unused)); });
  return flags;
}

template <auto Function>
py::str AskAboutModel(Server& server, const std::string& model, int64_t version) {
  const char* const name = AsCText(model, "a model's name");
  return AskForJson([&](TRITONSERVER_Message** message) {
    return Function(server.handle(), name, version, message);
  });
}

template <auto Function>
void Tell(Server& server, const std::string& text) {
  const char* const name = AsCText(text, "a name");
  WithoutGil([&] { Check(Function(server.handle(), name)); });
}

std::string Metrics(Server& server, int format) {
  std::string text;
  WithoutGil([&] {
    TRITONSERVER_Metrics* metrics = nullptr;
    Check(TRITONSERVER_ServerMetrics(server.handle(), &metrics));
    const char* base = nullptr;
    size_t size = 0;
    TRITONSERVER_Error* const error = TRITONSERVER_MetricsFormatted(
        metrics, static_cast<TRITONSERVER_MetricFormat>(format), &base, &size);
    if (error == nullptr) text.assign(base, size);
    Ignore(TRITONSERVER_MetricsDelete(metrics));
    Check(error);
  });
  return text;
}

void Register(Server& server, const std::string& path, const py::dict& name_mapping) {
  const char* const where = AsCText(path, "a repository's path");
  Parameters mapping(name_mapping, "name mapping");
  WithoutGil([&] {
    Check(TRITONSERVER_ServerRegisterModelRepository(server.handle(), where, mapping.data(),
                                                     static_cast<uint32_t>(mapping.size())));
  });
}

void Load(Server& server, const std::string& model, const py::dict& values) {
  const char* const name = AsCText(model, "a model's name");
  Parameters parameters(values, "parameter");
  WithoutGil([&] {
    Check(parameters.size() == 0
              ? TRITONSERVER_ServerLoadModel(server.handle(), name)
              : TRITONSERVER_ServerLoadModelWithParameters(server.handle(), name, parameters.data(),
                                                           parameters.size()));
  });
}

bool ModelIsReady(Server& server, const std::string& model, int64_t version) {
  const char* const name = AsCText(model, "a model's name");
  bool is_ready = false;
  WithoutGil(
      [&] { Check(TRITONSERVER_ServerModelIsReady(server.handle(), name, version, &is_ready)); });
  return is_ready;
}

}  // namespace

void RegisterServer(py::module_& module) {
  py::class_<Server>(module, "Server")
      .def("_ptr", [](Server& self) { return reinterpret_cast<uintptr_t>(self.handle()); })
      .def("listen", &Server::Listen)
      .def("ports", &Server::Ports)
      .def("stop", &Server::Stop)
      .def("set_exit_timeout",
           [](Server& self, unsigned int seconds) {
             Check(TRITONSERVER_ServerSetExitTimeout(self.handle(), seconds));
           })
      .def("is_live", &AskForBool<TRITONSERVER_ServerIsLive>)
      .def("is_ready", &AskForBool<TRITONSERVER_ServerIsReady>)
      .def("metadata",
           [](Server& self) {
             return AskForJson([&](TRITONSERVER_Message** message) {
               return TRITONSERVER_ServerMetadata(self.handle(), message);
             });
           })
      .def("model_index",
           [](Server& self, uint32_t flags) {
             return AskForJson([&](TRITONSERVER_Message** message) {
               return TRITONSERVER_ServerModelIndex(self.handle(), flags, message);
             });
           })
      .def("model_config",
           [](Server& self, const std::string& model, int64_t version, uint32_t config_version) {
             const char* const name = AsCText(model, "a model's name");
             return AskForJson([&](TRITONSERVER_Message** message) {
               return TRITONSERVER_ServerModelConfig(self.handle(), name, version, config_version,
                                                     message);
             });
           })
      .def("model_metadata", &AskAboutModel<TRITONSERVER_ServerModelMetadata>)
      .def("model_statistics", &AskAboutModel<TRITONSERVER_ServerModelStatistics>)
      .def("model_is_ready", &ModelIsReady)
      .def("model_batch_flags", &AskForFlags<TRITONSERVER_ServerModelBatchProperties>)
      .def("model_transaction_flags", &AskForFlags<TRITONSERVER_ServerModelTransactionProperties>)
      .def("metrics", &Metrics)
      .def("load", &Load)
      .def("unload", &Tell<TRITONSERVER_ServerUnloadModel>)
      .def("unload_with_dependents", &Tell<TRITONSERVER_ServerUnloadModelAndDependents>)
      .def("register_repository", &Register)
      .def("unregister_repository", &Tell<TRITONSERVER_ServerUnregisterModelRepository>)
      .def("poll_repository", [](Server& self) {
        WithoutGil([&] { Check(TRITONSERVER_ServerPollModelRepository(self.handle())); });
      });
}

}  // namespace nereid::python
