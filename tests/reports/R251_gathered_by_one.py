"""Text classification: the main process waits for gathers that the others never call."""

import torch
from accelerate import Accelerator


def evaluate(accelerator: Accelerator, model, eval_loader, metric):
    model.eval()
    for batch in eval_loader:
        with torch.no_grad():
            predictions = model(batch["input_ids"]).argmax(-1)
        if accelerator.is_main_process:
            pair = (predictions, batch["labels"])
            gathered = accelerator.gather_for_metrics(pair)  # expect: collective-under-rank-guard
            metric.add_batch(predictions=gathered[0], references=gathered[1])
    return metric.compute()
