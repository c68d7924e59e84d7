"""Seconds of each optimizer step of GPT-2 124M's tensors on constant gradients: optimizers.py PEER STEPS THREADS

PEER: adamw, sgd (PyTorch's fused ones) or soap (pytorch-optimizer's port of the published program). Prints a number a step, and last the
bytes of state a parameter.
"""
import sys
import time

import torch

peer, steps, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(0)

WIDTH, LAYERS = 768, 12
shapes = [(50257, WIDTH), (1024, WIDTH), (WIDTH,), (WIDTH,)]
for _ in range(LAYERS):
    shapes += [(WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)]
    shapes += [(WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), (WIDTH,)]
parameters = [torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes]
for parameter in parameters:
    parameter.grad = torch.randn_like(parameter) * 1e-3

if peer == "adamw":
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
elif peer == "sgd":
    optimizer = torch.optim.SGD(parameters, lr=0.03, momentum=0.95, nesterov=True, fused=True)
else:
    from pytorch_optimizer import SOAP

    optimizer = SOAP(parameters, lr=3e-4, betas=(0.95, 0.95), weight_decay=0.01, precondition_frequency=10, max_precondition_dim=10000)

for _ in range(steps):
    start = time.perf_counter()
    optimizer.step()
    print(time.perf_counter() - start, flush=True)


def numbers(state):
    if torch.is_tensor(state):
        return state.numel() * state.element_size()
    if isinstance(state, dict):
        return sum(map(numbers, state.values()))
    return sum(map(numbers, state)) if isinstance(state, (list, tuple)) else 0


print(sum(numbers(state) for state in optimizer.state.values()) / sum(p.numel() for p in parameters))
