# SPDX-License-Identifier: Apache-2.0
from function import softmax
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Softmax(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        output = NumpyCodec.encode_output("OUTPUT0", softmax(rows))
        return InferenceResponse(model_name=self.name, outputs=[output])
