from .checkpoint import Checkpoint as Checkpoint
from .checkpoint_file import load_state as load_state
from .checkpoint_file import save_state as save_state
from .early_stopping import KeepBest as KeepBest
from .early_stopping import Validate as Validate
from .progress import Progress as Progress
from .stages import announce as announce
