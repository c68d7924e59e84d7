"""Seconds to find the tokens that every head of GPT-2 124M prefers, in PyTorch: align.py THREADS

For each of 144 heads the cosine of each token's key with a direction, and the 20 best and worst; keys alone, without spelling or printing.
"""
import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)
layers, heads, width, vocabulary = 12, 12, 768, 50257
embedding = torch.randn(vocabulary, width) * 0.02
W_K = torch.randn(layers, heads, width // heads, width) * 0.02
directions = torch.nn.functional.normalize(torch.randn(layers, heads, width // heads), dim=-1)
with torch.inference_mode():
    for _ in range(2):
        start = time.perf_counter()
        for layer in range(layers):
            keys = torch.einsum("tw,hdw->htd", embedding, W_K[layer])
            cosine = torch.einsum("htd,hd->ht", torch.nn.functional.normalize(keys, dim=-1), directions[layer])
            cosine.topk(20), cosine.topk(20, largest=False)
        seconds = time.perf_counter() - start
print(seconds)
