import torch


def restore(generator, discriminator, g_optimizer, d_optimizer, path, device):
    checkpoint = torch.load(path, map_location=device, weights_only=True)
    generator.load_state_dict(checkpoint["generator"])
    discriminator.load_state_dict(checkpoint["discriminator"])
    g_optimizer.load_state_dict(checkpoint["g_optimizer"])
    g_optimizer.load_state_dict(checkpoint["d_optimizer"])  # expect: optimizer-wrong-params
    return checkpoint["step"]
