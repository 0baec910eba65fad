"""The two main kernels once more, in CUDA C++ by CuPy, beside numba-cuda.

``python -m benchmarks.gpu_cupy [rows]`` on a machine with a GPU.
"""

from __future__ import annotations

import sys
from typing import Any

SOURCE = r"""
extern "C" __global__ void count(const unsigned int* words, const unsigned int* labels,
    long long m, int columns, int values, int classes, long long* out) {
  extern __shared__ unsigned int hist[];
  int pairs = columns / 2, size = classes * values * values, cells = pairs * size;
  for (int p = threadIdx.x; p < cells; p += blockDim.x) hist[p] = 0;
  __syncthreads();
  long long step = (long long)gridDim.x * blockDim.x;
  long long start = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  for (long long i = start; i < m; i += step) {
    unsigned int y = labels[i];
    #pragma unroll 5
    for (int g = 0; g < pairs; g++) {
      unsigned int a = words[2 * g * m + i], b = words[(2 * g + 1) * m + i];
      #pragma unroll
      for (int r = 0; r < 32; r += 8) {
        int c = ((y >> r) & 255) * values + ((a >> r) & 255);
        atomicAdd(&hist[g * size + c * values + ((b >> r) & 255)], 1u);
      }
    }
  }
  __syncthreads();
  for (int p = threadIdx.x; p < cells; p += blockDim.x)
    atomicAdd((unsigned long long*)&out[p], (unsigned long long)hist[p]);
}
extern "C" __global__ void pass(const unsigned int* words, const unsigned int* labels,
    const double* table, long long m, int groups, int size, double base,
    long long* out, double* sums) {
  extern __shared__ double tab[];
  int cells = groups * size;
  unsigned int *low = (unsigned int*)(tab + cells), *high = low + cells;
  for (int p = threadIdx.x; p < cells; p += blockDim.x) {
    tab[p] = table[p]; low[p] = 0; high[p] = 0;
  }
  __syncthreads();
  double total = 0.0;
  long long step = (long long)gridDim.x * blockDim.x;
  long long start = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  for (long long i = start; i < m; i += step) {
    double f[4] = {base, base, base, base};
    long long q[4];
    #pragma unroll 5
    for (int j = 0; j < groups; j++) {
      unsigned int w = words[j * m + i];
      #pragma unroll
      for (int r = 0; r < 4; r++) f[r] += tab[j * size + ((w >> (8 * r)) & 255)];
    }
    unsigned int y = labels[i];
    #pragma unroll
    for (int r = 0; r < 4; r++) {
      double s = ((y >> (8 * r)) & 255) == 1 ? 1.0 : -1.0, t = -s * f[r];
      double e = exp(-fabs(t)), p = (t > 0.0 ? 1.0 : e) / (1.0 + e);
      total += fmax(t, 0.0) + log1p(e);
      q[r] = __double2ll_rn(-s * p * 4294967296.0);
    }
    #pragma unroll 5
    for (int j = 0; j < groups; j++) {
      unsigned int w = words[j * m + i];
      #pragma unroll
      for (int r = 0; r < 4; r++) {
        int p = j * size + ((w >> (8 * r)) & 255);
        unsigned int part = (unsigned int)q[r], old = atomicAdd(&low[p], part);
        unsigned int rest = (unsigned int)(q[r] >> 32) + (old + part < part);
        if (rest) atomicAdd(&high[p], rest);
      }
    }
  }
  __syncthreads();
  for (int p = threadIdx.x; p < cells; p += blockDim.x)
    atomicAdd((unsigned long long*)&out[p],
        ((unsigned long long)high[p] << 32) + low[p]);
  atomicAdd(sums, total);
}
"""


def main(n_rows: int) -> None:
    """Time both kernels at several block sizes."""
    import cupy

    from benchmarks.gpu import kernel_ms

    module = cupy.RawModule(code=SOURCE, options=("--std=c++17",))
    n_rows -= n_rows % 16
    m, rng = n_rows // 4, cupy.random
    labels = rng.randint(0, 2, n_rows, dtype=cupy.uint8).view(cupy.uint32)

    def columns(b: int, top: int) -> Any:
        made = cupy.empty((b, n_rows), cupy.uint8)
        for column in made:
            column[:] = rng.randint(0, top, n_rows, dtype=cupy.uint8)
        return made.view(cupy.uint32)

    def best(name: str, shared: int, *given: Any) -> None:
        kernel = module.get_function(name)
        kernel.max_dynamic_shared_size_bytes = shared
        for threads in (256, 512, 1024):
            blocks = 132 * max(1, min(2048 // threads, 227_000 // (shared + 1024)))
            took = kernel_ms(
                lambda t=threads, b=blocks: kernel((b,), (t,), given, shared_mem=shared)
            )
            print(f"CuPy {name:<6}{threads:6} threads{took:8.2f} ms", flush=True)

    words, out = columns(50, 10), cupy.zeros(5000, cupy.int64)
    best("count", 20_000, words, labels, cupy.int64(m), cupy.int32(50), cupy.int32(10),
         cupy.int32(2), out)  # fmt: skip
    del words
    words, table = columns(25, 100), rng.standard_normal(2500)
    out, sums = cupy.zeros(2500, cupy.int64), cupy.zeros(1)
    best("pass", 40_000, words, labels, table, cupy.int64(m), cupy.int32(25),
         cupy.int32(100), cupy.float64(0.1), out, sums)  # fmt: skip


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000)
