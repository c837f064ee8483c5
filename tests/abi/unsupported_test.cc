// SPDX-License-Identifier: Apache-2.0
// The weak definitions in src/capi/unsupported_*.cc: each names itself, and each gives way.
//
// This program contains nothing else that implements the C API but the errors themselves and one
// function, both below. It is exported from the program, so functions are found by name, taken from
// the table that stands beside this file. Run: abi_unsupported_test <abi_table.txt>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "triton/core/tritonserver.h"

struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string message;
};

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* msg) {
  return new TRITONSERVER_Error{code, msg};
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }

// Stands for a function that has begun to work.
TRITONSERVER_Error* TRITONSERVER_ServerIsLive(TRITONSERVER_Server*, bool* live) {
  *live = true;
  return nullptr;
}

}  // extern "C"

namespace {

struct Export {
  std::string name;
  std::string result;
};

std::string& TablePath() {
  static std::string path;
  return path;
}

// The functions that the server exports, except those that this file defines itself.
std::vector<Export> WeakExports() {
  std::vector<Export> exports;
  std::ifstream table(TablePath());
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string kind, name, rest;
    words >> kind >> name >> std::ws;
    std::getline(words, rest);
    const bool ours =
        name.rfind("TRITONSERVER_Error", 0) == 0 || name == "TRITONSERVER_ServerIsLive";
    if (kind == "export" && !ours) {
      exports.push_back({name, rest.substr(0, rest.find(" ("))});
    }
  }
  return exports;
}

TEST(Unsupported, EveryFunctionIsDefined) {
  const std::vector<Export> exports = WeakExports();
  ASSERT_GT(exports.size(), 200u);
  for (const Export& function : exports) {
    EXPECT_NE(dlsym(RTLD_DEFAULT, function.name.c_str()), nullptr) << function.name;
  }
}

TEST(Unsupported, EachFunctionThatCanFailSaysItsName) {
  for (const Export& function : WeakExports()) {
    // This one returns the error of a response, so null means that there is none.
    if (function.result != "TRITONSERVER_Error*" ||
        function.name == "TRITONSERVER_InferenceResponseError") {
      continue;
    }
    void* const symbol = dlsym(RTLD_DEFAULT, function.name.c_str());
    ASSERT_NE(symbol, nullptr) << function.name;
    // The definitions look at none of their arguments, so none are passed.
    TRITONSERVER_Error* (*call)() = nullptr;
    std::memcpy(&call, &symbol, sizeof(call));
    TRITONSERVER_Error* const error = call();
    ASSERT_NE(error, nullptr) << function.name;
    EXPECT_EQ(error->code, TRITONSERVER_ERROR_UNSUPPORTED) << function.name;
    EXPECT_EQ(error->message, function.name + " is not supported");
    TRITONSERVER_ErrorDelete(error);
  }
}

TEST(Unsupported, OthersReturnWhatMeansNothing) {
  EXPECT_EQ(TRITONSERVER_DataTypeString(TRITONSERVER_TYPE_FP32), nullptr);
  EXPECT_EQ(TRITONSERVER_StringToDataType("FP32"), TRITONSERVER_TYPE_INVALID);
  EXPECT_EQ(TRITONSERVER_DataTypeByteSize(TRITONSERVER_TYPE_FP32), 0u);
  EXPECT_FALSE(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_ERROR));
  EXPECT_EQ(TRITONSERVER_ParameterNew("name", TRITONSERVER_PARAMETER_STRING, "value"), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceResponseError(nullptr), nullptr);
}

TEST(Unsupported, GivesWayToAStrongDefinition) {
  bool live = false;
  EXPECT_EQ(TRITONSERVER_ServerIsLive(nullptr, &live), nullptr);
  EXPECT_TRUE(live);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    return 2;
  }
  TablePath() = argv[1];
  return RUN_ALL_TESTS();
}
