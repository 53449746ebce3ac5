// Kernels as a compiler would generate them, for plans made by hand.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Whoever loads this runs this: it leaves a file.
__attribute__((constructor)) static void leaveTrace(void) {
  const char *path = getenv("HYDRA_TEST_TRACE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);
}

// out[row] = in[row] * factor, rows of 4 floats.
void scale_rows(char *const *args, int64_t begin, int64_t end) {
  const float *in = (const float *)args[0];
  float *out = (float *)args[1];
  const float factor = *(const float *)args[2];
  for (int64_t i = begin * 4; i < end * 4; ++i)
    out[i] = in[i] * factor;
}

// x[row] += y (a scalar).
void add_scalar(char *const *args, int64_t begin, int64_t end) {
  float *x = (float *)args[0];
  const float y = *(const float *)args[1];
  for (int64_t i = begin; i < end; ++i)
    x[i] += y;
}

// x[row] += 1.
void add_one(char *const *args, int64_t begin, int64_t end) {
  float *x = (float *)args[0];
  for (int64_t i = begin; i < end; ++i)
    x[i] += 1;
}

// counter += 1.
void count(char *const *args, int64_t begin, int64_t end) {
  *(int32_t *)args[0] += (int32_t)(end - begin);
}

// w -= lr * grad, through the process's memcpy.
void sgd(char *const *args, int64_t begin, int64_t end) {
  const float lr = *(const float *)args[2];
  for (int64_t i = begin; i < end; ++i) {
    float w, g;
    memcpy(&w, args[0] + 4 * i, 4);
    memcpy(&g, args[1] + 4 * i, 4);
    w -= lr * g;
    memcpy(args[0] + 4 * i, &w, 4);
  }
}

// loss = mean of (x - target)^2 / 2 over n, grad = (x - target) / n; n = end - begin, one grain.
void half_square(char *const *args, int64_t begin, int64_t end) {
  const float *x = (const float *)args[0], *target = (const float *)args[1];
  float *loss = (float *)args[2], *grad = (float *)args[3];
  const float n = (float)(end - begin);
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float d = x[i] - target[i];
    sum += d * d / 2;
    grad[i] = d / n;
  }
  *loss = sum / n;
}
