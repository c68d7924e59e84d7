"""A plain GPT-2 in eager PyTorch, with fused attention, as a PyTorch user would write it."""
import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, stream):
        width = stream.shape[-1]
        shape = (stream.shape[0], stream.shape[1], self.heads, width // self.heads)
        parts = self.attention_in(self.attention_norm(stream)).split(width, dim=-1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        stream = stream + self.attention_out(mixed.transpose(1, 2).flatten(2))
        return stream + self.mlp(stream)


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(context, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(heads, width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, tokens, targets):
        """The mean loss."""
        stream = self.norm(self.layers(self.embedding(tokens) + self.positions[: tokens.shape[1]]))
        logits = stream @ self.embedding.weight.T  # the head is the embedding
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
