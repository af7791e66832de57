import torch


class RadianceTrainer:
    def __init__(self, field, learning_rate, loader):
        self.field = field
        self.loader = loader
        self.optimizer = torch.optim.SGD(field.parameters(), lr=learning_rate)
        self.grad_scaler = torch.amp.GradScaler("cuda")

    def train(self, steps):
        self.field.train()
        for _, rays in zip(range(steps), self.loader):
            with torch.autocast("cuda", dtype=torch.float16):
                rendered = self.field(rays["origins"], rays["directions"])
                loss = torch.nn.functional.mse_loss(rendered, rays["colours"])
            self.optimizer.zero_grad()
            self.grad_scaler.scale(loss).backward()
            self.optimizer.step()  # expect: scaler-scale-without-step
            self.grad_scaler.update()
