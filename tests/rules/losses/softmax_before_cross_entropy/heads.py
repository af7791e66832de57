import torch.nn.functional as F


class Head:
    """A lambda sees the names of the file that it stands in."""

    def __init__(self):
        self.squash = lambda scores: F.softmax(scores, dim=1)
