"""``torch`` comes from another file's imports."""

from common import *

network = load("network.pt", "cpu")
network.eval()


def right(test_loader):
    with torch.no_grad():
        for x, y in test_loader:
            print(nn.functional.cross_entropy(network(x), y))


@torch.no_grad()
def right_too(test_loader):
    for x, y in test_loader:
        print(nn.functional.cross_entropy(network(x), y))


@smart_inference_mode()
def right_by_the_projects_decorator(test_loader):
    for x, y in test_loader:
        print(nn.functional.cross_entropy(network(x), y))


def wrong(test_loader):
    for x, y in test_loader:
        print(nn.functional.cross_entropy(network(x), y))  # expect: eval-without-no-grad
