# SPDX-License-Identifier: Apache-2.0
"""Models that OpenAI's API serves, for its tests: three of the Python backend, one of the identity
backend, an ensemble, and some that it does not serve."""

import pathlib

from harness import models, python_models

TEXT = "data_type: TYPE_STRING dims: [ 1 ]"

# Says what it was given, as JSON; calls the first tool if there are any. Stops where it is told to.
CHAT = '''
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        values = {name: [e.decode() if isinstance(e, bytes) else e.item() for e in value]
                  for name, value in given.items()}
        outputs = {"finish_reason": "length", "text_output": json.dumps(values), "tool_calls": ""}
        if "tools" in values:
            tools = json.loads(values["tools"][0])
            calls = [{"id": f"call-{i}", "type": "function",
                      "function": {"name": tool["function"]["name"], "arguments": {"i": i}}}
                     for i, tool in enumerate(tools)]
            outputs = {"finish_reason": "", "text_output": "", "tool_calls": json.dumps(calls)}
        tensors = [pb_utils.Tensor(name, np.array([text.encode()], object)) for name, text in outputs.items()]
        tensors.append(pb_utils.Tensor("prompt_tokens", np.array([11], np.int32)))
        tensors.append(pb_utils.Tensor("completion_tokens", np.array([7], np.int32)))
        return pb_utils.InferenceResponse(tensors)
'''
CHAT_CONFIG = f"""
max_batch_size: 0
input [
  {{ name: "messages" {TEXT} optional: true }},
  {{ name: "text_input" {TEXT} optional: true }},
  {{ name: "tools" {TEXT} optional: true }},
  {{ name: "response_format" {TEXT} optional: true }},
  {{ name: "stop" data_type: TYPE_STRING dims: [ -1 ] optional: true }},
  {{ name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] optional: true }},
  {{ name: "seed" data_type: TYPE_INT64 dims: [ 1 ] optional: true }},
  {{ name: "temperature" data_type: TYPE_FP32 dims: [ 1 ] optional: true }},
  {{ name: "stream" data_type: TYPE_BOOL dims: [ 1 ] optional: true }},
  {{ name: "house_style" {TEXT} optional: true }}
]
output [
  {{ name: "text_output" {TEXT} }},
  {{ name: "finish_reason" {TEXT} }},
  {{ name: "tool_calls" {TEXT} }},
  {{ name: "prompt_tokens" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "completion_tokens" data_type: TYPE_INT32 dims: [ 1 ] }}
]
parameters {{ key: "openai" value {{ string_value: "chat, completions" }} }}
"""

# Says its prompt again, three bytes at a time. "forever FILE": until it is cancelled; beginning
# and end make a file each. "break": fails after one piece; "fail": at once.
ECHO = '''
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0]
            threading.Thread(target=self.answer, args=(request.get_response_sender(), prompt)).start()

    def answer(self, sender, prompt):
        if prompt.startswith(b"forever "):
            open(prompt.split()[1] + b".begun", "w").close()
            self.send(sender, b"and ")
            while not sender.is_cancelled():
                self.send(sender, b"on ")
                time.sleep(0.01)
            open(prompt.split()[1], "w").close()
        elif prompt in (b"break", b"fail"):
            if prompt == b"break":
                self.send(sender, b"whole ")
            code = pb_utils.TritonError.INVALID_ARG if prompt == b"fail" else pb_utils.TritonError.INTERNAL
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("it broke", code)))
        else:
            for i in range(0, len(prompt), 3):
                self.send(sender, prompt[i:i + 3], count=len(prompt.split()))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def send(self, sender, piece, count=1):
        sender.send(pb_utils.InferenceResponse([
            pb_utils.Tensor("text_output", np.array([piece], object)),
            pb_utils.Tensor("prompt_tokens", np.array([count], np.int64)),
            pb_utils.Tensor("completion_tokens", np.array([1], np.int64))]))
'''
ECHO_CONFIG = f"""
max_batch_size: 0
model_transaction_policy {{ decoupled: true }}
input [ {{ name: "text_input" {TEXT} }} ]
output [
  {{ name: "text_output" {TEXT} }},
  {{ name: "prompt_tokens" data_type: TYPE_INT64 dims: [ 1 ] }},
  {{ name: "completion_tokens" data_type: TYPE_INT64 dims: [ 1 ] }}
]
parameters {{ key: "openai" value {{ string_value: "chat,completions" }} }}
"""

# The vector of a text: its length, how many texts came with it, a third, and the asked dimension.
EMBED = '''
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[:, 0]
        asked = pb_utils.get_input_tensor_by_name(request, "dimensions")
        asked = asked.as_numpy()[:, 0] if asked else np.zeros(len(texts))
        vectors = [[len(t.decode()), len(texts), 1 / 3, a] for t, a in zip(texts, asked)]
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("embedding", np.array(vectors, np.float32)),
            pb_utils.Tensor("prompt_tokens", np.array([[5]] * len(texts), np.int32)[:1])])
'''
EMBED_CONFIG = f"""
max_batch_size: 4
input [
  {{ name: "text_input" {TEXT} }},
  {{ name: "dimensions" data_type: TYPE_INT32 dims: [ 1 ] optional: true }}
]
output [
  {{ name: "embedding" data_type: TYPE_FP32 dims: [ 4 ] }},
  {{ name: "prompt_tokens" data_type: TYPE_INT32 dims: [ 1 ] }}
]
parameters {{ key: "openai" value {{ string_value: "embeddings" }} }}
"""

ENSEMBLE_CONFIG = f"""
platform: "ensemble"
max_batch_size: 0
input [ {{ name: "text_input" {TEXT} }} ]
output [ {{ name: "text_output" {TEXT} }} ]
ensemble_scheduling {{ step [ {{
  model_name: "parrot" model_version: -1
  input_map {{ key: "INPUT0" value: "text_input" }}
  output_map {{ key: "OUTPUT0" value: "text_output" }}
}} ] }}
parameters {{ key: "openai" value {{ string_value: "chat" }} }}
"""


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def write(repository):
    """All of them."""
    for name, code, config in (
        ("chat", CHAT, CHAT_CONFIG),
        ("echo", ECHO, ECHO_CONFIG),
        ("embed", EMBED, EMBED_CONFIG),
    ):
        python_models.write(repository, name, code, config)
    parrot = models.identity_config("BYTES", [1])
    names = parameter("openai_text_input", "INPUT0") + parameter("openai_text_output", "OUTPUT0")
    models.write_model(repository, "parrot", parrot + parameter("openai", "completions") + names)
    models.write_model(repository, "unserved", parrot)
    models.write_model(repository, "wrong", parrot + parameter("openai", "chat"))
    folder = pathlib.Path(repository) / "ensemble"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(ENSEMBLE_CONFIG)
