"""Report: the performance of a model on a table, as one HTML page without links.

    >>> from gramian.report import write_report
    >>> # numbers = write_report(model, "test.parquet", "page.html", train="train.parquet")

``pip install 'gramian[plots]'`` installs matplotlib, which draws the pictures, and jinja2, which
fills the template of the page.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
