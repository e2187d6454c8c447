# what: PyTorch trains a network on a GPU, with a worker process; then by torch.compile
# needs: /dev/nvidiactl
# limit: 240
# modes: auto on off
# of: model.pt images.npy labels.npy train.py /dev/nvidiactl /dev/nvidia0 */libcuda.so*
python=$(command -v python3)
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { echo "$python lacks PyTorch with CUDA" >&2; exit 77; }
cp "$FOREIGN_ROOT/bench/backstory_bench/data/gpu/train.py" .
"$python" -c 'import numpy
random = numpy.random.default_rng(7)
numpy.save("images.npy", random.random((512, 1, 28, 28), dtype=numpy.float32))
numpy.save("labels.npy", random.integers(0, 10, 512))'
"$python" train.py 40 2>/dev/null; echo $?
# Triton compiles a kernel with the C compiler, caches it and loads it.
export TRITON_CACHE_DIR=$HOME/triton TORCHINDUCTOR_CACHE_DIR=$HOME/inductor
"$python" -c 'import torch
f = torch.compile(lambda x: torch.sin(x) * 2 + x)
x = torch.arange(1000, device="cuda", dtype=torch.float32)
print(f"{f(x).sum().item():.2f}")' 2>&1; echo $?
