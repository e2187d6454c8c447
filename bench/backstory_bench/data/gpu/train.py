"""Trains a small convolutional network on a GPU, with the same result in every run.

In: images.npy and labels.npy. Out: model.pt, the losses on standard output, and, after the word
`seconds:`, the time of the steps, without the start of Python and CUDA.
"""

import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, cuBLAS is not repeatable

import numpy
import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = False
images = torch.from_numpy(numpy.load("images.npy"))
labels = torch.from_numpy(numpy.load("labels.npy"))
data = torch.utils.data.TensorDataset(images, labels)
# A worker process and pinned memory, as training scripts have them.
batches = torch.utils.data.DataLoader(data, batch_size=64, num_workers=1, pin_memory=True)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(32 * 28 * 28, 10),
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses: list[float] = []
began, step = 0.0, 0
while step < steps:
    for image, label in batches:
        loss = torch.nn.functional.cross_entropy(model(image.cuda(non_blocking=True)), label.cuda(non_blocking=True))
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
