import torch
from torch.amp import GradScaler

DTYPE = torch.bfloat16


def needless(model, optimizer, criterion, loader):
    scaler = GradScaler("cuda")  # expect: bf16-with-gradscaler
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=DTYPE):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.scaler = torch.cuda.amp.GradScaler()  # expect: bf16-with-gradscaler

    def step(self, batch):
        with torch.amp.autocast("cuda", torch.bfloat16):
            loss = self.model(batch)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()


def half(model, optimizer, criterion, loader):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def computed(model, optimizer, criterion, loader, dtype):
    scaler = GradScaler("cuda")
    off = GradScaler("cuda", enabled=False)
    flagged = GradScaler("cuda", enabled=dtype == torch.float16)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        off.scale(loss).backward()
        flagged.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def flagged(model, optimizer, criterion, loader, use_fp16):
    scaler = GradScaler("cuda", enabled=use_fp16)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not use_fp16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
