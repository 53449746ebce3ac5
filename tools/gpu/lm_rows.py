"""Rows of language models on which peers are measured, by the names that the plans of pack.sh have:
SIZE-BxS[-V…][-clip], as in small-32x1024-V50304 or xl-4x512-clip."""
import re
from typing import NamedTuple


class Size(NamedTuple):
    width: int
    hidden: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    gpt2: bool = False  # norms of layers, learned positions, GELU, biases, one table for ids and classes


SIZES = {
    "small": Size(768, 3072, 12, 12, 12, 10000),
    "medium": Size(1024, 4096, 24, 16, 16, 10000),
    "large": Size(1280, 5120, 36, 20, 20, 10000),
    "xl": Size(1600, 6400, 48, 25, 25, 10000),
    "2.7B": Size(2560, 10240, 32, 32, 32, 10000),
    "llama-1b": Size(2048, 5632, 22, 32, 4, 32000),
    "gpt2-124M": Size(768, 3072, 12, 12, 12, 50304, gpt2=True),  # 50257 classes, padded as users of PyTorch and XLA do
}


class Row(NamedTuple):
    name: str
    size: Size
    batch: int
    sequence: int
    clip: bool  # the gradients' norm, by 1.0


def row(name):
    found = re.fullmatch(r"(.+)-(\d+)x(\d+)(?:-V(\d+))?(-clip)?", name)
    if not found or found[1] not in SIZES:
        raise SystemExit(f"no such row: {name}; sizes: {', '.join(SIZES)}")
    size = SIZES[found[1]]
    if found[4]:
        size = size._replace(vocabulary=int(found[4]))
    return Row(name, size, int(found[2]), int(found[3]), bool(found[5]))


def flops(row):
    """Of a training step: 6 a parameter of a matmul and token; of causal attention only what is visible."""
    size, head = row.size, row.size.width // row.size.heads
    projections = size.width * head * (2 * size.heads + 2 * size.key_heads)
    matmuls = size.layers * (projections + (2 if size.gpt2 else 3) * size.width * size.hidden) + size.vocabulary * size.width
    attention = size.layers * 2 * row.sequence * size.width
    return row.batch * row.sequence * (6 * matmuls + 3 * attention)
