# SPDX-License-Identifier: Apache-2.0
"""A replica of Ray Serve: a server in its process, asked over HTTP by Ray's proxy, or from Python by its handles."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import tempfile
import time
import weakref
from typing import Any, AsyncIterator, Optional
from urllib.parse import quote

from ray import serve
from ray.exceptions import RayActorError, RayError
from ray.serve.exceptions import RayServeException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from nereid._api._enums import RequestFlag
from nereid._api._errors import InvalidArgumentError, NotFoundError, TritonError, UnavailableError
from nereid._api._model import Model
from nereid._functions._repository import remove_folder
from nereid._functions._serve import FunctionServer
from nereid.ray._files import FileRepository, is_model_file
from nereid.ray._multiplexed import LoadedModel
from nereid.ray._peers import Peers, Reply, is_session_header
from nereid.ray._sequences import Sequences, Step, model_in, step_of
from nereid.ray._socket import Answer, Connections, Fields, ServerGone

# Of one body, which is in memory here until the server has it. The server has budgets for all of them.
_MOST_BYTES = 1 << 31
# How long the names of the models that there are hold good.
_NAMES_S = 1.0


class Replica:
    """What each replica runs. `app` deploys it; see there for the arguments."""

    def __init__(
        self,
        *models: Any,
        config: Optional[dict[str, Any]] = None,
        server: Optional[dict[str, Any]] = None,
        is_multiplexed: bool = False,
    ) -> None:
        self._is_multiplexed = is_multiplexed
        self._files = FileRepository()
        folder = tempfile.mkdtemp(prefix="nereid-ray-")
        self._remove_folder = weakref.finalize(self, remove_folder, folder, os.getpid())
        socket = os.path.join(folder, "http")
        # When it stops, Ray has waited for all requests. Sequences may be left, but Ray sends them no request any more.
        settings: dict[str, Any] = {"exit_timeout": 2, **(server or {})}
        settings.update(http_port=0, grpc_port=None, metrics_port=None)
        if is_multiplexed:
            settings["startup_models"] = []
        self._server = FunctionServer((*self._sources(models, config),), f"unix:{socket}", False, settings).start()
        self._connections = Connections(socket)
        self._sequences = Sequences(self._server)
        context = serve.get_replica_context()
        self._tag = context.replica_tag
        self._peers = Peers(context)
        self._loaded_names: set[str] = set()
        self._known_names: frozenset[str] = frozenset()
        self._known_until = 0.0
        self._asking = asyncio.Lock()
        names = [] if is_multiplexed else sorted({model.name for model in self._server.models().values()})
        self._only_model = names[0] if len(names) == 1 else None

    def _sources(self, models: tuple, config: Optional[dict[str, Any]]) -> list[Any]:
        files = [os.fspath(one) for one in models if isinstance(one, (str, os.PathLike)) and is_model_file(os.fspath(one))]
        if config is not None and len(files) != 1:
            raise InvalidArgumentError(f"config is for a single model file, and there are {len(files)}")
        for path in files:
            self._files.put(path, config)
        others = [one for one in models if not (isinstance(one, (str, os.PathLike)) and os.fspath(one) in files)]
        return [*others, self._files.path] if files else others

    def __del__(self) -> None:
        # Ray calls this when the replica has no more requests; the interpreter may again.
        server = getattr(self, "_server", None)
        if server is not None and server.is_running():
            with contextlib.suppress(TritonError):
                server.stop()
        if remove := getattr(self, "_remove_folder", None):
            self._files.close()
            remove()

    def check_health(self) -> None:
        """Ray replaces a replica for which this raises an error."""
        if not self._server.live():
            raise UnavailableError("the server is not live")
        if not self._server.ready():
            raise UnavailableError("the server is not ready")

    # --- HTTP ---------------------------------------------------------------------------------------

    async def __call__(self, request: Request) -> Response:
        """Passes a request over HTTP to the server, and its answer back."""
        root = request.scope.get("root_path", "").rstrip("/")
        path = request.scope["path"]
        if root and path.startswith(root):
            path = path[len(root) :]
        fields = [(name.lower(), value) for name, value in request.headers.raw]
        try:
            body = await _read(request)
            return _response(await self._answer(request.method, path, request.scope["query_string"], fields, body))
        except (TritonError, ServerGone, RayError, RayServeException) as error:
            return _refusal(error)

    async def _answer(self, method: str, path: str, query: bytes, fields: Fields, body: bytes) -> Answer:
        model, is_inference = model_in(path)
        target = quote(path or "/", safe="/:@!$&'()*+,;=~") + ("?" + query.decode("ascii") if query else "")
        call = (method, target, fields, body)
        async with self._loaded(model):
            named = dict(fields)
            step = self._sequences.step_in(model, named, body) if model and is_inference else None
            if step is None:
                return await self._connections.ask(*call)
            return await self._in_sequence(step, "_ask", call, any(map(is_session_header, named)))

    async def _ask(self, *call: Any) -> Answer:
        return await self._connections.ask(*call)

    # --- Handles ------------------------------------------------------------------------------------

    async def infer(self, inputs: dict[str, Any], model: Optional[str] = None, **fields: Any) -> dict[str, Any]:
        """One request from Python: arrays by name in, arrays by name out.

        Parameters
        ----------
        inputs : dict[str, Any]
            numpy arrays, or what else `InferenceRequest` takes.
        model : Optional[str]
            Not needed where there is only one, or a multiplexed model id is set.
        fields
            Other fields of `InferenceRequest`; `version`; `sequence_id`, `sequence_start` and `sequence_end`.

        Raises
        ------
        TritonError
            As `Model.infer`. A decoupled model that does not answer with exactly one response is an error.
        """
        name = self._named(model)
        async with self._loaded(name):
            step = step_of(name, fields)
            if step is None or not self._sequences.has(name):
                return await self._infer(name, inputs, fields)
            return await self._in_sequence(step, "_infer", (name, inputs, fields), False)

    async def stream(self, inputs: dict[str, Any], model: Optional[str] = None, **fields: Any) -> AsyncIterator:
        """As `infer`, for decoupled models: `handle.options(stream=True).stream.remote(…)` yields each response.

        A sequence needs `options(session_id=…)` with the same text in all of its requests.
        """
        name = self._named(model)
        async with self._loaded(name):
            step = step_of(name, fields)
            if step is not None and self._sequences.has(name) and not self._sequences.takes(step):
                raise InvalidArgumentError(
                    f"this replica does not have the sequence {step.sequence} of model '{name}'; streams of a sequence "
                    f"reach the same replica by options(stream=True, session_id='{step.sequence}')"
                )
            # Whoever leaves the stream gives the request up; so does a task that is cancelled.
            with _plain_errors():
                async with contextlib.aclosing(self._start(name, inputs, fields)) as responses:
                    async for response in responses:
                        if response.outputs:
                            yield _arrays(response)

    async def models(self) -> list[str]:
        """The models that the replica which gets this has loaded."""
        return sorted({model.name for model in self._server.models(exclude_not_ready=True).values()})

    def _named(self, model: Optional[str]) -> str:
        name = model or serve.get_multiplexed_model_id() or self._only_model
        if not name:
            raise InvalidArgumentError("say which model: infer.remote(inputs, model=…), or options(multiplexed_model_id=…)")
        return name

    def _start(self, name: str, inputs: dict[str, Any], fields: dict[str, Any]) -> Any:
        fields = dict(fields)
        model = Model(self._server, name, int(fields.pop("version", -1)))
        start, end = fields.pop("sequence_start", False), fields.pop("sequence_end", False)
        flags = start * RequestFlag.SEQUENCE_START | end * RequestFlag.SEQUENCE_END
        return model.async_infer(inputs=inputs, correlation_id=fields.pop("sequence_id", None), flags=flags, **fields)

    async def _infer(self, name: str, inputs: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
        with _plain_errors():
            async with contextlib.aclosing(self._start(name, inputs, fields)) as responses:
                found = [_arrays(response) async for response in responses if response.outputs]
        if len(found) != 1:
            raise InvalidArgumentError(f"model '{name}' answered {len(found)} times, which needs options(stream=True).stream")
        return found[0]

    # --- Sequences ----------------------------------------------------------------------------------

    async def _in_sequence(self, step: Step, method: str, call: tuple, is_by_session: bool) -> Any:
        """The answer of the replica that has the sequence, or of the one where it shall begin. `is_by_session` says
        that Ray has chosen this replica by the session of the request, and will choose it again."""
        failure: Optional[RayActorError] = None
        for replica in await self._candidates(step, is_by_session):
            if replica == self._tag:
                if self._sequences.takes(step):
                    return await getattr(self, method)(*call)
                continue
            try:
                reply, parts = await self._peers.hand_on(step, replica, method, call)
            except RayActorError as error:
                # It has ended. If it had the sequence, no other one has it, and none will execute the request.
                failure = error
                continue
            if reply.is_taken:
                # Here it may have been before its client began it anew.
                self._sequences.end(step)
                return _answer_of(reply.answer, parts) if method == "_ask" else reply.answer
        if failure is not None:
            raise failure
        # No replica has it. The server says so best.
        return await getattr(self, method)(*call)

    async def _candidates(self, step: Step, is_by_session: bool) -> list[str]:
        """The replicas that may have the sequence, in the order in which they are to be asked."""
        ranked = await self._peers.ranked(step.sequence)
        owner = ranked[0] if ranked else self._tag
        is_here = is_by_session or owner == self._tag
        if step.start:
            return [self._tag if is_here else owner]
        if self._sequences.has_begun(step):
            # It has begun here while the owner did not exist. Its client may have begun it anew since then, there.
            return [self._tag] if is_here else [owner, self._tag]
        return [replica for replica in ranked if replica != self._tag]

    async def take_over(self, step: Step, method: str, call: tuple, to: str) -> AsyncIterator:
        """What another replica got and is for this one: yields a `Reply`, and then the pieces of an answer that is a
        stream. `to` is for the router."""
        if not self._sequences.takes(step):
            yield tuple(Reply(False))
            return
        answer = await getattr(self, method)(*call)
        if not isinstance(answer, Answer):
            yield tuple(Reply(True, answer))
            return
        yield tuple(Reply(True, (answer.status, answer.fields, answer.body)))
        if answer.body is None:
            async with contextlib.aclosing(answer.pieces()) as pieces:
                async for piece in pieces:
                    yield piece

    # --- Multiplexed models -------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _loaded(self, model: Optional[str]) -> AsyncIterator[None]:
        """Loads the model that a request is for, where models are loaded on demand, and keeps it."""
        if not self._is_multiplexed or model is None:
            yield
            return
        chosen = serve.get_multiplexed_model_id()
        if chosen and chosen != model:
            raise InvalidArgumentError(f"the request is for model '{model}', and its header for '{chosen}'")
        # Ray makes room before it loads: a name that nothing has would cost a model that works.
        if not await self._exists(model):
            raise NotFoundError(f"Request for unknown model: '{model}' is not found")
        loaded: LoadedModel = await self.load_model(model)
        with loaded.used():
            yield

    async def _exists(self, name: str) -> bool:
        """Whether the model is loaded here, or a repository has it, perhaps a moment ago."""
        if name in self._loaded_names:
            return True
        async with self._asking:
            if time.monotonic() >= self._known_until:
                # Repositories may be far away.
                self._known_names = await asyncio.to_thread(self._names)
                self._known_until = time.monotonic() + _NAMES_S
            return name in self._known_names

    def _names(self) -> frozenset[str]:
        return frozenset(model.name for model in self._server.models().values())

    async def load_model(self, name: str) -> LoadedModel:
        """Loads a model of the repository."""
        await asyncio.to_thread(self._server.load, name)
        self._loaded_names.add(name)
        return LoadedModel(self._server, name, self._forget)

    def _forget(self, name: str) -> None:
        """After a model was unloaded."""
        self._loaded_names.discard(name)
        self._sequences.forget(name)


def multiplexed_replica(most_models: int) -> type:
    """The class of replicas that have so many models of their repositories loaded at once, at most."""

    class MultiplexedReplica(Replica):
        @serve.multiplexed(max_num_models_per_replica=most_models)
        async def load_model(self, name: str) -> LoadedModel:
            return await Replica.load_model(self, name)

    MultiplexedReplica.__doc__ = Replica.__doc__
    return MultiplexedReplica


# --- Small parts ------------------------------------------------------------------------------------


async def _read(request: Request) -> bytes:
    """The body, all of it: Ray's proxy has it in memory as well."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > _MOST_BYTES:
            raise InvalidArgumentError(f"the body of the request is larger than {_MOST_BYTES} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _response(answer: Answer) -> Response:
    if answer.body is not None:
        response = Response(answer.body, answer.status)
        answer.fields.append((b"content-length", b"%d" % len(answer.body)))
    else:
        response = StreamingResponse(answer.pieces(), answer.status)
    response.raw_headers = answer.fields
    return response


def _answer_of(head: tuple[int, Fields, Optional[bytes]], parts: AsyncIterator) -> Answer:
    """The answer that another replica passes on."""
    answer = Answer(*head)
    if answer.body is None:
        answer.pieces = lambda: parts
    return answer


def _refusal(error: Exception) -> Response:
    """An error of this package, in the form of the server's."""
    statuses = {InvalidArgumentError: 400, NotFoundError: 404, UnavailableError: 503}
    status = statuses.get(type(error), 500) if isinstance(error, TritonError) else 503
    return Response(json.dumps({"error": str(error)}), status, media_type="application/json")


@contextlib.contextmanager
def _plain_errors():
    """Errors without the response that they came with, which cannot leave the process."""
    try:
        yield
    except TritonError as error:
        raise type(error)(str(error)) from None


def _arrays(response: Any) -> dict[str, Any]:
    return {name: tensor.__array__() for name, tensor in response.outputs.items()}


def existing(path: str) -> str:
    """The path as every process of this machine finds it."""
    return str(pathlib.Path(path).absolute()) if os.path.exists(path) else path
