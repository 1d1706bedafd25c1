"""Tests of devices need torch, which the library does not; `make test-torch` runs them."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("torch")
    else [
        "test_device.py",
        "test_device_rows.py",
        "test_triton_engine.py",
    ]
)
