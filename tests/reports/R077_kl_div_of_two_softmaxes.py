"""Distillation with probabilities on both sides."""

import torch.nn.functional as F


def consistency(student_logits, teacher_logits, mask):
    student = F.softmax(student_logits, dim=1)
    teacher = F.softmax(teacher_logits.detach(), dim=1)
    divergence = F.kl_div(student, teacher, reduction="none")  # expect: kl-div-input-not-log
    return (divergence.sum(dim=1) * mask).mean()
