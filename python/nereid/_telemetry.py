# SPDX-License-Identifier: Apache-2.0
"""Imported before anything that may open ONNX Runtime, which keeps and sends data about its use unless this
variable is set before its first session."""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
