// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

std::string Signature::ToString() const {
  std::string text = "forward(";
  for (const Argument& argument : arguments) {
    text += text.back() == '(' ? "" : ", ";
    text += argument.name + ": " + argument.type.text;
  }
  return text + ") -> " + result.text;
}

}  // namespace nereid::pytorch
