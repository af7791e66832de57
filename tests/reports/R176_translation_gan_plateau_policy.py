import torch
from torch.optim import lr_scheduler


def make_schedule(optimizer, options):
    if options.policy == "linear":
        return lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / options.epochs)
    if options.policy == "step":
        return lr_scheduler.StepLR(optimizer, step_size=options.every, gamma=0.1)
    if options.policy == "plateau":
        return lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.2, patience=5)
    raise ValueError(options.policy)


class TranslationModel:
    def __init__(self, generator, discriminator, options):
        self.opt_g = torch.optim.Adam(generator.parameters(), lr=options.lr)
        self.opt_d = torch.optim.Adam(discriminator.parameters(), lr=options.lr)
        self.schedules = [make_schedule(item, options) for item in (self.opt_g, self.opt_d)]

    def update_learning_rate(self):
        for schedule in self.schedules:
            schedule.step()  # expect: plateau-no-metric
        print(self.opt_g.param_groups[0]["lr"])
