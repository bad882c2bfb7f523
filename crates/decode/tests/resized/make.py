"""Makes a small picture, and what torchvision makes of it in other sizes: the truth that `tests/it/resize.rs` compares with.

    pip install numpy pillow torch torchvision
    python make.py
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torchvision.transforms.v2.functional import resize

# (H, W): down, down by a little, up, down and up, one side only, up by a little, to a line, to almost nothing.
SIZES = [(16, 20), (37, 53), (98, 130), (20, 150), (24, 65), (49, 11), (50, 66), (1, 65), (2, 2)]

here = Path(__file__).parent


def save(name: str, picture: torch.Tensor) -> None:
    Image.fromarray(picture.permute(1, 2, 0).numpy()).save(here / f"{name}.png", optimize=True)


# Slopes, hard edges and noise, each in a third of the picture.
y, x = np.mgrid[0:49, 0:65]
slopes = np.stack([x * 255 // 64, y * 255 // 48, (x + y) * 255 // 112])
edges = np.stack([(x // 3 + y // 5) % 2 * 255, (x // 2) % 2 * 255, (y // 2) % 2 * 255])
noise = np.random.default_rng(1).integers(0, 256, (3, 49, 65))
source = torch.from_numpy(np.where(x < 22, slopes, np.where(x < 44, edges, noise)).astype(np.uint8))

save("source", source)
for height, width in SIZES:
    save(f"{height}x{width}", resize(source, [height, width], antialias=True))
