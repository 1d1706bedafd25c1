from .convergence import ConvergenceDisplay as ConvergenceDisplay
from .importances import ImportanceDisplay as ImportanceDisplay
from .landmarks import LandmarkDisplay as LandmarkDisplay
from .penalty_path import PenaltyPathDisplay as PenaltyPathDisplay
from .reliability import ReliabilityDisplay as ReliabilityDisplay
from .variogram import VariogramDisplay as VariogramDisplay
