# SPDX-License-Identifier: Apache-2.0
"""How many replicas the tests want, for Ray's autoscaling: Ray replaces all replicas when an application is deployed
anew, and none when it scales."""

import os


def wanted(context):
    """The number in a file of the cluster."""
    with open(os.environ["NEREID_RAY_REPLICAS"]) as file:
        return int(file.read()), {}
