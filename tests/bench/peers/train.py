"""Seconds of each training step of a plain GPT-2 in eager PyTorch: train.py LAYERS HEADS WIDTH CONTEXT VOCABULARY BATCH STEPS THREADS

What a PyTorch user gets without effort: float32, fused attention, fused AdamW, random tokens. Prints a number a step.
"""
import math
import sys
import time

import torch

from gpt2 import Gpt2

layers, heads, width, context, vocabulary, batch, steps, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(0)

model = Gpt2(layers, heads, width, context, vocabulary)
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
