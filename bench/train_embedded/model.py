"""The network: a plain llama, its parameters named as in GGUF, and its two optimisers.

Because `state_dict` has GGUF's tensor names and `nn.Linear` keeps weights as (out, in), export is one loop.
Position is coded by rotating interleaved pairs (0, 1), (2, 3), ..., which is what llama.cpp's `llama`
architecture does, so that no rows are permuted on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention, silu
from torch.optim import AdamW, Muon, Optimizer


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; the width of a head is `embedding / heads`."""

    embedding: int
    layers: int
    heads: int
    feed_forward: int
    context: int = 1024  # the longest context trained, tokens
    rms_epsilon: float = 1e-5
    rope_base: float = 10_000.0


SHAPES = {
    "target": Shape(embedding=256, layers=8, heads=8, feed_forward=704),
    "draft": Shape(embedding=128, layers=3, heads=4, feed_forward=352),
}


def rope_turns(shape: Shape) -> Tensor:
    """(context, width / 2) unit complex numbers, `width` being that of a head.

    At position p, pair j is turned by p * base^(-2j / width) radians (Su et al. 2021).
    """
    width = shape.embedding // shape.heads
    frequencies = shape.rope_base ** (-torch.arange(0, width, 2) / width)
    angles = torch.outer(torch.arange(shape.context), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """`x` (rows, heads, length, width), each interleaved pair turned by its position, in float32 inside."""
    pairs = torch.view_as_complex(x.float().view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class Block(nn.Module):
    """One layer: causal attention and SwiGLU, each behind an RMSNorm and added to what came in."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, hidden = shape.embedding, shape.feed_forward
        self.heads = shape.heads
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, width, bias=False)
        self.attn_v = nn.Linear(width, width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_gate = nn.Linear(width, hidden, bias=False)
        self.ffn_up = nn.Linear(width, hidden, bias=False)
        self.ffn_down = nn.Linear(hidden, width, bias=False)
        self.attn_norm = nn.RMSNorm(width, eps=shape.rms_epsilon)
        self.ffn_norm = nn.RMSNorm(width, eps=shape.rms_epsilon)
        # A layer that starts as the identity lets the learning rate be high from the first step.
        nn.init.zeros_(self.attn_output.weight)
        nn.init.zeros_(self.ffn_down.weight)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        """(rows, length, embedding) to the same."""
        normed = self.attn_norm(x)
        q, k, v = self.attn_q(normed), self.attn_k(normed), self.attn_v(normed)
        by_head = (*x.shape[:2], self.heads, -1)
        q, k, v = (rows.view(by_head).transpose(1, 2) for rows in (q, k, v))
        attended = scaled_dot_product_attention(rotate(q, turns), rotate(k, turns), v, is_causal=True)
        x = x + self.attn_output(attended.transpose(1, 2).flatten(-2))
        normed = self.ffn_norm(x)
        return torch.add(x, self.ffn_down(silu(self.ffn_gate(normed)) * self.ffn_up(normed)))


class Llama(nn.Module):
    """Token ids to logits; the output matrix is the embedding matrix."""

    def __init__(self, shape: Shape, n_vocab: int) -> None:
        super().__init__()
        self.token_embd = nn.Embedding(n_vocab, shape.embedding)
        self.output_norm = nn.RMSNorm(shape.embedding, eps=shape.rms_epsilon)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        nn.init.normal_(self.token_embd.weight, std=0.02)
        self.register_buffer("turns", rope_turns(shape), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (rows, length, n_vocab) of `tokens` (rows, length)."""
        turns = self.get_buffer("turns")[: tokens.shape[1]]
        x: Tensor = self.token_embd(tokens)
        for block in self.blk:
            x = block(x, turns)
        logits: Tensor = linear(self.output_norm(x), self.token_embd.weight)
        return logits


def make_optimizers(model: Llama) -> list[Optimizer]:
    """Muon for the matrices of the layers, AdamW for the embedding (which is the output, too) and the norms.

    Muon (Jordan et al. 2024) makes each update nearly orthogonal by 5 Newton-Schulz steps;
    `adjust_lr_fn="original"` scales it by sqrt(max(1, rows / columns)).
    """
    matrices = [weight for weight in model.blk.parameters() if weight.ndim == 2]
    rest = [weight for name, weight in model.named_parameters() if weight.ndim == 1 or "blk" not in name]
    muon = Muon(
        matrices,
        lr=0.02,
        weight_decay=0.01,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315),
        ns_steps=5,
        adjust_lr_fn="original",
    )
    return [muon, AdamW(rest, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0)]


def scale_rates(optimizers: list[Optimizer], factor: float) -> None:
    """Every learning rate to `factor` times the one that it was made with."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = optimizer.defaults["lr"] * factor
