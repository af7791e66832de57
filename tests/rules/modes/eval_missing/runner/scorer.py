from .base_scorer import BaseScorer


class Scorer(BaseScorer):
    """The one that programs use."""
