#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nereid with nothing but curl.
# usage: examples/clients/curl.sh [HOST:PORT]
set -euo pipefail
url=http://${1:-localhost:8000}
here=$(dirname "${BASH_SOURCE[0]}")

echo "# Is it up?"
curl -fsS -o /dev/null -w '%{http_code}\n' "$url/v2/health/ready"

echo "# What does the model take and give?"
curl -fsS "$url/v2/models/digits"; echo

echo "# Which digit is this? Tensors as JSON, both ways:"
curl -fsS -d "@$here/digit.json" "$url/v2/models/digits/infer"; echo

echo "# Two numbers as strings, added and subtracted sixteen times:"
numbers='["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16"]'
curl -fsS "$url/v2/models/simple_string/infer" -d '{"inputs":[
  {"name":"INPUT0","shape":[1,16],"datatype":"BYTES","data":'"$numbers"'},
  {"name":"INPUT1","shape":[1,16],"datatype":"BYTES","data":'"$numbers"'}]}'; echo
