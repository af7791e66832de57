"""A student learns from a teacher: soft targets, a plateau schedule, a meter, the best weights."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class Accuracy:
    def __init__(self):
        self.reset()

    def reset(self):
        self.right = self.total = 0

    def update(self, logits, labels):
        self.right += (logits.argmax(1) == labels).sum().item()
        self.total += len(labels)

    def compute(self):
        return self.right / self.total


def network(width):
    return nn.Sequential(
        nn.Linear(20, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 5)
    )


def fit_teacher(teacher, loader):
    optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1, momentum=0.9)
    teacher.train()
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(teacher(x), y).backward()
            optimizer.step()


def distillation_loss(student_logits, teacher_logits, labels, temperature, share):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    )
    return share * temperature**2 * soft + (1 - share) * F.cross_entropy(student_logits, labels)


def main():
    torch.manual_seed(0)
    centres = 2 * torch.randn(5, 20)
    labels = torch.randint(5, (640,))
    train_set, val_set = random_split(
        TensorDataset(centres[labels] + torch.randn(640, 20), labels), [512, 128]
    )
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=64)

    teacher, student = network(128), network(16)
    fit_teacher(teacher, train_loader)
    teacher.eval()

    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
    accuracy = Accuracy()
    best_accuracy, best_weights = 0.0, None
    for epoch in range(6):
        student.train()
        running_loss = 0.0
        for x, y in train_loader:
            with torch.no_grad():
                teacher_logits = teacher(x)
            loss = distillation_loss(student(x), teacher_logits, y, temperature=4.0, share=0.7)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item()

        student.eval()
        accuracy.reset()
        with torch.no_grad():
            for x, y in val_loader:
                accuracy.update(student(x), y)
        val_accuracy = accuracy.compute()
        scheduler.step(val_accuracy)
        if val_accuracy > best_accuracy:
            best_accuracy = val_accuracy
            best_weights = copy.deepcopy(student.state_dict())
        print(epoch, running_loss / len(train_loader), val_accuracy)
    student.load_state_dict(best_weights)


if __name__ == "__main__":
    main()
