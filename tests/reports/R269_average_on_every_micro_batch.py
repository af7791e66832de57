"""Speech synthesis: accelerate steps once in four batches, the average moves on each."""

from accelerate import Accelerator


def train(accelerator: Accelerator, model, ema_model, loader, optimizer, epochs: int) -> None:
    model.train()
    for _ in range(epochs):
        for mel, text in loader:
            with accelerator.accumulate(model):
                loss = model(mel, text)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.is_local_main_process:
                ema_model.update()  # expect: ema-update-cadence
