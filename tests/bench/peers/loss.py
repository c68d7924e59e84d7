"""Tokens a second of a plain GPT-2's loss in eager PyTorch: loss.py LAYERS HEADS WIDTH CONTEXT VOCABULARY BATCH BATCHES THREADS

Random tokens, in inference mode; the first batch is not counted. Prints the rate of each batch.
"""
import sys
import time

import torch

from gpt2 import Gpt2

layers, heads, width, context, vocabulary, batch, batches, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(0)
model = Gpt2(layers, heads, width, context, vocabulary)
with torch.inference_mode():
    for number, window in enumerate(torch.randint(0, vocabulary, (1 + batches, batch, context + 1))):
        start = time.perf_counter()
        model(window[:, :-1], window[:, 1:]).item()
        if number > 0:
            print(batch * context / (time.perf_counter() - start))
