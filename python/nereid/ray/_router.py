# SPDX-License-Identifier: Apache-2.0
"""How Ray Serve chooses a replica for a request: the requests of a sequence all go to one."""

from __future__ import annotations

import random
from typing import Optional

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.request_router import LocalityMixin, MultiplexMixin, PendingRequest, ReplicaID, RunningReplica


class SequenceRouter(LocalityMixin, MultiplexMixin, ConsistentHashRouter):
    """A request with a session (Ray's header, or `handle.options(session_id=…)`) goes to the replica that a ring of
    hashes gives it. The ring is the same in every router, and few sessions move when a replica comes or goes. Any
    other request goes as Ray's own router sends it: to the shorter queue of two replicas, among those that have its
    multiplexed model, or are near.
    """

    def initialize_state(self, **_) -> None:
        # The ring ranks all replicas: `take_over` asks them one after the other.
        super().initialize_state(num_fallback_replicas=1 << 20)

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        self._replica_queue_len_cache.invalidate_key(replica_id)

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: Optional[PendingRequest] = None
    ) -> list[list[RunningReplica]]:
        if not candidate_replicas or pending_request is None:
            return [candidate_replicas] if candidate_replicas else []
        session = pending_request.metadata.session_id
        if session:
            pending_request.routing_context.should_backoff = True
            owner = self._owner(session, pending_request.kwargs.get("rank", 0))
            # No other one if it is busy: what belongs together stays together.
            return [[owner]] if owner is not None else []
        is_multiplexed = bool(pending_request.metadata.multiplexed_model_id)
        choose = self.apply_multiplex_routing if is_multiplexed else self.apply_locality_routing
        chosen = [replica for replica_id in choose(pending_request) if (replica := self._replicas.get(replica_id))]
        return [random.sample(chosen, min(2, len(chosen)))] if chosen else []

    def _owner(self, session: str, rank: int) -> Optional[RunningReplica]:
        """The replica of that rank for the session, counted around; None if none is alive."""
        ranked = (self._replicas.get(replica_id) for replica_id in self._lookup_ranked_replicas(session))
        alive = [replica for replica in ranked if replica is not None]
        return alive[rank % len(alive)] if alive else None
