# SPDX-License-Identifier: Apache-2.0
"""Models of the platform PyTorch that are Python code: `backend: "pytorch"` with `runtime: "model.py"`.

The Python backend runs this file in place of a model's own. It finds the torch.nn.Module in the version
folder's model.py, with the parameters of model.pt beside it if there are any, and serves it: the inputs of
the configuration are the arguments of forward in their order, its outputs the results in theirs.
"""

import importlib.util
import json
import os

import triton_python_backend_utils as pb_utils

try:
    import torch
except ImportError as error:
    raise RuntimeError(
        "PyTorch models in Python need PyTorch in the environment that runs them (pip install torch, or "
        "EXECUTION_ENV_PATH), and TorchScript files a server built with --with pytorch: %s" % error
    ) from error

_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


class _Settings:
    """The parameters of a model's configuration."""

    def __init__(self, config):
        self._parameters = config.get("parameters", {})
        self.threads = self._number("NUM_THREADS", "INTRA_OP_THREAD_COUNT")
        self.interop_threads = self._number("NUM_INTEROP_THREADS", "INTER_OP_THREAD_COUNT")
        self.inference_mode = self._flag("INFERENCE_MODE", True)
        self.optimized_execution = not self._flag("DISABLE_OPTIMIZED_EXECUTION", False)
        self.compile_options = self._options("TORCH_COMPILE_OPTIONAL_PARAMETERS")

    def _text(self, name):
        return self._parameters.get(name, {}).get("string_value", "").strip()

    def _number(self, *names):
        for name in names:
            text = self._text(name)
            if not text:
                continue
            if not text.isdecimal() or int(text) < 1:
                raise pb_utils.TritonModelException("parameter '%s' is '%s', not a positive number" % (name, text))
            return int(text)
        return 1  # many instances share the processor

    def _flag(self, name, otherwise):
        text = self._text(name).lower()
        if text and text not in _TRUE + _FALSE:
            raise pb_utils.TritonModelException("parameter '%s' is '%s', not a boolean" % (name, text))
        return text in _TRUE if text else otherwise

    def _options(self, name):
        text = self._text(name)
        try:
            options = json.loads(text) if text else {}
        except ValueError as error:
            raise pb_utils.TritonModelException("parameter '%s' is not JSON: %s" % (name, error))
        if not isinstance(options, dict):
            raise pb_utils.TritonModelException("parameter '%s' is not a JSON object" % name)
        if "model" in options:
            raise pb_utils.TritonModelException("'model' is not an optional parameter for 'torch.compile'")
        return options


def _find_file(config):
    folder = pb_utils.get_model_dir()
    names = [config.get("default_model_filename", ""), "model.py", "model.pt"]
    for name in filter(None, names):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    there = ", ".join(sorted(os.listdir(folder))) or "nothing" if os.path.isdir(folder) else "no such folder"
    raise pb_utils.TritonModelException(
        "No model found in %s: there is none of %s, but %s" % (folder, ", ".join(filter(None, names)), there)
    )


def _import(path, name):
    spec = importlib.util.spec_from_file_location("nereid_model_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _find_class(module, path):
    """The first subclass of torch.nn.Module by name, as in Triton, but the file's own before imported ones."""
    found = [value for _, value in sorted(vars(module).items())
             if isinstance(value, type) and issubclass(value, torch.nn.Module) and value is not torch.nn.Module]
    own = [value for value in found if value.__module__ == module.__name__]
    imported = [value for value in found if not value.__module__.startswith("torch.")]
    if not own and not imported:
        raise pb_utils.TritonModelException("Cannot find a subclass of torch.nn.Module in %s" % os.path.basename(path))
    return (own or imported)[0]


def _device(kind, device_id, module):
    if kind == "GPU":
        return torch.device("cuda:" + str(device_id))
    if kind == "CPU":
        return torch.device("cpu")
    # KIND_MODEL: where the model has put itself.
    for parameter in module.parameters():
        return parameter.device
    return torch.device("cpu")


class TritonPythonModel:
    """Serves a torch.nn.Module or a TorchScript file."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self._name = args["model_name"]
        self._is_batching = config.get("max_batch_size", 0) > 0
        self._inputs = [tensor["name"] for tensor in config.get("input", [])]
        self._outputs = [tensor["name"] for tensor in config.get("output", [])]
        settings = _Settings(config)
        torch.set_num_threads(settings.threads)
        torch.set_num_interop_threads(settings.interop_threads)
        self._inference_mode = settings.inference_mode
        path = _find_file(config)
        kind, device_id = args["model_instance_kind"], args["model_instance_device_id"]
        if path.endswith(".py"):
            self._load_module(path, settings, kind, device_id)
        else:
            self._load_torchscript(path, kind, device_id)

    def _load_module(self, path, settings, kind, device_id):
        model_class = _find_class(_import(path, self._name), path)
        self._plain = model_class()
        self._device = _device(kind, device_id, self._plain)
        weights = os.path.splitext(path)[0] + ".pt"
        if os.path.exists(weights):
            self._plain.load_state_dict(torch.load(weights, map_location=self._device, weights_only=True))
        else:
            pb_utils.Logger.log_info("model '%s' has no file of parameters '%s'" % (self._name, os.path.basename(weights)))
        self._plain.to(self._device)
        self._plain.eval()
        self._model = self._plain
        if settings.optimized_execution:
            self._model = torch.compile(self._plain, **settings.compile_options)

    def _load_torchscript(self, path, kind, device_id):
        self._plain = torch.jit.load(path)
        self._device = _device(kind, device_id, self._plain)
        self._plain.to(self._device)
        self._plain.eval()
        self._model = self._plain

    def execute(self, requests):
        with torch.inference_mode(mode=self._inference_mode):
            arguments = [self._arguments(request) for request in requests]
            if self._is_batching:
                results = self._run_together(arguments)
            else:
                results = [self._run(one) for one in arguments]
            return [pb_utils.InferenceResponse(self._tensors(result)) for result in results]

    def _arguments(self, request):
        tensors = []
        for name in self._inputs:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            if tensor is None:
                raise pb_utils.TritonModelException("input '%s' is missing, which the model needs" % name)
            tensors.append(torch.from_dlpack(tensor.to_dlpack()).to(self._device))
        return tensors

    def _run_together(self, arguments):
        """The results of several requests, whose rows are one batch."""
        if len(arguments) == 1:
            return [self._run(arguments[0])]
        rows = [one[0].shape[0] for one in arguments]
        whole = self._run([torch.cat(parts, 0) for parts in zip(*arguments)])
        return list(zip(*(torch.split(tensor, rows) for tensor in whole)))

    def _run(self, arguments):
        """The tensors of the outputs, in their order."""
        result = self._call(arguments)
        if isinstance(result, dict):
            lacking = [name for name in self._outputs if name not in result]
            if lacking:
                raise pb_utils.TritonModelException(
                    "the model returned %s, not the output '%s'" % (", ".join(map(str, result)), lacking[0]))
            return [result[name] for name in self._outputs]
        if not isinstance(result, (tuple, list)):
            result = [result]
        if len(result) < len(self._outputs):
            raise pb_utils.TritonModelException(
                "the model returned %d tensors, the configuration has %d outputs" % (len(result), len(self._outputs)))
        return result[: len(self._outputs)]

    def _call(self, arguments):
        if self._model is self._plain:
            return self._plain(*arguments)
        try:
            return self._model(*arguments)
        except Exception as error:
            # torch.compile needs a compiler for C++, which is found missing at the first call. What
            # the model itself raises comes again from the plain call.
            result = self._plain(*arguments)
            pb_utils.Logger.log_warn("model '%s' runs without torch.compile: %s" % (self._name, str(error).split("\n")[0]))
            self._model = self._plain
            return result

    def _tensors(self, result):
        return [pb_utils.Tensor.from_dlpack(name, tensor.detach().cpu().contiguous())
                for name, tensor in zip(self._outputs, result)]

    def finalize(self):
        self._model = self._plain = None
