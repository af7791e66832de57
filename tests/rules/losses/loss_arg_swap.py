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


# Classes: integers come second, scores first, whatever the other side is.


def next_token(rows):
    model = nn.Linear(8, 100)
    logits = model(rows[:, :-1])
    wrong = F.cross_entropy(rows[:, 1:].flatten(), logits.flatten(0, 1))  # expect: loss-arg-swap
    return wrong + F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def twins_of(similarity, count):
    twins = torch.arange(2 * count).roll(count)
    loss = F.cross_entropy(twins, similarity)  # expect: loss-arg-swap
    return loss + F.cross_entropy(similarity, twins)


def first_of_each(rows, device):
    first = torch.zeros(len(rows), device=device, dtype=torch.long)
    loss = F.cross_entropy(first, rows)  # expect: loss-arg-swap
    return loss + F.cross_entropy(rows, first) + F.cross_entropy(first, torch.argmax(rows, 1))


def of_log_probabilities(model, states, act):
    scores = F.log_softmax(model(states), dim=-1)
    loss = F.nll_loss(act, scores)  # expect: loss-arg-swap
    return loss + F.nll_loss(scores, act)


def mutual_learning(first, second, x):
    """Each network's probabilities are the other's soft target."""
    return F.cross_entropy(first(x), second(x).softmax(1)) + F.cross_entropy(second(x), first(x))


def soft_targets(scores, teacher, x):
    with torch.no_grad():
        probabilities = teacher(x)
    return F.cross_entropy(scores, probabilities)


# New data is a target, and names show through scaling and joining.


def adversarial_with_ones(discriminator, images):
    real, fake = torch.ones(len(images), 1), torch.zeros(len(images), 1)
    loss = F.binary_cross_entropy(real, discriminator(images))  # expect: loss-arg-swap
    loss = loss + F.mse_loss(fake, discriminator(images))
    return loss + F.binary_cross_entropy(discriminator(images), fake)


def joined_and_scaled(clicked_target, other_target, scores_pred, temperature, labels, logits):
    loss = F.binary_cross_entropy(  # expect: loss-arg-swap
        torch.cat([clicked_target, other_target]), scores_pred
    )
    loss += F.cross_entropy(labels, temperature * logits)  # expect: loss-arg-swap
    return loss + F.cross_entropy(logits / temperature, labels)
