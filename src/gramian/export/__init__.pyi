from .onnx_model import to_onnx as to_onnx
