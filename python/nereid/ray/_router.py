# SPDX-License-Identifier: Apache-2.0
"""How Ray Serve chooses a replica for a request: the requests of a sequence all go to one."""

from __future__ import annotations

import random
from typing import Optional

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.request_router import LocalityMixin, MultiplexMixin, PendingRequest, ReplicaID, RunningReplica

from nereid.ray._ranking import publish, ranked


class SequenceRouter(LocalityMixin, MultiplexMixin, ConsistentHashRouter):
    """A request with a session (Ray's header, or `handle.options(session_id=…)`) goes to the replica to which `ranked`
    gives the session. Any other request goes as Ray's own router sends it: to the shorter queue of two replicas, among
    those that have its multiplexed model, or are near.

    Of the router for sessions that Ray has, this takes how requests wait, because that gives each request the replica
    that was chosen for it and no other.
    """

    _by_tag: dict[str, RunningReplica] = {}

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        self._publish()

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        self._publish()

    def _publish(self) -> None:
        self._by_tag = {replica_id.unique_id: replica for replica_id, replica in self._replicas.items()}
        publish(self._deployment_id.name, self._deployment_id.app_name, self._by_tag)

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: Optional[PendingRequest] = None
    ) -> list[list[RunningReplica]]:
        if not candidate_replicas or pending_request is None:
            return [candidate_replicas] if candidate_replicas else []
        session = pending_request.metadata.session_id
        if session:
            pending_request.routing_context.should_backoff = True
            # No other one if it is busy: what belongs together stays together.
            return [[self._by_tag[self._tag_for(session, pending_request)]]] if self._by_tag else []
        is_multiplexed = bool(pending_request.metadata.multiplexed_model_id)
        choose = self.apply_multiplex_routing if is_multiplexed else self.apply_locality_routing
        chosen = [replica for replica_id in choose(pending_request) if (replica := self._replicas.get(replica_id))]
        return [random.sample(chosen, min(2, len(chosen)))] if chosen else []

    def _tag_for(self, session: str, pending_request: PendingRequest) -> str:
        # A replica that asks another one about a sequence names it. If that one has ended, any other says so.
        named = pending_request.kwargs.get("to") if pending_request.metadata.call_method == "take_over" else None
        return named if named in self._by_tag else ranked(session, self._by_tag)[0]
