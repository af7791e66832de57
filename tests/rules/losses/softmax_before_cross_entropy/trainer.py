class Trainer:
    """Model and criterion come from whoever makes the trainer."""

    def __init__(self, model, criterion, loader):
        self.model = model
        self.criterion = criterion
        self.loader = loader

    def run(self):
        for x, y in self.loader:
            output = self.model(x)
            loss = self.criterion(output, y)  # expect: softmax-before-cross-entropy
            loss.backward()


class PlainTrainer(Trainer):
    def run(self):
        for x, y in self.loader:
            self.criterion(self.model(x), y).backward()
