# Finds PyTorch's C++ libraries for the CPU under NEREID_PYTORCH_ROOT (include/, lib/). Defines PyTorch::Cpu.
# PyTorch has CMake files of its own, which are of no use here: those of a build for GPUs insist on CUDA's compiler.
find_path(PyTorch_INCLUDE_DIR torch/csrc/jit/api/module.h
  HINTS ${NEREID_PYTORCH_ROOT} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_library(PyTorch_LIBRARY torch_cpu HINTS ${NEREID_PYTORCH_ROOT} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(PyTorch_C10_LIBRARY c10 HINTS ${NEREID_PYTORCH_ROOT} PATH_SUFFIXES lib NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PyTorch
  REQUIRED_VARS PyTorch_LIBRARY PyTorch_C10_LIBRARY PyTorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run tools/setup --with pytorch, or set NEREID_PYTORCH_ROOT")

if(PyTorch_FOUND AND NOT TARGET PyTorch::Cpu)
  add_library(PyTorch::C10 SHARED IMPORTED)
  set_target_properties(PyTorch::C10 PROPERTIES IMPORTED_LOCATION ${PyTorch_C10_LIBRARY})
  add_library(PyTorch::Cpu SHARED IMPORTED)
  set_target_properties(PyTorch::Cpu PROPERTIES
    IMPORTED_LOCATION ${PyTorch_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${PyTorch_INCLUDE_DIR};${PyTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES PyTorch::C10)
endif()
