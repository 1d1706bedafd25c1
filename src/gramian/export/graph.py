"""Graph of ONNX that is built node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

OPSET, ML_OPSET, IR_VERSION = 18, 3, 8
"""Versions of the operators and of the file: onnxruntime reads them from 1.14 on."""


class Graph:
    """Nodes and constants of a graph; each method adds a node and returns the name of its result.

    Attributes
    ----------
    inputs, outputs : list of ValueInfoProto
    """

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy_helper = helper, numpy_helper
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, dtype: Any, width: int) -> str:
        """Add an input of shape (n, width)."""
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(self._helper.make_tensor_value_info(name, kind, ["n", width]))
        return name

    def output(self, name: str, value: str, dtype: Any, shape: Sequence[Any]) -> None:
        """Give a result the name of an output."""
        self._nodes.append(self._helper.make_node("Identity", [value], [name]))
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs.append(self._helper.make_tensor_value_info(name, kind, list(shape)))

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add a constant."""
        name = f"c{len(self._constants)}"
        array = np.array(value, dtype, order="C")
        self._constants.append(self._numpy_helper.from_array(array, name))
        return name

    def node(
        self, operator: str, names: list[str], attributes: dict[str, Any], domain: str = ""
    ) -> str:
        """Add a node with given results and attributes."""
        out = f"v{len(self._nodes)}"
        node = self._helper.make_node(operator, names, [out], domain=domain, **attributes)
        self._nodes.append(node)
        return out

    def add(self, operator: str, *operands: Any, **attributes: Any) -> str:
        """Add a node; operands that are no names are constants in float64."""
        names = [x if isinstance(x, str) else self.constant(x) for x in operands]
        return self.node(operator, names, attributes)

    def sum(self, x: str, axis: int) -> str:
        """Add a node that sums over an axis, which stays with length 1."""
        return self.node("ReduceSum", [x, self.constant([axis], np.int64)], {})

    def gather(self, x: str, index: Any, axis: int = 1) -> str:
        """Add a node that takes columns, or rows by an index in the graph."""
        where = index if isinstance(index, str) else self.constant(index, np.int64)
        return self.node("Gather", [x, where], {"axis": axis})

    def concat(self, parts: Sequence[str], axis: int = 1) -> str:
        """Add a node that joins results; a single one is returned as it is."""
        return parts[0] if len(parts) == 1 else self.node("Concat", list(parts), {"axis": axis})

    def cast(self, x: str, dtype: Any) -> str:
        """Add a node that converts numbers."""
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", [x], {"to": kind})

    def level_index(self, x: str, texts: Sequence[str]) -> str:
        """Add a node that returns the place of a text; of unknown texts, their number."""
        keys, places = list(texts), list(range(len(texts)))
        attributes = {"keys_strings": keys, "values_int64s": places, "default_int64": len(keys)}
        return self.node("LabelEncoder", [x], attributes, "ai.onnx.ml")

    def model(self, name: str, facts: dict[str, str]) -> Any:
        """Return the checked model."""
        from onnx import checker

        helper = self._helper
        graph = helper.make_graph(self._nodes, name, self.inputs, self.outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="gramian")
        model.ir_version = IR_VERSION
        helper.set_model_props(model, facts)
        checker.check_model(model, full_check=True)
        return model
