import torch
from runner import Scorer
from torchvision.models import resnet18


def main(test_loader):
    model = resnet18()
    model.load_state_dict(torch.load("model.pt", weights_only=True))
    model.eval()
    scorer = Scorer(model, test_loader)
    print(scorer.score())


if __name__ == "__main__":
    main(torch.utils.data.DataLoader(torch.load("test.pt", weights_only=False)))
