"""Seconds of each training step of a plain GPT-2 in eager PyTorch: train.py LAYERS HEADS WIDTH CONTEXT VOCABULARY BATCH STEPS THREADS

What a PyTorch user gets without effort: float32, fused attention, fused AdamW, random tokens. Prints a number a step.
"""
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional

layers, heads, width, context, vocabulary, batch, steps, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, stream):
        shape = (stream.shape[0], stream.shape[1], heads, width // heads)
        parts = self.attention_in(self.attention_norm(stream)).split(width, dim=-1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        stream = stream + self.attention_out(mixed.transpose(1, 2).flatten(2))
        return stream + self.mlp(stream)


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(context, width) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, tokens, targets):
        stream = self.norm(self.layers(self.embedding(tokens) + self.positions[: tokens.shape[1]]))
        logits = stream @ self.embedding.weight.T  # the head is the embedding
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = Gpt2()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
windows = torch.randint(0, vocabulary, (steps, batch, context + 1))
for window in windows:
    start = time.perf_counter()
    loss = model(window[:, :-1], window[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not math.isfinite(loss.item()):
        sys.exit("the loss is not finite")
    print(time.perf_counter() - start)
