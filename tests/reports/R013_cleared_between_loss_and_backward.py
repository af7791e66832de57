"""A course's training loop: loss first, then zero_grad, backward, step."""
# never: zero-grad-missing

import torch
from torch import nn

torch.manual_seed(42)
x = torch.arange(0, 1, 0.02).unsqueeze(1)
y = 0.7 * x + 0.3
model = nn.Linear(1, 1)
loss_fn = nn.L1Loss()
optimizer = torch.optim.SGD(params=model.parameters(), lr=0.01)

for epoch in range(200):
    model.train()
    prediction = model(x)
    loss = loss_fn(prediction, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: {loss.item():.4f}")
