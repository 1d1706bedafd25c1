"""Tests of devices need torch, which the library does not; `make test-torch` runs them."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["test_gpu_benchmark.py"]
