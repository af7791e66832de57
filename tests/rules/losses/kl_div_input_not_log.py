import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence


def distil(student, teacher, x, temperature):
    s, t = student(x), teacher(x)
    right = F.kl_div(
        F.log_softmax(s / temperature, 1), F.softmax(t / temperature, 1), reduction="batchmean"
    )
    both_logs = F.kl_div(
        F.log_softmax(s, 1), F.log_softmax(t, 1), reduction="batchmean", log_target=True
    )
    of_log = F.kl_div(torch.log(F.softmax(s, 1) + 1e-8), F.softmax(t, 1), reduction="sum")
    method = F.kl_div(s.softmax(1).log(), t.softmax(1), reduction="sum")
    wrong = F.kl_div(  # expect: kl-div-input-not-log
        F.softmax(s, 1), F.softmax(t, 1), reduction="none"
    )
    swapped = F.kl_div(  # expect: kl-div-input-not-log
        F.softmax(t, 1), F.log_softmax(s, 1), reduction="none"
    )
    return right * temperature**2 + both_logs + of_log + method + wrong + swapped


class Distillation(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature
        self.criterion = nn.KLDivLoss(reduction="batchmean")

    def forward(self, student_logits, teacher_logits):
        student = F.softmax(student_logits / self.temperature, dim=1)
        teacher = F.softmax(teacher_logits / self.temperature, dim=1)
        return self.criterion(student, teacher)  # expect: kl-div-input-not-log


class RightDistillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="batchmean")
        self.log_softmax = nn.LogSoftmax(dim=1)

    def forward(self, student_logits, teacher_logits):
        return self.criterion(self.log_softmax(student_logits), teacher_logits.softmax(dim=1))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(x)


def soft_labels(loader):
    model = Classifier()
    criterion = nn.KLDivLoss(reduction="batchmean")
    for x, distribution in loader:
        criterion(model(x), distribution).backward()  # expect: kl-div-input-not-log
        criterion(model(x).log_softmax(dim=1), distribution).backward()


def variational(mean, spread, x):
    posterior, prior = Normal(mean, spread), Normal(0.0, 1.0)
    by_library = kl_divergence(posterior, prior).sum()
    p, q = F.softmax(x, dim=1), F.softmax(mean, dim=1)
    by_hand = (p * (p.log() - q.log())).sum()
    return by_library + by_hand


def named_already(model, x, target):
    log_probs = model(x)
    return F.kl_div(log_probs, target, reduction="batchmean")


def kl_div(p, q):
    """A function of this project, for probabilities."""
    return (p * torch.log(p / q)).sum()


def own_function(s, t):
    return kl_div(F.softmax(s, 1), F.softmax(t, 1))
