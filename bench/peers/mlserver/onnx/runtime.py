# SPDX-License-Identifier: Apache-2.0
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Mlp(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession("model.onnx", options)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        output = NumpyCodec.encode_output("OUTPUT0", self.session.run(None, {"INPUT0": rows})[0])
        return InferenceResponse(model_name=self.name, outputs=[output])
