# SPDX-License-Identifier: Apache-2.0
"""Metrics of the program's own, on the same page as the server's."""

from __future__ import annotations

from typing import Optional, Sequence

from nereid import _core
from nereid._api._enums import MetricKind

MetricFamily = _core.MetricFamily


class Metric(_core.Metric):
    """One metric of a family, told from the others by its labels.

    Parameters
    ----------
    family : MetricFamily
        `MetricFamily(kind, name, description)`.
    labels : Optional[dict[str, str]]
    buckets : Optional[Sequence[float]]
        Upper bounds, rising; for families of kind HISTOGRAM. (Not in Triton's package.)
    """

    def __init__(
        self,
        family: MetricFamily,
        labels: Optional[dict[str, str]] = None,
        buckets: Optional[Sequence[float]] = None,
    ) -> None:
        super().__init__(family, labels or {}, None if buckets is None else list(buckets))

    @property
    def kind(self) -> MetricKind:
        """The kind of the family."""
        return MetricKind(self._kind())
