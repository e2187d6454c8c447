// A CUDA program that uses each kind of memory that reserves addresses: device, pinned, managed.
// In: a.bin and b.bin, floats. Out: sums.bin, their weighted sums, and two lines on standard output.
// The second line says whether CUDA left the address free at which backstory's recorder is linked.
// An error of CUDA ends the program with status 1 and the error's text.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        cudaError_t status = (call);                                                               \
        if (status != cudaSuccess) {                                                               \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                  \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void add(int count, const float *a, const float *b, float *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        sums[i] = 2.0f * a[i] + b[i];
    }
}

static void load(const char *name, float *into, int count)
{
    FILE *file = std::fopen(name, "rb");
    if (!file || std::fread(into, sizeof *into, count, file) != (size_t)count) {
        std::perror(name);
        std::exit(1);
    }
    std::fclose(file);
}

// BS_HOME of backstory_abi.h, and more than the size of the recorder.
static const unsigned long long home = 0x550000010000ull, reach = 1ull << 20;

// True if no mapping but the recorder's own lies at its address. So the line is the same natively
// and recorded. Prints the first other mapping on standard error.
static bool address_is_free()
{
    FILE *maps = std::fopen("/proc/self/maps", "r");
    if (!maps) {
        std::perror("/proc/self/maps");
        std::exit(1);
    }
    char line[4500];
    bool free = true;
    while (free && std::fgets(line, sizeof line, maps)) {
        unsigned long long start, end;
        if (std::sscanf(line, "%llx-%llx", &start, &end) != 2) {
            continue;
        }
        bool near = start < home + reach && end > home;
        if (near && !std::strstr(line, "/linux-backstory.so")) {
            std::fputs(line, stderr);
            free = false;
        }
    }
    std::fclose(maps);
    return free;
}

int main(int argc, char **argv)
{
    const int count = 1 << 20;
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    const size_t bytes = count * sizeof(float);
    float *pinned, *device_a, *device_b, *managed;
    TRY(cudaMallocHost(&pinned, bytes));
    TRY(cudaMalloc(&device_a, bytes));
    TRY(cudaMalloc(&device_b, bytes));
    TRY(cudaMallocManaged(&managed, bytes));
    load("a.bin", pinned, count);
    TRY(cudaMemcpy(device_a, pinned, bytes, cudaMemcpyHostToDevice));
    load("b.bin", pinned, count);
    TRY(cudaMemcpy(device_b, pinned, bytes, cudaMemcpyHostToDevice));
    for (int round = 0; round < rounds; round++) {
        add<<<(count + 255) / 256, 256>>>(count, device_a, device_b, managed);
        TRY(cudaGetLastError());
        TRY(cudaDeviceSynchronize());
    }
    double total = 0;
    for (int i = 0; i < count; i++) {
        total += managed[i];
    }
    FILE *file = std::fopen("sums.bin", "wb");
    if (!file || std::fwrite(managed, sizeof *managed, count, file) != (size_t)count || std::fclose(file)) {
        std::perror("sums.bin");
        return 1;
    }
    std::printf("%d sums, total %.6e\n", count, total);
    // All kinds of memory are still reserved here.
    const bool free = address_is_free();
    std::printf("the recorder's address is %s\n", free ? "free" : "taken");
    TRY(cudaFree(managed));
    TRY(cudaFree(device_b));
    TRY(cudaFree(device_a));
    TRY(cudaFreeHost(pinned));
    return free ? 0 : 1;
}
