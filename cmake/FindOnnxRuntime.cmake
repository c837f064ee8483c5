# Finds ONNX Runtime's C API under NEREID_ONNXRUNTIME_ROOT: include/onnxruntime_c_api.h (also in the
# folders that packages use) and lib/libonnxruntime.so. Defines OnnxRuntime::OnnxRuntime.
set(NEREID_ONNXRUNTIME_ROOT "${PROJECT_SOURCE_DIR}/.deps/onnxruntime" CACHE PATH
  "Folder with ONNX Runtime's include/ and lib/; tools/setup puts it at the default")

find_path(OnnxRuntime_INCLUDE_DIR onnxruntime_c_api.h
  HINTS ${NEREID_ONNXRUNTIME_ROOT}
  PATH_SUFFIXES include include/onnxruntime include/onnxruntime/core/session)
find_library(OnnxRuntime_LIBRARY
  NAMES onnxruntime libonnxruntime.so.1
  HINTS ${NEREID_ONNXRUNTIME_ROOT}
  PATH_SUFFIXES lib lib64)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OnnxRuntime
  REQUIRED_VARS OnnxRuntime_LIBRARY OnnxRuntime_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run tools/setup, set NEREID_ONNXRUNTIME_ROOT, or configure with -DNEREID_BUILD_ONNXRUNTIME=OFF")

if(OnnxRuntime_FOUND AND NOT TARGET OnnxRuntime::OnnxRuntime)
  add_library(OnnxRuntime::OnnxRuntime SHARED IMPORTED)
  set_target_properties(OnnxRuntime::OnnxRuntime PROPERTIES
    IMPORTED_LOCATION ${OnnxRuntime_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OnnxRuntime_INCLUDE_DIR})
endif()
