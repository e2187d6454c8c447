# what: a CUDA program on a GPU: device, pinned and managed memory, its child, CUDA's own error
# needs: /dev/nvidiactl nvcc
# limit: 120
# modes: auto on off
# of: sums.bin a.bin b.bin sums /dev/nvidiactl /dev/nvidia0 /dev/nvidia-uvm */libcuda.so*
# of: other/sums.bin other/a.bin other/b.bin /dev/nvidia0
# not: other/sums.bin a.bin b.bin sums.bin
cp "$FOREIGN_ROOT/bench/backstory_bench/data/gpu/sums.cu" . && nvcc -O2 -o sums sums.cu && rm sums.cu
# The cache of compiled kernels would be a way from the first program to the second.
export CUDA_CACHE_DISABLE=1
mkdir other
python3 -c 'import random, struct
random.seed(7)
for name in ("a.bin", "b.bin", "other/a.bin", "other/b.bin"):
    open(name, "wb").write(struct.pack(f"<{1 << 20}f", *(random.random() for _ in range(1 << 20))))'
./sums 100; echo $?
# A second program gets nothing from the first, although both use the same device.
(cd other && ../sums 3; echo $?)
CUDA_VISIBLE_DEVICES= ./sums 2>&1; echo $?
rm sums
