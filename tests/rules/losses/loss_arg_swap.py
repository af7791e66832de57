import torch
import torch.nn as nn
import torch.nn.functional as F


def binary(model, x, y):
    probability = torch.sigmoid(model(x))
    F.binary_cross_entropy(y, probability).backward()  # expect: loss-arg-swap
    F.binary_cross_entropy(probability, y).backward()
    F.binary_cross_entropy(target=y, input=probability).backward()


def named(output, target, labels, logits, prediction):
    loss = F.kl_div(target, output, reduction="batchmean")  # expect: loss-arg-swap
    loss += F.cross_entropy(labels.float(), logits)  # expect: loss-arg-swap
    loss += F.cross_entropy(logits, labels)
    loss += F.mse_loss(target, prediction)  # expect: loss-arg-swap
    loss += F.poisson_nll_loss(target, prediction)  # expect: loss-arg-swap
    loss += F.hinge_embedding_loss(labels, prediction)  # expect: loss-arg-swap
    return loss + F.mse_loss(prediction, target)


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)


class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.model = Regression()
        self.loss_fn = nn.HuberLoss()
        self.nll = nn.GaussianNLLLoss()

    def epoch(self):
        for batch in self.loader:
            predicted = self.model(batch["features"])
            loss = self.loss_fn(batch["price"], predicted)  # expect: loss-arg-swap
            loss = loss + self.loss_fn(predicted, batch["price"])
            loss = loss + self.nll(  # expect: loss-arg-swap
                batch["price"], predicted, torch.ones(1)
            )
            loss.backward()


def denoise(unet, loader, noise_images):
    """One name alone says nothing about which side is which."""
    criterion = nn.MSELoss()
    for images, t in loader:
        noise = torch.randn_like(images)
        noisy = noise_images(images, t)
        criterion(noise, unet(noisy, t)).backward()


def perceptual(vgg, generator, low, high):
    fake = generator(low)
    return F.l1_loss(vgg(high), vgg(fake))


def temporal_difference(network, target_network, batch):
    """Both sides come out of networks."""
    with torch.no_grad():
        td_target = batch.reward + 0.99 * target_network(batch.next).max(1).values
    value = network(batch.state).gather(1, batch.action)
    return F.mse_loss(td_target, value)


def contradicting(model, loader):
    """The data flow says the opposite of the names."""
    for output, x in loader:
        target = model(x)
        F.binary_cross_entropy(target, output).backward()


def unknown_sides(first, second, a):
    return F.binary_cross_entropy(first, second) + F.kl_div(a, second)


def own_loss(y_true, y_pred):
    """Keras order is fine for a function of one's own."""
    return ((y_true - y_pred) ** 2).mean()


def use_own_loss(model, x, y):
    return own_loss(y, model(x))


def metric(model, x, y):
    from sklearn.metrics import accuracy_score
    from torchmetrics.functional import accuracy

    predictions = model(x).argmax(1)
    return accuracy_score(y, predictions), accuracy(
        predictions, y, task="multiclass", num_classes=3
    )


def pairs(encoder, left, right, label):
    a, b = encoder(left), encoder(right)
    return F.cosine_embedding_loss(a, b, label) + F.cosine_embedding_loss(  # expect: loss-arg-swap
        label, b, a
    )


def adversarial(discriminator, images, valid):
    return F.binary_cross_entropy_with_logits(discriminator(images), valid)


def faithfulness(explainer, x):
    """``y`` may be either side, and the logarithm shows which comes first."""
    y = explainer.get_prediction(x)
    y_hat = explainer.get_masked_prediction(x)
    divergence = F.kl_div(y.log(), y_hat, reduction="batchmean")
    return divergence + F.binary_cross_entropy(y, y_hat)
