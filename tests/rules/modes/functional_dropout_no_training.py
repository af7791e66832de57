"""Networks that call dropout as a function."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import dropout, scaled_dot_product_attention


class Classifier(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.dropout = nn.Dropout(rate)
        self.fc1 = nn.Linear(128, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x, noise=0.0):
        x = F.dropout(x, self.rate)  # expect: functional-dropout-no-training
        x = F.relu(F.dropout(self.fc1(x)))  # expect: functional-dropout-no-training
        x = torch.nn.functional.dropout2d(x, p=0.2)  # expect: functional-dropout-no-training
        x = dropout(x, 0.1, inplace=True)  # expect: functional-dropout-no-training
        x = F.alpha_dropout(x, 0.1)  # expect: functional-dropout-no-training
        x = F.dropout(x, self.rate, self.training)
        x = F.dropout(x, p=self.rate, training=self.training)
        x = F.dropout(x, 0.0)
        x = F.dropout(x, noise)
        x = self.dropout(x)
        return F.dropout(self.fc2(x), 0.5, training=True)


class Attention(nn.Module):
    def __init__(self, width, attn_drop):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.attn_drop = attn_drop
        self.scheduled = attn_drop

    def set_epoch(self, epoch):
        self.scheduled = min(0.5, 0.01 * epoch)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        a = F.scaled_dot_product_attention(  # expect: functional-dropout-no-training
            q, k, v, dropout_p=self.attn_drop
        )
        b = scaled_dot_product_attention(q, k, v, dropout_p=0.1)  # expect: functional-dropout-no-training
        c = F.scaled_dot_product_attention(q, k, v, dropout_p=self.attn_drop if self.training else 0.0)
        rate = self.attn_drop if self.training else 0.0
        d = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        e = F.scaled_dot_product_attention(q, k, v, dropout_p=self.scheduled)
        f = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0) + F.dropout(v, rate)
        return a + b + c + d + e + f


class Guarded(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if self.training and self.rate > 0:
            x = F.dropout(x, self.rate)
        return F.dropout(x, self.rate) if self.training else x

    def augment(self, x):
        if not self.training:
            return x
        return F.dropout(x, 0.1)

    def training_step(self, batch):
        return self(F.dropout(batch, 0.1))

    def sample(self, x, is_train):
        if is_train:
            return F.dropout(x, 0.2)
        return x


def drop_edges(edge_index, p, training):
    return F.dropout(edge_index, p, training)


def perturb(noise, rate):
    return F.dropout(noise, p=rate)


class Pipeline:
    def noisy(self, x):
        return F.dropout(x, 0.3)
