"""Distillation as it should be: the logarithm on the student's side only."""
# never: kl-div-input-not-log

import torch.nn.functional as F


def distillation_loss(student_logits, teacher_logits, labels, temperature=4.0, alpha=0.9):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    )
    return alpha * temperature**2 * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)
