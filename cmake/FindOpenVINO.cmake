# OpenVINO's library and headers in NEREID_OPENVINO_ROOT, as tools/setup --with openvino leaves them, or
# an installation with include/ and lib/. Defines OpenVINO::Runtime and OpenVINO_LIBRARY.
#
# The library has no link without a version in its name, so the newest version is taken.
find_path(OpenVINO_INCLUDE openvino/openvino.hpp
  PATHS ${NEREID_OPENVINO_ROOT}/include NO_DEFAULT_PATH)
file(GLOB openvino_libraries ${NEREID_OPENVINO_ROOT}/lib/libopenvino.so.*)
list(SORT openvino_libraries COMPARE NATURAL ORDER DESCENDING)
if(openvino_libraries)
  list(GET openvino_libraries 0 OpenVINO_LIBRARY)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenVINO REQUIRED_VARS OpenVINO_LIBRARY OpenVINO_INCLUDE)
if(OpenVINO_FOUND AND NOT TARGET OpenVINO::Runtime)
  add_library(OpenVINO::Runtime SHARED IMPORTED)
  set_target_properties(OpenVINO::Runtime PROPERTIES
    IMPORTED_LOCATION ${OpenVINO_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${OpenVINO_INCLUDE}
    INTERFACE_INCLUDE_DIRECTORIES ${OpenVINO_INCLUDE})
endif()
