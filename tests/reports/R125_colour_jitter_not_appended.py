import torchvision.transforms as T


def build_transforms(config, is_train):
    steps = []
    if is_train:
        steps.append(T.Resize(config.size_train))
        if config.flip:
            steps.append(T.RandomHorizontalFlip(p=config.flip_probability))
        if config.colour_jitter:
            T.RandomApply(  # expect: to-result-discarded
                [T.ColorJitter(brightness=0.1, contrast=0.1)], p=config.jitter_probability
            )
    else:
        steps.append(T.Resize(config.size_test))
    steps.append(T.ToTensor())
    return T.Compose(steps)
