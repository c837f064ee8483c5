// SPDX-License-Identifier: Apache-2.0
// Numbers of fields in TensorFlow's .proto files.
#pragma once

#include <cstdint>

namespace nereid::tensorflow {

namespace saved_model_field {
inline constexpr uint32_t kMetaGraph = 2;
}
namespace meta_graph_field {
inline constexpr uint32_t kInfo = 1, kGraph = 2, kSaver = 3, kCollection = 4, kSignature = 5;
inline constexpr uint32_t kTagOfInfo = 4, kRestoreOfSaver = 3;
}  // namespace meta_graph_field
namespace signature_field {
inline constexpr uint32_t kInput = 1, kOutput = 2;
}
namespace tensor_info_field {
inline constexpr uint32_t kName = 1, kType = 2, kShape = 3;
}
namespace shape_field {
inline constexpr uint32_t kDim = 2, kUnknownRank = 3, kSizeOfDim = 1;
}
namespace graph_field {
inline constexpr uint32_t kNode = 1, kLibrary = 2, kFunctionOfLibrary = 1;
}
namespace function_field {
inline constexpr uint32_t kSignature = 1, kNode = 3, kNameOfSignature = 1;
}
namespace node_field {
inline constexpr uint32_t kName = 1, kOperation = 2, kInput = 3, kAttribute = 5;
}
namespace attribute_field {
inline constexpr uint32_t kList = 1, kType = 6, kShape = 7, kTensor = 8, kFunction = 10;
inline constexpr uint32_t kFunctionOfList = 9;
}  // namespace attribute_field
namespace tensor_field {
inline constexpr uint32_t kType = 1, kShape = 2, kText = 8;
}
namespace map_field {
inline constexpr uint32_t kKey = 1, kValue = 2;
}

}  // namespace nereid::tensorflow
