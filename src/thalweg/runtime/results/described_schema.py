"""Arrow schemas as text, for the manifest."""

from __future__ import annotations

import base64

import pyarrow as pa


def described_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def read_schema(described: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described)))
