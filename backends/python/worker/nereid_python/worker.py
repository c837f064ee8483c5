# SPDX-License-Identifier: Apache-2.0
"""The worker process: started by the server with a socket as descriptor 3."""

import array
import ctypes
import importlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import types


def _receive_greeting(channel):
    """Receives the server's first message, and the descriptor of the shared memory."""
    data, ancillary, _, _ = channel.recvmsg(1 << 20, socket.CMSG_LEN(array.array("i").itemsize))
    descriptors = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return json.loads(data.decode("utf-8", "surrogateescape")), descriptors[0]


def _end_with_server(channel, server_pid):
    """Makes this process end with the server, however that ends."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass
    if os.getppid() != server_pid:
        os._exit(1)

    def watch():
        try:
            while channel.recv(1):
                pass
        except OSError:
            pass
        os._exit(1)

    threading.Thread(target=watch, name="server-watch", daemon=True).start()


def _shown(greeting, text):
    """Replaces folders that the server made for itself by names that users know."""
    for what in ("model", "environment"):
        hidden = greeting["hidden_" + what]
        if hidden:
            text = text.replace(hidden, greeting["shown_" + what])
    return text


def _give_up(channel, greeting, error):
    """Tells the server why the worker cannot start, and exits."""
    text = "the Python interpreter %s (%d.%d) cannot run models: %s" % (
        (sys.executable,) + sys.version_info[:2] + (error,))
    if isinstance(error, ImportError) and getattr(error, "name", None) == "numpy":
        text += (
            "; models need numpy: install it for this interpreter, or name another one by "
            "--backend-config=python,python-runtime=PATH"
        )
    text = _shown(greeting, text)
    try:
        channel.send(text.encode("utf-8", "replace")[:4096])
    except OSError:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()
    os._exit(1)


def _ignore(number, frame):
    """Ignores signals, because the server decides when to end."""


class Runner:
    """Executes the server's work. Confined to the main thread, except for questions."""

    def __init__(self, greeting, memory):
        # Imported here, because the folder of the backend is known only after the greeting.
        from nereid_python import (
            calls, coroutines, native, protocol, requests, responses, tensors, writer)
        from nereid_python.errors import TritonModelException, describe
        from nereid_python.session import session
        import triton_python_backend_utils as pb_utils

        self.p = protocol
        self.calls = calls
        self.responses = responses
        self.writer = writer
        self.describe = describe
        self.failure = TritonModelException
        self.pb_utils = pb_utils
        self.session = session
        self.decode_name = tensors.read
        self.memory = memory
        self.greeting = greeting
        self.forms = {}
        self.native = native
        self.model = None
        self.run = None
        self.loop = coroutines.EventLoop(self.on_loop_ended)
        # The senders of decoupled requests, by the future of the coroutine that has these requests.
        self.background = {}
        self.shared = None  # what the last result refers to, until there is other work
        session.memory = memory
        session.name = greeting["name"]
        session.model_dir = greeting["model_dir"]
        session.is_decoupled = greeting["is_decoupled"]
        native.setup_messages(
            requests.InferenceRequest,
            self.read_form,
            responses.check_response,
            responses.NO_PARAMETERS,
            responses.RELEASE_ALL,
        )

    def serve(self):
        p = self.p
        kind, ticket, at, size = self.memory.first_work()
        while True:
            self.shared = None
            if kind == p.EXECUTE:
                outcome, offset, length = self.execute(at, size)
                if self.calls.lent:
                    self.calls.let_go_of_requests()
            else:
                outcome, offset, length = self.do(kind, at, size)
                if kind == p.FINALIZE:
                    self.memory.end(outcome, ticket, offset, length)
                    return
            kind, ticket, at, size = self.memory.finish(outcome, ticket, offset, length)

    def do(self, kind, at, size):
        p = self.p
        text = bytes(self.memory.bytes[at : at + size]).decode("utf-8", "surrogateescape")
        self.memory.let_go(at)
        try:
            if kind == p.COMPLETE:
                answer = self.complete(text)
            elif kind == p.INITIALIZE:
                answer = self.initialize(text)
            elif kind == p.FINALIZE:
                answer = self.finalize()
            else:
                raise self.failure("the server asked for something unknown")
        except BaseException as error:  # sys.exit() is an error like others, as in Triton
            answer = self.text_of(error)
            what = "auto-complete: " if kind == p.COMPLETE else ""
            sys.stderr.write("Failed to initialize Python stub%s: %s\n" % (
                " for " + what[:-2] if what else "", answer))
            return self.put(p.ERROR, answer)
        return self.put(p.OK, answer)

    def put(self, outcome, text):
        text = self.p.for_people(text)
        return outcome, self.memory.put(text), len(text)

    def text_of(self, error):
        if type(error) is self.failure and self.is_own(error):
            return self.shown(str(error))
        return self.shown(self.describe(error))

    def shown(self, text):
        return _shown(self.greeting, text)

    @staticmethod
    def is_own(error):
        """Returns whether this module, and not the model, raised the error."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        return trace is not None and trace.tb_frame.f_code.co_filename == __file__

    # --- The model ---

    def import_model(self):
        greeting = self.greeting
        folder, name = os.path.split(greeting["model_file"])
        stem, extension = os.path.splitext(name)
        if extension != ".py":
            raise self.failure("Model name must end with '.py'. Model name is \"%s\"." % name)
        if greeting["shares_model_file"]:
            self.add_path(folder)
            return importlib.import_module(stem)
        self.add_path(folder)
        self.add_path(os.path.dirname(folder))
        return importlib.import_module(os.path.basename(folder) + "." + stem)

    @staticmethod
    def add_path(folder):
        if folder not in sys.path:
            sys.path.append(folder)

    def complete(self, config):
        model_class = self.import_model().TritonPythonModel
        if not hasattr(model_class, "auto_complete_config"):
            return ""  # the process can serve as an instance: no code of the model has run
        completed = model_class.auto_complete_config(self.pb_utils.ModelConfig(config))
        if not isinstance(completed, self.pb_utils.ModelConfig):
            raise self.failure(
                "auto_complete_config function in model '%s' must return a valid pb.ModelConfig "
                "object." % self.session.name
            )
        return json.dumps(completed._model_config)

    def initialize(self, arguments):
        arguments = json.loads(arguments)
        self.session.name = arguments["model_instance_name"]
        self.session.model_name = arguments["model_name"]
        self.session.model_version = int(arguments["model_version"])
        module = self.import_model()
        self.session.has_calls = True
        self.model = module.TritonPythonModel()
        if hasattr(self.model, "initialize"):
            self.model.initialize(arguments)
        self.session.may_infer = True
        if not hasattr(self.model, "is_ready"):
            return ""
        threading.Thread(target=self.answer_questions, name="questions", daemon=True).start()
        return "is_ready"

    def finalize(self):
        self.session.may_infer = False
        self.loop.stop()
        if self.model is not None and hasattr(self.model, "finalize"):
            try:
                self.model.finalize()
            except BaseException as error:
                sys.stderr.write(self.describe(error) + "\n")
        # Objects of the model may make calls when they are destroyed.
        self.model = None
        self.run = None
        return ""

    def answer_questions(self):
        p = self.p
        ticket = 0
        while True:
            kind, ticket = self.memory.next_question(ticket)
            try:
                if kind != p.ASK_READY:
                    raise self.failure("the server asked for something unknown")
                result = self.model.is_ready()
                if isinstance(result, types.CoroutineType):
                    result = self.loop.start(result).result()
                if not isinstance(result, bool):
                    raise self.failure("is_ready() must return a boolean value")
                outcome, text = p.OK, "yes" if result else "no"
            except BaseException as error:  # otherwise nobody would answer later questions
                outcome, text = p.ERROR, self.text_of(error)
            self.memory.answer(*self.question_answer(outcome, ticket, text))

    def question_answer(self, outcome, ticket, text):
        _, offset, size = self.put(outcome, text)
        return outcome, ticket, offset, size

    # --- Execution ---

    def read_form(self, form):
        """Returns the inputs as (name, type, shape, place, size), and the names of requested outputs."""
        known = self.forms.get(form)
        if known is not None:
            return known
        if len(self.forms) > 4096:
            self.forms.clear()
        p = self.p
        inputs, outputs = p.FORM.unpack_from(form, 0)
        at = p.FORM.size
        tensors = []
        for _ in range(inputs):
            name, number, shape, place, size, at = self.decode_name(form, at)
            tensors.append((name, number, shape, place, size))
        names = []
        for _ in range(outputs):
            size = p.U64.unpack_from(form, at)[0]
            at += 8
            names.append(form[at : at + size].decode("utf-8", "surrogateescape"))
            at += size + (-size % 8)
        known = self.forms[form] = (tensors, frozenset(names))
        return known

    def execute(self, at, size):
        batch = self.native.read_batch(at, self.memory.hold(at))
        try:
            run = self.run
            if run is None:
                if not hasattr(self.model, "execute"):
                    raise self.failure(
                        "Python model %s does not implement `execute` method."
                        % self.greeting["model_file"]
                    )
                run = self.run = self.model.execute
            # The model gets a list of its own, because some empty it, as a queue of what is left to do. The
            # server expects an answer to each request of the batch.
            result = run(list(batch))
            if isinstance(result, types.CoroutineType):
                if self.session.is_decoupled:
                    result = self.run_in_background(batch, result)
                else:
                    result = self.loop.start(result).result()
            return self.answer(batch, result)
        except BaseException as error:  # also those that end a process or a task, as in Triton
            for request in batch:
                # The server completes these requests with the error, so the model cannot any more.
                request.get_response_sender()._close()
            text = self.failed_text(self.text_of(error))
            self.log_error(text)
            return self.put(self.p.ERROR, text)

    def failed_text(self, text):
        return "Failed to process the request(s) for model '%s', message: %s" % (
            self.session.name, text)

    def log_error(self, text):
        p = self.p
        self.session.tell(
            p.LOG, struct.pack("<II", 2, 0) + p.sized("model.py") + p.sized(p.for_people(text)))

    def answer(self, batch, returned):
        """Writes what the model returned: returns outcome, block, size."""
        if not self.session.is_decoupled:
            written = self.native.write_responses(batch, returned)
            if written is not None:
                return self.p.OK, *written
        writer = self.writer.Writer(shares=True)
        if returned is None:
            for request in batch:
                self.leave_to_sender(writer, request)
            offset, size = writer.write()
            return self.p.OK, offset, size
        if self.session.is_decoupled:
            raise self.failure(
                "Python model '%s' is using the decoupled mode and the execute function must return "
                "None." % self.session.name
            )
        if not isinstance(returned, list):
            raise self.failure(
                "Expected a list in the execute return, found type '%s'." % type(returned))
        returned = list(returned)  # a thread of the model's may still have it
        if len(returned) != len(batch):
            raise self.failure(
                "Number of InferenceResponse objects do not match the number of InferenceRequest "
                "objects. InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n"
                % (len(batch), len(returned))
            )
        for request, response in zip(batch, returned):
            if response is None:
                continue
            if request._release_flags == self.responses.RELEASE_RESCHEDULE:
                raise self.failure(
                    "Expected a None object in the execute function return list for reschduled "
                    "request, found type '%s'." % type(response)
                )
            if not isinstance(response, self.responses.InferenceResponse):
                raise self.failure(
                    "Expected an 'InferenceResponse' object in the execute function return list, "
                    "found type '%s'." % type(response)
                )
            if request._sender is not None:
                request._sender._count(response, self.responses.COMPLETE_FINAL)
        for request, response in zip(batch, returned):
            if response is None:
                self.leave_to_sender(writer, request)
            else:
                writer.add_response(response, request._outputs, request._release_flags)
        offset, size = writer.write()
        self.shared = writer.shared
        return self.p.OK, offset, size

    def leave_to_sender(self, writer, request):
        """Writes that the request completes later, by its sender, or is rescheduled."""
        flags = request._release_flags  # read once, because the model may set them at any time
        writer.add(self.writer.no_response(flags))
        sender = request.get_response_sender()
        if flags == self.responses.RELEASE_RESCHEDULE:
            sender._close()

    # --- Coroutines ---

    def run_in_background(self, batch, coroutine):
        """Starts the coroutine of a decoupled model, whose responses come from senders."""
        # Before it runs, because it may be done at any time from then on.
        senders = [request.get_response_sender() for request in batch]
        future = self.loop.start(coroutine)
        self.background[future] = senders
        future.add_done_callback(self.on_background_done)

    def on_background_done(self, future):
        senders = self.background.pop(future)
        if future.cancelled():
            text = log = "CancelledError: the coroutine was cancelled"
        else:
            error = future.exception()
            if error is None:
                return  # the model may have passed its senders on
            import traceback

            text = self.text_of(error)
            log = self.shown("".join(
                traceback.format_exception(type(error), error, error.__traceback__)))
        self.log_error(log)
        for sender in senders:
            sender._fail(self.failed_text(text))

    def on_loop_ended(self, error):
        self.log_error("the model's event loop goes on after %s" % self.text_of(error))


def main():
    channel = socket.socket(fileno=3)
    channel.set_inheritable(False)
    greeting, descriptor = _receive_greeting(channel)
    _end_with_server(channel, greeting["server_pid"])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, _ignore)
    signal.signal(signal.SIGTERM, _ignore)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    # A model's own modules have precedence over ours.
    sys.path[0:1] = []
    sys.path.append(greeting["backend_dir"])
    sys.path.append("")
    try:
        from nereid_python.memory import Memory

        memory = Memory(descriptor)
        os.close(descriptor)
        runner = Runner(greeting, memory)
    except Exception as error:
        _give_up(channel, greeting, error)
    runner.serve()
    sys.stdout.flush()
    sys.stderr.flush()
    # Skips waiting for threads that the model left running, and the interpreter's finalization.
    os._exit(0)


if __name__ == "__main__":
    main()
