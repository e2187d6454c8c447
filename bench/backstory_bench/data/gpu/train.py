"""Trains a network on a GPU, with the same result in every run.

usage: train.py [STEPS [small|wide]]

The small network is convolutional: the processor needs longer to start its kernels than the GPU to
run them. The wide one keeps the GPU busy, as most training does.

In: images.npy and labels.npy. Out: model.pt, the losses on standard output, and, after the word
`seconds:`, the time of the steps, without the start of Python and CUDA.
"""

import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, cuBLAS is not repeatable

import numpy
import torch


def small() -> torch.nn.Module:
    """Returns a convolutional network: 0.3 million parameters."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 28 * 28, 10),
    )


def wide() -> torch.nn.Module:
    """Returns four wide blocks: 136 million parameters in 16 bits."""
    blocks = [
        layer
        for _ in range(4)
        for layer in (
            torch.nn.LayerNorm(2048),
            torch.nn.Linear(2048, 8192),
            torch.nn.GELU(),
            torch.nn.Linear(8192, 2048),
        )
    ]
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(28 * 28, 2048), *blocks, torch.nn.Linear(2048, 10))
    return layers.bfloat16()


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
form = sys.argv[2] if len(sys.argv) > 2 else "small"
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = False
images = torch.from_numpy(numpy.load("images.npy"))
labels = torch.from_numpy(numpy.load("labels.npy"))
data = torch.utils.data.TensorDataset(images, labels)
# A worker process and pinned memory, as training scripts have them.
batches = torch.utils.data.DataLoader(data, batch_size=64, num_workers=1, pin_memory=True, persistent_workers=True)
model = {"small": small, "wide": wide}[form]().cuda()
# Each image of the wide network stands for 256: one step is as large as those of real networks.
copies = {"small": 1, "wide": 256}[form]
kind = next(model.parameters()).dtype
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses: list[float] = []
began, step = 0.0, 0
while step < steps:
    for image, label in batches:
        rows = image.cuda(non_blocking=True).to(kind).repeat(copies, 1, 1, 1)
        wanted = label.cuda(non_blocking=True).repeat(copies)
        loss = torch.nn.functional.cross_entropy(model(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 1:
            torch.cuda.synchronize()
            began = time.monotonic()
        if step % 10 == 0:
            losses.append(loss.item())
        if step >= steps:
            break
torch.cuda.synchronize()
seconds = time.monotonic() - began
torch.save(model.state_dict(), "model.pt")
print("losses:", *(f"{loss:.6f}" for loss in losses))
print(f"seconds: {seconds:.4f}", file=sys.stderr)
