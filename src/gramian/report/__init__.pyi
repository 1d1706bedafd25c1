from .description import model_card as model_card
from .write import write_report as write_report
