from .dependence import PartialDependence as PartialDependence
from .dependence import partial_dependence as partial_dependence
from .nearest import NearestRows as NearestRows
from .nearest import nearest_rows as nearest_rows
from .shapley import Explanation as Explanation
from .shapley import shapley_values as shapley_values
