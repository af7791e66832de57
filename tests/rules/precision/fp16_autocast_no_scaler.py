import torch
from torch.cuda.amp import autocast


def default_precision(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):  # expect: fp16-autocast-no-scaler
            output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()


def explicit(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast(device_type="cuda", dtype=torch.float16):  # expect: fp16-autocast-no-scaler
            loss = criterion(model(x), y)
            loss.backward()
        optimizer.step()


def optional(model, optimizer, criterion, loader, use_amp):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast(enabled=use_amp):  # expect: fp16-autocast-no-scaler
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def brain_float(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def on_cpu(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu"):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def anywhere(model, optimizer, criterion, loader, device, dtype):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast(device.type):
            loss = criterion(model(x), y)
        with torch.autocast("cuda", dtype=dtype):
            loss = loss + criterion(model(x), y)
        loss.backward()
        optimizer.step()


def inference(model, loader):
    with torch.no_grad(), autocast():
        return [model(x) for x in loader]


def frozen_teacher(teacher, model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad(), autocast():
            target = teacher(x)
        loss = criterion(model(x), target)
        loss.backward()
        optimizer.step()


def switched_off(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast(enabled=False):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
