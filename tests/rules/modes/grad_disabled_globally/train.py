from boxes import crop


def train(network, detector, loader, optimizer):
    for image in loader:
        optimizer.zero_grad()
        network(crop(detector, image)).mean().backward()
        optimizer.step()
