"""Export of models to other runtimes.

    >>> from gramian.export import to_onnx
    >>> # to_onnx(model, "houses.onnx")

``pip install 'gramian[onnx]'`` installs the package onnx, which writes the files.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
