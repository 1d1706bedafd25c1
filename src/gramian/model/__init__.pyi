from .average import AverageModel as AverageModel
from .base import KernelPart as KernelPart
from .base import Label as Label
from .base import Model as Model
from .blend.blend_model import BlendModel as BlendModel
from .blend.trees import Trees as Trees
from .cells import CellCenters as CellCenters
from .file.checks import same_encoding as same_encoding
from .importances import sum_by_column as sum_by_column
from .kernel_model import KernelModel as KernelModel
from .loading import load_model as load_model
from .uncertainty.probabilities import (
    LogOdds as LogOdds,
)
from .uncertainty.probabilities import (
    Probabilities as Probabilities,
)
from .uncertainty.probabilities import (
    Shares as Shares,
)
from .uncertainty.variance import Variance as Variance
